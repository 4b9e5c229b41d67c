from dataclasses import replace

import pytest

from fakes.builders import make_container, make_instance_type
from relaunch.core.definitions.accelerator import GpuRequirement, Interconnect, NeuronPurpose
from relaunch.core.selection.gpu_share import ShareRequirement
from relaunch.core.selection.requirements import (
    Requirements,
    derive_requirements,
    fills_instance,
    required_gpus,
    usable_memory_mib,
)
from unit.core.selection.offered import (
    INFERENTIA2,
    NO_GPU_REVISION,
    ONE_GPU,
    needing,
    needing_gpu,
    needing_neuron,
    revision_of,
)

FOUR_GPUS = needing_gpu(count=4)
NO_COUNT = needing(instance_types=("g5.xlarge",))
MAIN = make_container(name="main", gpu_count=1)
SIDECAR = make_container(name="metrics", gpu_count=2)


@pytest.mark.parametrize(
    ("definition", "containers", "gpus"),
    [
        pytest.param(ONE_GPU, None, 1, id="no revision yet"),
        pytest.param(NO_COUNT, None, 0, id="no revision and no count"),
        pytest.param(FOUR_GPUS, (MAIN,), 4, id="the definition's count replaces the container's"),
        pytest.param(replace(FOUR_GPUS, container=None), (MAIN,), 4, id="the only container need not be named"),
        pytest.param(FOUR_GPUS, (MAIN, SIDECAR), 6, id="other containers keep theirs"),
        pytest.param(NO_COUNT, (MAIN, SIDECAR), 3, id="the revision's own counts hold"),
    ],
)
def test_gpus_of_all_containers_are_needed_together(definition, containers, gpus):
    revision = None if containers is None else revision_of(*containers)

    assert required_gpus(definition, revision) == gpus


FOUR_GPUS_OF_48 = make_instance_type(gpu_count=4, vcpus=48, memory_mib=196_608)
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
        pytest.param(Requirements(neuron_devices=3), INFERENTIA2, False, id="half of the devices"),
        pytest.param(Requirements(neuron_devices=4), INFERENTIA2, True, id="more than half of the devices"),
        pytest.param(Requirements(neuron_cores=6), INFERENTIA2, False, id="half of the cores"),
        pytest.param(Requirements(neuron_cores=7), INFERENTIA2, True, id="more than half of the cores"),
        pytest.param(Requirements(neuron_devices=1), ONE_CHIP, True, id="the only device"),
        pytest.param(Requirements(neuron_cores=1), ONE_CHIP, True, id="the only core"),
        pytest.param(Requirements(memory_mib=7_736), ONE_CHIP, False, id="exactly half of what is left of the memory"),
        pytest.param(Requirements(memory_mib=7_737), ONE_CHIP, True, id="more than half of what is left of the memory"),
        pytest.param(Requirements(gpu_count=1), INFERENTIA2, False, id="GPUs where there are none"),
        pytest.param(Requirements(neuron_devices=1), FOUR_GPUS_OF_48, False, id="devices where there are none"),
        pytest.param(Requirements(neuron_cores=1), FOUR_GPUS_OF_48, False, id="cores where there are none"),
        pytest.param(Requirements(share=ShareRequirement(2_048, 90), vcpus=40.0), FOUR_GPUS_OF_48, False, id="a share"),
    ],
)
def test_a_task_fills_a_machine_that_has_no_room_for_a_second_one(required, machine, fills):
    assert fills_instance(required, machine) is fills


def test_without_a_revision_only_the_definition_is_known():
    definition = needing(
        gpu=GpuRequirement(count=2, memory_mib=24_576, models=("L4",)), instance_types=("G6.12xlarge",)
    )

    assert derive_requirements(definition, None) == Requirements(
        is_gpu=True,
        gpu_count=2,
        gpu_memory_mib=24_576,
        models=("L4",),
        instance_types=("g6.12xlarge",),
        architecture="X86_64",
    )


def test_a_gpu_of_any_memory_will_do_where_none_is_named():
    assert derive_requirements(ONE_GPU, None) == Requirements(is_gpu=True, gpu_count=1, architecture="X86_64")


def test_everything_that_definition_and_revision_ask_for_is_needed():
    definition = needing_gpu(
        count=2, memory_mib=24_576, models=("A100",), compute_capability=(8, 0), interconnect=Interconnect.NVLINK
    )
    main = replace(MAIN, host_ports=(80,), platforms=("linux/amd64",), memory_mib=1_024, vcpus=1.0)
    metrics = replace(SIDECAR, host_ports=(9_100, 9_101), memory_mib=512, vcpus=0.5)
    revision = revision_of(main, metrics, architecture="ARM64", network_mode="host", memory_mib=0, vcpus=0.0)

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


def test_neuron_devices_and_cores_are_needed_as_the_definition_says():
    by_devices = derive_requirements(needing_neuron(devices=3), None)
    by_cores = derive_requirements(needing_neuron(cores=5, models=("Inferentia2",)), None)
    training = derive_requirements(needing_neuron(cores=5, purpose=NeuronPurpose.TRAINING), None)

    assert by_devices == Requirements(is_neuron=True, neuron_devices=3, architecture="X86_64")
    assert by_cores == Requirements(is_neuron=True, neuron_cores=5, models=("Inferentia2",), architecture="X86_64")
    assert (by_cores.is_training, training.is_training) == (False, True)


def test_a_share_is_needed_instead_of_a_card_and_its_memory():
    required = derive_requirements(needing_gpu(memory_mib=2_048, compute_percent=30), None)

    assert required == Requirements(is_gpu=True, share=ShareRequirement(2_048, 30), architecture="X86_64")


def test_the_size_of_the_task_is_reserved_or_else_that_of_its_containers():
    containers = (make_container(memory_mib=6_000, vcpus=2.0), make_container(memory_mib=3_000, vcpus=1.0))

    by_containers = derive_requirements(ONE_GPU, revision_of(*containers, memory_mib=0, vcpus=0.0))
    by_task = derive_requirements(ONE_GPU, revision_of(*containers, memory_mib=8_000, vcpus=4.0))

    assert (by_containers.memory_mib, by_containers.vcpus) == (9_000, 3.0)
    assert (by_task.memory_mib, by_task.vcpus) == (8_000, 4.0)


def test_devices_that_the_revision_lists_must_be_there():
    neuron = needing_neuron(devices=1)
    listing = make_container(gpu_count=0, neuron_devices=("/dev/neuron0", "/dev/neuron5", "/dev/fuse"))

    assert derive_requirements(neuron, revision_of(listing)).neuron_devices == 6
    assert derive_requirements(neuron, NO_GPU_REVISION).neuron_devices == 1


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
def test_no_more_memory_is_counted_on_than_machines_were_seen_to_have(memory_mib, kept_mib):
    usable = usable_memory_mib(memory_mib)

    assert usable <= memory_mib - kept_mib
    assert usable > 0.92 * memory_mib
