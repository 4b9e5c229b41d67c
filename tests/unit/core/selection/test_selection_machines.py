from dataclasses import replace

import pytest

from fakes.builders import make_container, make_revision
from relaunch.core.definitions.accelerator import GpuRequirement, Interconnect, NeuronRequirement
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.revisions.images import with_platforms
from relaunch.core.revisions.revision import Revision
from unit.core.selection.offered import (
    A10G,
    AMD,
    ARM,
    EIGHTH,
    FOUR_A10G,
    INFERENTIA2,
    NEURON_REVISION,
    ONE_GPU,
    REVISION,
    SPOT,
    T4,
    UNKNOWN,
    needing,
    needing_gpu,
    offered,
    selected,
)


@pytest.mark.parametrize(
    ("definition", "revision", "machine", "filter_name", "reason"),
    [
        pytest.param(ONE_GPU, REVISION, AMD, "manufacturer", "AMD Radeon Pro V520", id="another maker"),
        pytest.param(ONE_GPU, REVISION, UNKNOWN, "manufacturer", "not in the catalogue", id="an unknown type"),
        pytest.param(
            needing(instance_types=("g4dn.xlarge",)), REVISION, A10G, "allow-list", "(g4dn.xlarge)", id="not listed"
        ),
        pytest.param(
            needing(gpu=GpuRequirement(), instance_types=("g4dn.xlarge",)),
            REVISION,
            A10G,
            "allow-list",
            "not among",
            id="a list beside a requirement narrows it",
        ),
        pytest.param(ONE_GPU, REVISION, INFERENTIA2, "accelerator", "no NVIDIA GPU", id="Neuron for GPU"),
        pytest.param(
            needing(neuron=NeuronRequirement(devices=1)),
            NEURON_REVISION,
            A10G,
            "accelerator",
            "no Neuron device",
            id="GPU for Neuron",
        ),
        pytest.param(needing_gpu(count=2), REVISION, A10G, "count", "it has 1 GPU; 2 are asked for", id="too few"),
        pytest.param(ONE_GPU, REVISION, EIGHTH, "count", "0.125 of a GPU", id="a part of a GPU"),
        pytest.param(
            needing(instance_types=("inf2.24xlarge",)),
            REVISION,
            INFERENTIA2,
            "count",
            "no GPUs; 1 are",
            id="the revision asks for a GPU the listed type does not have",
        ),
        pytest.param(
            ONE_GPU,
            make_revision(containers=(make_container(), make_container(name="second", gpu_count=4))),
            FOUR_A10G,
            "count",
            "it has 4 GPUs; 5 are asked for",
            id="too few for all containers together",
        ),
        pytest.param(
            needing_gpu(models=("L4", "L40S")), REVISION, A10G, "model", "asked for is L4 or L40S", id="another model"
        ),
        pytest.param(
            needing_gpu(memory_mib=24 * 1024),
            REVISION,
            T4,
            "memory-per-card",
            "its GPU has 16 GiB of memory; 24 GiB are asked for",
            id="too little memory on the card",
        ),
        pytest.param(
            needing(neuron=NeuronRequirement(devices=12)),
            NEURON_REVISION,
            INFERENTIA2,
            "neuron",
            "it has 6 Neuron devices; 12 are asked for",
            id="too few devices",
        ),
        pytest.param(
            needing(neuron=NeuronRequirement(cores=16)),
            NEURON_REVISION,
            INFERENTIA2,
            "neuron",
            "it has 12 NeuronCores; 16 are asked for",
            id="too few cores",
        ),
        pytest.param(
            ONE_GPU,
            make_revision(vcpus=4.5),
            A10G,
            "vcpu",
            "it has 4 vCPU; the task reserves 4.5",
            id="vcpu",
        ),
        pytest.param(
            ONE_GPU,
            make_revision(memory_mib=16_384),
            A10G,
            "memory",
            "about 15,472 of its 16,384 MiB are left for tasks",
            id="all of the memory, of which the kernel keeps some",
        ),
        pytest.param(ONE_GPU, REVISION, ARM, "architecture", "its processor is arm64", id="x86 on ARM"),
        pytest.param(
            ONE_GPU, make_revision(architecture="ARM64"), A10G, "architecture", "is for ARM64", id="ARM on x86"
        ),
        pytest.param(
            ONE_GPU,
            with_platforms(REVISION, {"main": ("linux/arm64", "windows/amd64")}),
            A10G,
            "image",
            "its processor is x86_64; the image of container main is for linux/arm64 and windows/amd64: build it "
            "for linux/amd64, or have the task definition (cpuArchitecture) and the job ask for machines of its "
            "architecture",
            id="an image for ARM on x86",
        ),
        pytest.param(
            ONE_GPU,
            with_platforms(make_revision(architecture="ARM64"), {"main": ("linux/amd64",)}),
            ARM,
            "image",
            "its processor is arm64; the image of container main is for linux/amd64: build it for linux/arm64,",
            id="an image for x86 on ARM",
        ),
        pytest.param(
            ONE_GPU,
            with_platforms(
                make_revision(
                    containers=(make_container(), make_container(name="side", gpu_count=0, vcpus=0.5, memory_mib=512))
                ),
                {"main": ("linux/amd64",), "side": ("linux/arm64",)},
            ),
            A10G,
            "image",
            "the image of container side is for linux/arm64",
            id="a second image for ARM on x86",
        ),
        pytest.param(
            needing_gpu(compute_capability=(8, 0)),
            REVISION,
            T4,
            "compute-capability",
            "its T4 has compute capability 7.5; 8.0 is asked for",
            id="no bf16",
        ),
        pytest.param(
            needing_gpu(compute_capability=(8, 0)),
            REVISION,
            replace(A10G, compute_capability=None),
            "compute-capability",
            "of its A10G is not known",
            id="a GPU of unknown compute capability",
        ),
        pytest.param(
            needing_gpu(memory_mib=2_048, compute_percent=30, compute_capability=(8, 0)),
            REVISION,
            T4,
            "compute-capability",
            "7.5; 8.0",
            id="a share of a GPU without bf16",
        ),
        pytest.param(needing_gpu(interconnect=Interconnect.EFA), REVISION, A10G, "interconnect", "(EFA)", id="no EFA"),
        pytest.param(
            needing_gpu(interconnect=Interconnect.NVLINK), REVISION, FOUR_A10G, "interconnect", "NVLink", id="no NVLink"
        ),
        pytest.param(
            ONE_GPU,
            make_revision(containers=(make_container(host_ports=(8080, 51_679)),)),
            A10G,
            "ports",
            "takes host port 51679, which the ECS agent has on every machine",
            id="a port of the ECS agent",
        ),
        pytest.param(
            ONE_GPU,
            make_revision(containers=(make_container(host_ports=(22,)),)),
            A10G,
            "ports",
            "SSH",
            id="SSH's port",
        ),
        pytest.param(
            ONE_GPU,
            make_revision(
                containers=(make_container(host_ports=(8080,)), make_container(name="second", host_ports=(80, 8080)))
            ),
            A10G,
            "count",
            "1 GPU; 2",
            id="the first filter that rejects is named",
        ),
        pytest.param(
            ONE_GPU,
            make_revision(
                containers=(
                    make_container(host_ports=(8080,)),
                    make_container(name="metrics", gpu_count=0, memory_mib=0, vcpus=0, host_ports=(80, 8080)),
                )
            ),
            A10G,
            "ports",
            "takes host port 8080 twice",
            id="a port that two containers take",
        ),
    ],
)
def test_a_machine_that_lacks_something_is_rejected_for_good_and_told_why(
    definition: JobDefinition, revision: Revision, machine: InstanceType, filter_name: str, reason: str
) -> None:
    selection = selected(definition, offered(machine), revision=revision)

    (rejected,) = selection.rejected
    assert (selection.kept, rejected.filter_name) == ((), filter_name)
    assert reason in rejected.rejection.reason
    assert selection.is_permanent
    assert selection.last_filter == filter_name


@pytest.mark.parametrize(
    ("definition", "revision", "machine"),
    [
        pytest.param(needing_gpu(memory_mib=24 * 1024), REVISION, A10G, id="24 GiB, of which 22,888 MiB are reported"),
        pytest.param(needing_gpu(models=("a10g",)), REVISION, A10G, id="a model in lower case"),
        pytest.param(needing_gpu(count=3), REVISION, FOUR_A10G, id="more GPUs than asked for"),
        pytest.param(needing(instance_types=("G5.xlarge",)), REVISION, A10G, id="a type listed in upper case"),
        pytest.param(
            needing(instance_types=("g6f.xlarge",)), NEURON_REVISION, EIGHTH, id="a listed fraction, no GPU asked for"
        ),
        pytest.param(
            needing(neuron=NeuronRequirement(devices=1)), NEURON_REVISION, INFERENTIA2, id="one device of six"
        ),
        pytest.param(
            needing(neuron=NeuronRequirement(devices=4)), NEURON_REVISION, INFERENTIA2, id="the whole machine"
        ),
        pytest.param(needing(neuron=NeuronRequirement(cores=12)), NEURON_REVISION, INFERENTIA2, id="all its cores"),
        pytest.param(ONE_GPU, make_revision(architecture="ARM64"), ARM, id="ARM on ARM"),
        *(
            pytest.param(
                ONE_GPU, with_platforms(revision, {"main": platforms}), machine, id=f"an image for {platforms[0]}"
            )
            for revision, platforms, machine in (
                (REVISION, ("linux/amd64",), A10G),
                (REVISION, ("linux/arm64", "linux/amd64"), A10G),
                (REVISION, ("linux/386",), A10G),
                (make_revision(architecture="ARM64"), ("linux/arm64",), ARM),
                (make_revision(architecture="ARM64"), ("linux/arm",), ARM),
                (make_revision(architecture=""), ("plan9/amd64",), replace(A10G, architecture="riscv64")),
            )
        ),
        pytest.param(needing_gpu(compute_capability=(8, 6)), REVISION, A10G, id="exactly the compute capability"),
        pytest.param(
            needing_gpu(interconnect=Interconnect.EFA),
            REVISION,
            replace(A10G, efa_interfaces=1),
            id="one EFA interface",
        ),
        pytest.param(
            needing_gpu(interconnect=Interconnect.NVLINK), REVISION, replace(A10G, has_nvlink=True), id="NVLink"
        ),
        pytest.param(
            ONE_GPU, make_revision(containers=(make_container(host_ports=(80, 8080)),)), A10G, id="ports of its own"
        ),
        pytest.param(ONE_GPU, None, ARM, id="no revision yet, so no architecture"),
    ],
)
def test_a_machine_that_has_what_is_asked_is_kept(
    definition: JobDefinition, revision: Revision | None, machine: InstanceType
) -> None:
    offering = offered(machine)

    assert selected(definition, offering, revision=revision).kept == (offering,)


def test_awsvpc_needs_subnets() -> None:
    awsvpc = make_revision(network_mode="awsvpc")

    without = selected(ONE_GPU, offered(A10G), revision=awsvpc, has_subnets=False)
    bridged = selected(ONE_GPU, offered(A10G), has_subnets=False)

    assert (without.last_filter, without.is_permanent) == ("network-mode", True)
    assert "SubnetIds" in without.rejected[0].rejection.reason
    assert selected(ONE_GPU, offered(A10G), revision=awsvpc, has_subnets=True).kept
    assert bridged.kept


def test_a_disk_that_is_known_to_be_too_small_is_rejected_and_one_that_is_not_known_is_not() -> None:
    small, enough = offered(A10G, SPOT, disk_gib=100), offered(A10G, disk_gib=200)
    unknown = offered(A10G, capacity_provider="unknown")

    selection = selected(replace(ONE_GPU, disk_gib=200), small, enough, unknown)

    assert set(selection.kept) == {enough, unknown}
    (rejected,) = selection.rejected
    assert (rejected.offering, rejected.filter_name) == (small, "disk")
    assert rejected.rejection.reason == "its disk has 100 GiB; 200 are asked for"
    assert selected(ONE_GPU, small).kept
    assert selected(replace(ONE_GPU, disk_gib=200), small).is_permanent
