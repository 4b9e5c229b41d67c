"""Each filter on instance types: its rejections with their shortfall, and its limits."""

from typing import Any

import pytest

from fakes.builders import make_instance_type
from relaunch.core.definitions.accelerator import Interconnect
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.selection.gpu_share import ShareRequirement
from relaunch.core.selection.instance_type_filters import RESERVED_PORTS, TYPE_FILTERS, format_gpu_memory, format_mib
from relaunch.core.selection.requirements import Requirements
from unit.core.selection.offered import A10G, AMD, EIGHTH, FOUR_A10G, INFERENTIA2, UNKNOWN

FILTERS = dict(TYPE_FILTERS)
ONE_DEVICE = make_instance_type(
    "inf2.xlarge", gpu_count=0, logical_gpu_count=0, neuron_devices=1, neuron_cores_per_device=1
)


def missing(filter_name: str, machine: InstanceType, reason: str, shortfall: float = 0.0, **required: Any) -> Any:
    return pytest.param(filter_name, Requirements(**required), machine, reason, shortfall, id=reason)


def having(filter_name: str, machine: InstanceType, name: str, **required: Any) -> Any:
    return pytest.param(filter_name, Requirements(**required), machine, id=name)


@pytest.mark.parametrize(
    ("filter_name", "required", "machine", "reason", "shortfall"),
    [
        missing("manufacturer", UNKNOWN, "it is not in the catalogue of accelerated instance types"),
        missing(
            "manufacturer",
            AMD,
            "its accelerator is AMD Radeon Pro V520; only NVIDIA GPUs and AWS Neuron devices are used",
        ),
        missing(
            "manufacturer",
            make_instance_type(vcpus=0, memory_mib=0),
            "AWS has announced it, but EC2 did not list it yet: its vCPU and memory are not known",
        ),
        missing(
            "allow-list",
            A10G,
            "not among the job's instance types (g6.xlarge, p5.48xlarge)",
            instance_types=("g6.xlarge", "p5.48xlarge"),
        ),
        missing("accelerator", INFERENTIA2, "it has no NVIDIA GPU", is_gpu=True),
        missing("accelerator", A10G, "it has no Neuron device", is_neuron=True),
        missing(
            "purpose",
            INFERENTIA2,
            "its Inferentia2 serves inference only, and `purpose` of the job's Neuron devices is training",
            is_training=True,
        ),
        missing("count", EIGHTH, "it has 0.125 of a GPU; whole ones are asked for", 1.0, gpu_count=1),
        missing("count", A10G, "it has 1 GPU; 2 are asked for", 0.5, gpu_count=2),
        missing("count", FOUR_A10G, "it has 4 GPUs; 5 are asked for", 0.2, gpu_count=5),
        missing("count", INFERENTIA2, "it has no GPUs; 1 are asked for", 1.0, gpu_count=1),
        missing("model", A10G, "its GPU is A10G; asked for is L4 or L40S", models=("L4", "L40S")),
        missing("model", INFERENTIA2, "its Neuron device is Inferentia2; asked for is Trainium", models=("Trainium",)),
        missing(
            "memory-per-card",
            A10G,
            "its GPU has 24 GiB of memory; 48 GiB are asked for",
            0.5,
            gpu_memory_mib=45_776,
        ),
        missing("share", A10G, "ECS takes one kind", share=ShareRequirement(1, conflict="ECS takes one kind")),
        missing(
            "share",
            A10G,
            "about 20,599 MiB of its GPU's 22,888 can be shared; 41,198 are asked for",
            0.5,
            share=ShareRequirement(41_198, 30),
        ),
        missing(
            "compute-capability",
            A10G,
            "its A10G has compute capability 8.6; 9.0 is asked for",
            compute_capability=(9, 0),
        ),
        missing(
            "compute-capability",
            FOUR_A10G,
            "the compute capability of its A10G is not known",
            compute_capability=(8, 0),
        ),
        missing("interconnect", A10G, "it has no Elastic Fabric Adapter (EFA)", interconnect=Interconnect.EFA),
        missing(
            "interconnect",
            FOUR_A10G,
            "its GPUs are not known to be connected by NVLink",
            interconnect=Interconnect.NVLINK,
        ),
        missing("neuron", A10G, "it has no Neuron devices; 1 are asked for", 1.0, neuron_devices=1),
        missing("neuron", ONE_DEVICE, "it has 1 Neuron device; 2 are asked for", 0.5, neuron_devices=2),
        missing("neuron", ONE_DEVICE, "it has 1 NeuronCore; 2 are asked for", 0.5, neuron_cores=2),
        missing("neuron", INFERENTIA2, "it has 12 NeuronCores; 16 are asked for", 0.25, neuron_cores=16),
        missing("vcpu", A10G, "it has 4 vCPU; the task reserves 5", 0.2, vcpus=5.0),
        missing("vcpu", A10G, "it has 4 vCPU; the task reserves 4.5", 1 - 4 / 4.5, vcpus=4.5),
        missing(
            "memory",
            A10G,
            "about 15,472 of its 16,384 MiB are left for tasks; the task reserves 30,944 MiB",
            0.5,
            memory_mib=30_944,
        ),
        missing("architecture", A10G, "its processor is x86_64; the task is for ARM64", architecture="ARM64"),
        missing(
            "architecture",
            make_instance_type(architecture="arm64"),
            "its processor is arm64; the task is for X86_64, the default of a task definition",
            architecture="X86_64",
        ),
        missing(
            "ports",
            A10G,
            "the task definition takes host port 22, which SSH has on every machine",
            host_ports=(8080, 22),
        ),
        missing(
            "ports",
            A10G,
            "the task definition takes host port 51678, which the ECS agent has on every machine",
            host_ports=(51_678,),
        ),
        missing("ports", A10G, "the task definition takes host port 80 twice", host_ports=(8080, 80, 80)),
    ],
)
def test_a_machine_that_lacks_something_is_told_what_and_how_much(filter_name, required, machine, reason, shortfall):
    found = FILTERS[filter_name](required, machine)

    assert found is not None
    assert (found.reason, found.is_permanent, found.retry_at) == (reason, True, None)
    assert found.shortfall == pytest.approx(shortfall)


@pytest.mark.parametrize(
    ("filter_name", "required", "machine"),
    [
        having("allow-list", A10G, "listed", instance_types=("g6.xlarge", "g5.xlarge")),
        having("accelerator", EIGHTH, "a part of a GPU is one", is_gpu=True),
        having("accelerator", ONE_DEVICE, "one device", is_neuron=True),
        having("purpose", A10G, "a GPU, whatever Neuron devices are for", is_training=True),
        having("purpose", INFERENTIA2, "inference", is_neuron=True),
        having("count", FOUR_A10G, "exactly as many GPUs", gpu_count=4),
        having("model", A10G, "one of the models", models=("L4", "a10g")),
        having("memory-per-card", A10G, "24 GB for 24 GiB", gpu_memory_mib=24_576),
        having(
            "memory-per-card",
            make_instance_type(gpu_memory_mib=9_300),
            "exactly the tolerance under it",
            gpu_memory_mib=10_000,
        ),
        having("compute-capability", A10G, "exactly the capability", compute_capability=(8, 6)),
        having("neuron", INFERENTIA2, "all devices and cores", neuron_devices=6, neuron_cores=12),
        having("vcpu", A10G, "all vCPUs", vcpus=4.0),
        having("memory", A10G, "all memory that is left", memory_mib=15_472),
        having("architecture", A10G, "as ECS writes it", architecture="X86_64"),
        having("ports", A10G, "ports of its own", host_ports=(80, 8080)),
    ],
)
def test_a_machine_that_just_has_it_is_kept(filter_name, required, machine):
    assert FILTERS[filter_name](required, machine) is None


def test_a_card_further_away_than_the_tolerance_is_another_card():
    found = FILTERS["memory-per-card"](Requirements(gpu_memory_mib=10_000), make_instance_type(gpu_memory_mib=9_299))

    assert found is not None


def test_ports_that_machines_need_themselves_are_those_the_api_reference_names():
    assert set(RESERVED_PORTS) == {22, 2375, 2376, 51_678, 51_679, 51_680}


@pytest.mark.parametrize(
    ("memory_mib", "text"),
    [
        *((22_888, "24 GiB"), (45_776, "48 GiB"), (2_861, "3 GiB"), (16_384, "16 GiB"), (144_384, "141 GiB")),
        *((183_359, "179.1 GiB"), (1_500, "1.465 GiB"), (0, "0 GiB")),
    ],
)
def test_the_memory_of_a_gpu_is_its_nominal_size(memory_mib, text):
    assert format_gpu_memory(memory_mib) == text


@pytest.mark.parametrize(
    ("memory_mib", "text"),
    [(1_024, "1 GiB"), (24_576, "24 GiB"), (2_097_152, "2,048 GiB"), (22_888, "22,888 MiB"), (1_023, "1,023 MiB")],
)
def test_memory_is_written_in_the_largest_unit_it_is_whole_in(memory_mib, text):
    assert format_mib(memory_mib) == text
