"""Each filter on instance types: its rejections with their shortfall, and its limits."""

from typing import Any

import pytest

from fakes.builders import make_instance_type
from relaunch.core.definitions.accelerator import Interconnect
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.selection.gpu_share import ShareRequirement
from relaunch.core.selection.instance_type_filters import (
    RESERVED_PORTS,
    TypeFilter,
    check_accelerator,
    check_allow_list,
    check_architecture,
    check_compute_capability,
    check_count,
    check_gpu_memory,
    check_interconnect,
    check_manufacturer,
    check_memory,
    check_model,
    check_neuron,
    check_ports,
    check_share,
    check_vcpu,
    format_mib,
)
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.requirements import Requirements

MACHINE = make_instance_type("g5.xlarge", compute_capability=(8, 6), gpu_memory_mib=22_888, memory_mib=16_384)
FOUR = make_instance_type("g5.12xlarge", gpu_count=4, logical_gpu_count=4)
EIGHTH = make_instance_type("g6f.xlarge", accelerator_model="L4", gpu_count=0, gpu_partition_size=0.125)
INFERENTIA2 = make_instance_type(
    "inf2.24xlarge", gpu_count=0, logical_gpu_count=0, neuron_devices=6, neuron_cores_per_device=2
)
ONE_DEVICE = make_instance_type(
    "inf2.xlarge", gpu_count=0, logical_gpu_count=0, neuron_devices=1, neuron_cores_per_device=1
)
AMD = make_instance_type("g4ad.xlarge", accelerator_manufacturer="AMD", accelerator_model="Radeon Pro V520")
UNKNOWN = make_instance_type("c5.large", accelerator_manufacturer="", accelerator_model="")


def missing(check: TypeFilter, machine: InstanceType, reason: str, shortfall: float = 0.0, **required: Any) -> Any:
    return pytest.param(check, Requirements(**required), machine, Rejection(reason, shortfall), id=reason)


@pytest.mark.parametrize(
    ("check", "required", "machine", "rejection"),
    [
        missing(check_manufacturer, UNKNOWN, "it is not in the catalogue of accelerated instance types"),
        missing(
            check_manufacturer,
            AMD,
            "its accelerator is AMD Radeon Pro V520; only NVIDIA GPUs and AWS Neuron devices are used",
        ),
        missing(
            check_allow_list,
            MACHINE,
            "not among the job's instance types (g6.xlarge, p5.48xlarge)",
            instance_types=("g6.xlarge", "p5.48xlarge"),
        ),
        missing(check_accelerator, INFERENTIA2, "it has no NVIDIA GPU", is_gpu=True),
        missing(check_accelerator, MACHINE, "it has no Neuron device", is_neuron=True),
        missing(check_count, EIGHTH, "it has 0.125 of a GPU; whole ones are asked for", 1.0, gpu_count=1),
        missing(check_count, MACHINE, "it has 1 GPU; 2 are asked for", 0.5, gpu_count=2),
        missing(check_count, FOUR, "it has 4 GPUs; 5 are asked for", 0.2, gpu_count=5),
        missing(check_count, INFERENTIA2, "it has no GPUs; 1 are asked for", 1.0, gpu_count=1),
        missing(check_model, MACHINE, "its GPU is A10G; asked for is L4 or L40S", models=("L4", "L40S")),
        missing(
            check_gpu_memory,
            MACHINE,
            "its GPU has 22,888 MiB of memory; 45,776 MiB are asked for",
            0.5,
            gpu_memory_mib=45_776,
        ),
        missing(check_share, MACHINE, "ECS takes one kind", share=ShareRequirement(1, conflict="ECS takes one kind")),
        missing(
            check_share,
            MACHINE,
            "about 20,599 MiB of its GPU's 22,888 can be shared; 41,198 are asked for",
            0.5,
            share=ShareRequirement(41_198, 30),
        ),
        missing(
            check_compute_capability,
            MACHINE,
            "its A10G has compute capability 8.6; 9.0 is asked for",
            compute_capability=(9, 0),
        ),
        missing(
            check_compute_capability,
            FOUR,
            "the compute capability of its A10G is not known",
            compute_capability=(8, 0),
        ),
        missing(check_interconnect, MACHINE, "it has no Elastic Fabric Adapter (EFA)", interconnect=Interconnect.EFA),
        missing(
            check_interconnect,
            FOUR,
            "its GPUs are not known to be connected by NVLink",
            interconnect=Interconnect.NVLINK,
        ),
        missing(check_neuron, MACHINE, "it has no Neuron devices; 1 are asked for", 1.0, neuron_devices=1),
        missing(check_neuron, ONE_DEVICE, "it has 1 Neuron device; 2 are asked for", 0.5, neuron_devices=2),
        missing(check_neuron, ONE_DEVICE, "it has 1 NeuronCore; 2 are asked for", 0.5, neuron_cores=2),
        missing(check_neuron, INFERENTIA2, "it has 12 NeuronCores; 16 are asked for", 0.25, neuron_cores=16),
        missing(check_vcpu, MACHINE, "it has 4 vCPU; the task reserves 5", 0.2, vcpus=5.0),
        missing(check_vcpu, MACHINE, "it has 4 vCPU; the task reserves 4.5", 1 - 4 / 4.5, vcpus=4.5),
        missing(
            check_memory,
            MACHINE,
            "about 15,472 of its 16,384 MiB are left for tasks; the task reserves 30,944 MiB",
            0.5,
            memory_mib=30_944,
        ),
        missing(check_architecture, MACHINE, "its processor is x86_64; the task is for ARM64", architecture="ARM64"),
        missing(
            check_ports,
            MACHINE,
            "the task definition takes host port 22, which SSH has on every machine",
            host_ports=(8080, 22),
        ),
        missing(
            check_ports,
            MACHINE,
            "the task definition takes host port 51678, which the ECS agent has on every machine",
            host_ports=(51_678,),
        ),
        missing(check_ports, MACHINE, "the task definition takes host port 80 twice", host_ports=(8080, 80, 80)),
    ],
)
def test_a_machine_that_lacks_something_is_told_what_and_how_much(
    check: TypeFilter, required: Requirements, machine: InstanceType, rejection: Rejection
) -> None:
    found = check(required, machine)

    assert found is not None
    assert (found.reason, found.is_permanent, found.retry_at) == (rejection.reason, True, None)
    assert found.shortfall == pytest.approx(rejection.shortfall)


@pytest.mark.parametrize(
    ("check", "required", "machine"),
    [
        pytest.param(check_allow_list, Requirements(instance_types=("g6.xlarge", "g5.xlarge")), MACHINE, id="listed"),
        pytest.param(check_accelerator, Requirements(is_gpu=True), EIGHTH, id="a part of a GPU is one"),
        pytest.param(check_accelerator, Requirements(is_neuron=True), ONE_DEVICE, id="one device"),
        pytest.param(check_count, Requirements(gpu_count=4), FOUR, id="exactly as many GPUs"),
        pytest.param(check_model, Requirements(models=("L4", "a10g")), MACHINE, id="one of the models"),
        pytest.param(check_gpu_memory, Requirements(gpu_memory_mib=24_576), MACHINE, id="24 GB for 24 GiB"),
        pytest.param(
            check_gpu_memory,
            Requirements(gpu_memory_mib=10_000),
            make_instance_type(gpu_memory_mib=9_300),
            id="exactly the tolerance under it",
        ),
        pytest.param(
            check_compute_capability, Requirements(compute_capability=(8, 6)), MACHINE, id="exactly the capability"
        ),
        pytest.param(
            check_neuron, Requirements(neuron_devices=6, neuron_cores=12), INFERENTIA2, id="all devices and cores"
        ),
        pytest.param(check_vcpu, Requirements(vcpus=4.0), MACHINE, id="all vCPUs"),
        pytest.param(check_memory, Requirements(memory_mib=15_472), MACHINE, id="all memory that is left"),
        pytest.param(check_architecture, Requirements(architecture="X86_64"), MACHINE, id="as ECS writes it"),
        pytest.param(check_ports, Requirements(host_ports=(80, 8080)), MACHINE, id="ports of its own"),
    ],
)
def test_a_machine_that_just_has_it_is_kept(check: TypeFilter, required: Requirements, machine: InstanceType) -> None:
    assert check(required, machine) is None


def test_a_card_further_away_than_the_tolerance_is_another_card() -> None:
    found = check_gpu_memory(Requirements(gpu_memory_mib=10_000), make_instance_type(gpu_memory_mib=9_299))

    assert found is not None


def test_ports_that_machines_need_themselves_are_those_the_api_reference_names() -> None:
    assert set(RESERVED_PORTS) == {22, 2375, 2376, 51_678, 51_679, 51_680}


@pytest.mark.parametrize(
    ("memory_mib", "text"),
    [(1_024, "1 GiB"), (24_576, "24 GiB"), (2_097_152, "2,048 GiB"), (22_888, "22,888 MiB"), (1_023, "1,023 MiB")],
)
def test_memory_is_written_in_the_largest_unit_it_is_whole_in(memory_mib: int, text: str) -> None:
    assert format_mib(memory_mib) == text
