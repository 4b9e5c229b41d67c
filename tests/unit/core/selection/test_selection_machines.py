from dataclasses import replace

import pytest

from fakes.builders import make_container, make_revision
from relaunch.core.definitions.accelerator import GpuRequirement, Interconnect, NeuronPurpose
from relaunch.core.revisions.images import with_platforms
from unit.core.selection.offered import (
    A10G,
    AMD,
    ARM,
    EIGHTH,
    FOUR_A10G,
    INFERENTIA2,
    NO_GPU_REVISION,
    ONE_GPU,
    REVISION,
    SPOT,
    T4,
    TRAINIUM,
    UNKNOWN,
    needing,
    needing_gpu,
    needing_neuron,
    offered,
    revision_of,
    selected,
)

MAIN = make_container()
ARM_REVISION = make_revision(architecture="ARM64")


def lacking(name, machine, filter_name, reason, definition=ONE_GPU, revision=REVISION):
    return pytest.param(machine, filter_name, reason, definition, revision, id=name)


def having(name, machine, definition=ONE_GPU, revision=REVISION):
    return pytest.param(machine, definition, revision, id=name)


@pytest.mark.parametrize(
    ("machine", "filter_name", "reason", "definition", "revision"),
    [
        lacking("another maker", AMD, "manufacturer", "AMD Radeon Pro V520"),
        lacking("an unknown type", UNKNOWN, "manufacturer", "not in the catalogue"),
        lacking("not listed", A10G, "allow-list", "(g4dn.xlarge)", needing(instance_types=("g4dn.xlarge",))),
        lacking(
            "a list beside a requirement narrows it",
            A10G,
            "allow-list",
            "not among",
            needing(gpu=GpuRequirement(), instance_types=("g4dn.xlarge",)),
        ),
        lacking("Neuron for GPU", INFERENTIA2, "accelerator", "no NVIDIA GPU"),
        lacking("GPU for Neuron", A10G, "accelerator", "no Neuron device", needing_neuron(devices=1), NO_GPU_REVISION),
        lacking("too few", A10G, "count", "it has 1 GPU; 2 are asked for", needing_gpu(count=2)),
        lacking("a part of a GPU", EIGHTH, "count", "0.125 of a GPU"),
        lacking(
            "the revision asks for a GPU the listed type does not have",
            INFERENTIA2,
            "count",
            "no GPUs; 1 are",
            needing(instance_types=("inf2.24xlarge",)),
        ),
        lacking(
            "too few for all containers together",
            FOUR_A10G,
            "count",
            "it has 4 GPUs; 5 are asked for",
            revision=revision_of(MAIN, make_container(name="second", gpu_count=4)),
        ),
        lacking("another model", A10G, "model", "asked for is L4 or L40S", needing_gpu(models=("L4", "L40S"))),
        lacking(
            "too little memory on the card",
            T4,
            "memory-per-card",
            "its GPU has 16 GiB of memory; 24 GiB are asked for",
            needing_gpu(memory_mib=24 * 1024),
        ),
        lacking(
            "too few devices",
            INFERENTIA2,
            "neuron",
            "it has 6 Neuron devices; 12 are asked for",
            needing_neuron(devices=12),
            NO_GPU_REVISION,
        ),
        lacking(
            "too few cores",
            INFERENTIA2,
            "neuron",
            "it has 12 NeuronCores; 16 are asked for",
            needing_neuron(cores=16),
            NO_GPU_REVISION,
        ),
        lacking("vcpu", A10G, "vcpu", "it has 4 vCPU; the task reserves 4.5", revision=make_revision(vcpus=4.5)),
        lacking(
            "all of the memory, of which the kernel keeps some",
            A10G,
            "memory",
            "about 15,472 of its 16,384 MiB are left for tasks",
            revision=make_revision(memory_mib=16_384),
        ),
        lacking("x86 on ARM", ARM, "architecture", "its processor is arm64"),
        lacking("ARM on x86", A10G, "architecture", "is for ARM64", revision=ARM_REVISION),
        lacking(
            "an image for ARM on x86",
            A10G,
            "image",
            "its processor is x86_64; the image of container main is for linux/arm64 and windows/amd64: build it "
            "for linux/amd64, or have the task definition (cpuArchitecture) and the job ask for machines of its "
            "architecture",
            revision=with_platforms(REVISION, {"main": ("linux/arm64", "windows/amd64")}),
        ),
        lacking(
            "an image for x86 on ARM",
            ARM,
            "image",
            "its processor is arm64; the image of container main is for linux/amd64: build it for linux/arm64,",
            revision=with_platforms(ARM_REVISION, {"main": ("linux/amd64",)}),
        ),
        lacking(
            "a second image for ARM on x86",
            A10G,
            "image",
            "the image of container side is for linux/arm64",
            revision=with_platforms(
                revision_of(MAIN, make_container(name="side", gpu_count=0, vcpus=0.5, memory_mib=512)),
                {"main": ("linux/amd64",), "side": ("linux/arm64",)},
            ),
        ),
        lacking(
            "no bf16",
            T4,
            "compute-capability",
            "its T4 has compute capability 7.5; 8.0 is asked for",
            needing_gpu(compute_capability=(8, 0)),
        ),
        lacking(
            "a GPU of unknown compute capability",
            replace(A10G, compute_capability=None),
            "compute-capability",
            "of its A10G is not known",
            needing_gpu(compute_capability=(8, 0)),
        ),
        lacking(
            "a share of a GPU without bf16",
            T4,
            "compute-capability",
            "7.5; 8.0",
            needing_gpu(memory_mib=2_048, compute_percent=30, compute_capability=(8, 0)),
        ),
        lacking("no EFA", A10G, "interconnect", "(EFA)", needing_gpu(interconnect=Interconnect.EFA)),
        lacking("no NVLink", FOUR_A10G, "interconnect", "NVLink", needing_gpu(interconnect=Interconnect.NVLINK)),
        lacking(
            "a port of the ECS agent",
            A10G,
            "ports",
            "takes host port 51679, which the ECS agent has on every machine",
            revision=revision_of(make_container(host_ports=(8080, 51_679))),
        ),
        lacking("SSH's port", A10G, "ports", "SSH", revision=revision_of(make_container(host_ports=(22,)))),
        lacking(
            "the first filter that rejects is named",
            A10G,
            "count",
            "1 GPU; 2",
            revision=revision_of(
                make_container(host_ports=(8080,)), make_container(name="second", host_ports=(80, 8080))
            ),
        ),
        lacking(
            "a port that two containers take",
            A10G,
            "ports",
            "takes host port 8080 twice",
            revision=revision_of(
                make_container(host_ports=(8080,)),
                make_container(name="metrics", gpu_count=0, memory_mib=0, vcpus=0, host_ports=(80, 8080)),
            ),
        ),
    ],
)
def test_a_machine_that_lacks_something_is_rejected_for_good_and_told_why(
    machine, filter_name, reason, definition, revision
):
    selection = selected(definition, offered(machine), revision=revision)

    (rejected,) = selection.rejected
    assert (selection.kept, rejected.filter_name) == ((), filter_name)
    assert reason in rejected.rejection.reason
    assert selection.is_permanent
    assert selection.last_filter == filter_name


@pytest.mark.parametrize(
    ("machine", "definition", "revision"),
    [
        having("24 GiB, of which 22,888 MiB are reported", A10G, needing_gpu(memory_mib=24 * 1024)),
        having("a model in lower case", A10G, needing_gpu(models=("a10g",))),
        having("more GPUs than asked for", FOUR_A10G, needing_gpu(count=3)),
        having("a type listed in upper case", A10G, needing(instance_types=("G5.xlarge",))),
        having("a listed fraction, no GPU asked for", EIGHTH, needing(instance_types=("g6f.xlarge",)), NO_GPU_REVISION),
        having("one device of six", INFERENTIA2, needing_neuron(devices=1), NO_GPU_REVISION),
        having("the whole machine", INFERENTIA2, needing_neuron(devices=4), NO_GPU_REVISION),
        having("all its cores", INFERENTIA2, needing_neuron(cores=12), NO_GPU_REVISION),
        having("ARM on ARM", ARM, revision=ARM_REVISION),
        *(
            having(f"an image for {platforms[0]}", machine, revision=with_platforms(revision, {"main": platforms}))
            for revision, platforms, machine in (
                (REVISION, ("linux/amd64",), A10G),
                (REVISION, ("linux/arm64", "linux/amd64"), A10G),
                (REVISION, ("linux/386",), A10G),
                (ARM_REVISION, ("linux/arm64",), ARM),
                (ARM_REVISION, ("linux/arm",), ARM),
                (make_revision(architecture=""), ("plan9/amd64",), replace(A10G, architecture="riscv64")),
            )
        ),
        having("exactly the compute capability", A10G, needing_gpu(compute_capability=(8, 6))),
        having("one EFA interface", replace(A10G, efa_interfaces=1), needing_gpu(interconnect=Interconnect.EFA)),
        having("NVLink", replace(A10G, has_nvlink=True), needing_gpu(interconnect=Interconnect.NVLINK)),
        having("ports of its own", A10G, revision=revision_of(make_container(host_ports=(80, 8080)))),
        having("the default architecture", A10G, revision=None),
        having("the revision's architecture", ARM, revision=make_revision(architecture="ARM64")),
        having(
            "Trainium for training",
            TRAINIUM,
            needing_neuron(devices=1, purpose=NeuronPurpose.TRAINING),
            NO_GPU_REVISION,
        ),
        having("Trainium for inference", TRAINIUM, needing_neuron(devices=1), NO_GPU_REVISION),
        having("a model of its own", INFERENTIA2, needing_neuron(cores=2, models=("Inferentia2",)), NO_GPU_REVISION),
        having("Inferentia by name alone", INFERENTIA2, needing(instance_types=(INFERENTIA2.name,)), NO_GPU_REVISION),
    ],
)
def test_a_machine_that_has_what_is_asked_is_kept(machine, definition, revision):
    offering = offered(machine)

    assert selected(definition, offering, revision=revision).kept == (offering,)


def test_awsvpc_needs_subnets():
    awsvpc = make_revision(network_mode="awsvpc")

    without = selected(ONE_GPU, offered(A10G), revision=awsvpc, has_subnets=False)
    bridged = selected(ONE_GPU, offered(A10G), has_subnets=False)

    assert (without.last_filter, without.is_permanent) == ("network-mode", True)
    assert "SubnetIds" in without.rejected[0].rejection.reason
    assert selected(ONE_GPU, offered(A10G), revision=awsvpc, has_subnets=True).kept
    assert bridged.kept


def test_a_disk_that_is_known_to_be_too_small_is_rejected_and_one_that_is_not_known_is_not():
    small, enough = offered(A10G, SPOT, disk_gib=100), offered(A10G, disk_gib=200)
    unknown = offered(A10G, capacity_provider="unknown")

    selection = selected(replace(ONE_GPU, disk_gib=200), small, enough, unknown)

    assert set(selection.kept) == {enough, unknown}
    (rejected,) = selection.rejected
    assert (rejected.offering, rejected.filter_name) == (small, "disk")
    assert rejected.rejection.reason == "its disk has 100 GiB; 200 are asked for"
    assert selected(ONE_GPU, small).kept
    assert selected(replace(ONE_GPU, disk_gib=200), small).is_permanent
