from dataclasses import replace

import pytest

from fakes.builders import make_container, make_definition, make_instance_type, make_revision
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    Interconnect,
    NeuronRequirement,
)
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.revisions.revision import ContainerRequirement
from relaunch.core.selection.gpu_share import ShareRequirement
from relaunch.core.selection.requirements import (
    Requirements,
    derive_requirements,
    fills_instance,
    required_gpus,
    usable_memory_mib,
)

ONE_GPU = make_definition(accelerator=AcceleratorRequirement(gpu=GpuRequirement(count=1)))
FOUR_GPUS = make_definition(accelerator=AcceleratorRequirement(gpu=GpuRequirement(count=4)))
NO_COUNT = make_definition(accelerator=AcceleratorRequirement(instance_types=("g5.xlarge",)))
MAIN = make_container(name="main", gpu_count=1)
SIDECAR = make_container(name="metrics", gpu_count=2)


@pytest.mark.parametrize(
    ("definition", "containers", "gpus"),
    [
        pytest.param(ONE_GPU, None, 1, id="no revision yet"),
        pytest.param(NO_COUNT, None, 0, id="no revision and no count"),
        pytest.param(FOUR_GPUS, (MAIN,), 4, id="the definition's count replaces the container's"),
        pytest.param(FOUR_GPUS, (MAIN, SIDECAR), 6, id="other containers keep theirs"),
        pytest.param(NO_COUNT, (MAIN, SIDECAR), 3, id="the revision's own counts hold"),
    ],
)
def test_gpus_of_all_containers_are_needed_together(
    definition: JobDefinition, containers: tuple[ContainerRequirement, ...] | None, gpus: int
) -> None:
    revision = None if containers is None else make_revision(containers=containers)

    assert required_gpus(definition, revision) == gpus


FOUR_GPUS_OF_48 = make_instance_type(gpu_count=4, vcpus=48, memory_mib=196_608)
SIX_CHIPS = make_instance_type(gpu_count=0, neuron_devices=6, neuron_cores_per_device=2, vcpus=96, memory_mib=393_216)

ONE_CHIP = make_instance_type(gpu_count=0, neuron_devices=1, neuron_cores_per_device=1, vcpus=4, memory_mib=16_384)


@pytest.mark.parametrize(
    ("required", "machine", "fills"),
    [
        pytest.param(Requirements(gpu_count=2), FOUR_GPUS_OF_48, False, id="half of the GPUs"),
        pytest.param(Requirements(gpu_count=3), FOUR_GPUS_OF_48, True, id="more than half of the GPUs"),
        pytest.param(Requirements(vcpus=24.0), FOUR_GPUS_OF_48, False, id="half of the vCPUs"),
        pytest.param(Requirements(vcpus=24.5), FOUR_GPUS_OF_48, True, id="more than half of the vCPUs"),
        pytest.param(
            Requirements(memory_mib=94_000), FOUR_GPUS_OF_48, False, id="less than half of what is left of the memory"
        ),
        pytest.param(
            Requirements(memory_mib=98_304), FOUR_GPUS_OF_48, True, id="half of the memory, of which some is kept"
        ),
        pytest.param(Requirements(neuron_devices=3), SIX_CHIPS, False, id="half of the devices"),
        pytest.param(Requirements(neuron_devices=4), SIX_CHIPS, True, id="more than half of the devices"),
        pytest.param(Requirements(neuron_cores=6), SIX_CHIPS, False, id="half of the cores"),
        pytest.param(Requirements(neuron_cores=7), SIX_CHIPS, True, id="more than half of the cores"),
        pytest.param(Requirements(neuron_devices=1), ONE_CHIP, True, id="the only device"),
        pytest.param(Requirements(neuron_cores=1), ONE_CHIP, True, id="the only core"),
        pytest.param(Requirements(memory_mib=7_736), ONE_CHIP, False, id="exactly half of what is left of the memory"),
        pytest.param(Requirements(memory_mib=7_737), ONE_CHIP, True, id="more than half of what is left of the memory"),
        pytest.param(Requirements(gpu_count=1), SIX_CHIPS, False, id="GPUs where there are none"),
        pytest.param(Requirements(neuron_devices=1), FOUR_GPUS_OF_48, False, id="devices where there are none"),
        pytest.param(Requirements(neuron_cores=1), FOUR_GPUS_OF_48, False, id="cores where there are none"),
        pytest.param(Requirements(share=ShareRequirement(2_048, 90), vcpus=40.0), FOUR_GPUS_OF_48, False, id="a share"),
    ],
)
def test_a_task_fills_a_machine_that_has_no_room_for_a_second_one(
    required: Requirements, machine: InstanceType, fills: bool
) -> None:
    assert fills_instance(required, machine) is fills


def test_without_a_revision_only_the_definition_is_known() -> None:
    definition = make_definition(
        accelerator=AcceleratorRequirement(
            gpu=GpuRequirement(count=2, memory_mib=24_576, models=("L4",)), instance_types=("G6.12xlarge",)
        )
    )

    assert derive_requirements(definition, None) == Requirements(
        is_gpu=True, gpu_count=2, gpu_memory_mib=24_576, models=("L4",), instance_types=("g6.12xlarge",)
    )


def test_everything_that_definition_and_revision_ask_for_is_needed() -> None:
    gpu = GpuRequirement(
        count=2,
        memory_mib=24_576,
        models=("A100",),
        compute_capability=(8, 0),
        interconnect=Interconnect.NVLINK,
    )
    main = replace(MAIN, host_ports=(80,), platforms=("linux/amd64",), memory_mib=1_024, vcpus=1.0)
    metrics = replace(SIDECAR, host_ports=(9_100, 9_101), memory_mib=512, vcpus=0.5)
    revision = make_revision(
        containers=(main, metrics), architecture="ARM64", network_mode="host", memory_mib=0, vcpus=0.0
    )
    definition = make_definition(accelerator=AcceleratorRequirement(gpu=gpu))

    assert derive_requirements(definition, revision) == Requirements(
        is_gpu=True,
        gpu_count=4,
        gpu_memory_mib=24_576,
        models=("A100",),
        vcpus=1.5,
        memory_mib=1_536,
        architecture="ARM64",
        network_mode="host",
        compute_capability=(8, 0),
        interconnect=Interconnect.NVLINK,
        host_ports=(80, 9_100, 9_101),
        platforms=(("main", ("linux/amd64",)),),
    )


def test_neuron_devices_and_cores_are_needed_as_the_definition_says() -> None:
    by_devices, by_cores = (
        derive_requirements(make_definition(accelerator=AcceleratorRequirement(neuron=asked)), None)
        for asked in (NeuronRequirement(devices=3), NeuronRequirement(cores=5))
    )

    assert by_devices == Requirements(is_neuron=True, neuron_devices=3)
    assert by_cores == Requirements(is_neuron=True, neuron_cores=5)


def test_a_share_is_needed_instead_of_a_card_and_its_memory() -> None:
    share = GpuRequirement(memory_mib=2_048, compute_percent=30)

    required = derive_requirements(make_definition(accelerator=AcceleratorRequirement(gpu=share)), None)

    assert required == Requirements(is_gpu=True, share=ShareRequirement(2_048, 30))


def test_the_larger_of_the_task_and_its_containers_is_reserved() -> None:
    containers = (make_container(memory_mib=6_000, vcpus=2.0), make_container(memory_mib=3_000, vcpus=1.0))

    by_containers = derive_requirements(ONE_GPU, make_revision(containers=containers, memory_mib=0, vcpus=0.0))
    by_task = derive_requirements(ONE_GPU, make_revision(containers=containers, memory_mib=12_000, vcpus=4.0))

    assert (by_containers.memory_mib, by_containers.vcpus) == (9_000, 3.0)
    assert (by_task.memory_mib, by_task.vcpus) == (12_000, 4.0)


def test_devices_that_the_revision_lists_must_be_there() -> None:
    neuron = make_definition(accelerator=AcceleratorRequirement(neuron=NeuronRequirement(devices=1)))
    listing = make_container(gpu_count=0, neuron_devices=("/dev/neuron0", "/dev/neuron5", "/dev/fuse"))

    assert derive_requirements(neuron, make_revision(containers=(listing,))).neuron_devices == 6
    assert derive_requirements(neuron, make_revision(containers=(make_container(gpu_count=0),))).neuron_devices == 1


@pytest.mark.parametrize(
    ("memory_mib", "kept_mib"),
    [
        # Memory that Amazon Linux did not show on accelerated types, as karpenter-provider-aws measured it in 2023.
        pytest.param(8_192, 420, id="g5g.xlarge"),
        pytest.param(16_384, 700, id="g4dn.xlarge"),
        pytest.param(32_768, 1_149, id="g4dn.2xlarge"),
        pytest.param(62_464, 1_198, id="p3.2xlarge"),
        pytest.param(196_608, 5_540, id="g4dn.12xlarge"),
        pytest.param(786_432, 20_552, id="g5.48xlarge"),
    ],
)
def test_no_more_memory_is_counted_on_than_machines_were_seen_to_have(memory_mib: int, kept_mib: int) -> None:
    usable = usable_memory_mib(memory_mib)

    assert usable <= memory_mib - kept_mib
    assert usable > 0.92 * memory_mib
