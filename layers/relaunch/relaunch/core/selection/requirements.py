"""What one job needs of a machine: its definition and its pinned revision read together."""

import math
from dataclasses import dataclass

from relaunch.core.definitions.accelerator import Interconnect
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.revisions.main_container import main_container
from relaunch.core.revisions.revision import NEURON_DEVICE_PATH, ContainerRequirement, Revision
from relaunch.core.selection.gpu_share import ShareRequirement, derive_share

# What the kernel and the hypervisor keep of the memory that DescribeInstanceTypes reports; the ECS agent registers
# what is left ("Reserving Amazon ECS Linux container instance memory", ECS Developer Guide). Measured on Amazon Linux
# for accelerated types it is 1.8 % (g3.4xlarge) to 4.3 % (g4dn.xlarge: 699 of 16,384 MiB), the larger share on the
# smaller machine: a fixed part and a share cover all of them. Keeping too much only costs a larger machine; keeping
# too little starts a machine on which the task is never placed.
KEPT_MEMORY_MIB = 256
KEPT_MEMORY_SHARE = 0.04

# A card's "24 GB" are 24 x 10^9 bytes to its maker, 22,888 MiB to DescribeInstanceTypes, and 24 GiB = 24,576 MiB to
# most people who write a definition: 6.87 % apart. A request accepts cards down to 7 % under it; the next smaller
# card on offer is always further away.
CARD_MEMORY_TOLERANCE = 0.07


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a machine must have; zero or empty means: nothing is asked.

    `gpu_count` counts whole GPUs of all containers together; `gpu_memory_mib` is per card. `share` is set instead where
    a share of one card is asked for. `compute_capability` is the least acceptable one. `host_ports` are the TCP ports
    of the machine that containers of the task take, as often as they do. `platforms` tells of each container whose
    image is known what that is for.
    """

    is_gpu: bool = False
    is_neuron: bool = False
    instance_types: tuple[str, ...] = ()
    gpu_count: int = 0
    gpu_memory_mib: int = 0
    models: tuple[str, ...] = ()
    neuron_devices: int = 0
    neuron_cores: int = 0
    vcpus: float = 0.0
    memory_mib: int = 0
    architecture: str = ""
    network_mode: str = ""
    share: ShareRequirement | None = None
    compute_capability: tuple[int, int] | None = None
    interconnect: Interconnect | None = None
    host_ports: tuple[int, ...] = ()
    platforms: tuple[tuple[str, tuple[str, ...]], ...] = ()


def usable_memory_mib(memory_mib: int) -> int:
    """Return what ECS can give to tasks of an instance's memory as DescribeInstanceTypes reports it."""
    return memory_mib - KEPT_MEMORY_MIB - math.ceil(memory_mib * KEPT_MEMORY_SHARE)


def fills_machine(required: Requirements, machine: InstanceType) -> bool:
    """Tell whether no second task of this kind has room on the machine beside the first."""
    if required.share is not None:
        return False
    usable = usable_memory_mib(machine.memory_mib)
    return (
        2 * required.gpu_count > machine.gpu_count > 0
        or 2 * required.neuron_devices > machine.neuron_devices > 0
        or 2 * required.neuron_cores > machine.neuron_cores > 0
        or 2 * required.vcpus > machine.vcpus
        or 2 * required.memory_mib > usable
    )


def required_gpus(definition: JobDefinition, revision: Revision | None) -> int:
    """Return the whole GPUs of all containers together, once the definition's count has replaced its container's.

    Without `gpu` in the definition the revision's own count holds.
    """
    gpu = definition.accelerator.gpu
    own = gpu.count if gpu and not gpu.is_share else 0
    return own + sum(each.gpu_count for each in _as_registered(definition, revision))


def required_share(definition: JobDefinition, revision: Revision | None) -> ShareRequirement | None:
    """Return the share of a card the task needs, by the definition or else by the revision; None without one."""
    return derive_share(definition.accelerator.gpu, _as_registered(definition, revision))


def _as_registered(definition: JobDefinition, revision: Revision | None) -> tuple[ContainerRequirement, ...]:
    """Return the containers that keep the GPU requirement the revision gives them."""
    if revision is None:
        return ()
    if definition.accelerator.gpu is None:
        return revision.containers
    counted = main_container(definition, revision)
    return tuple(each for each in revision.containers if each.name != counted)


def derive_requirements(definition: JobDefinition, revision: Revision | None) -> Requirements:
    """Read definition and revision together; without a revision only the definition's needs are known."""
    accelerator = definition.accelerator
    gpu, neuron = accelerator.gpu, accelerator.neuron
    share = required_share(definition, revision)
    return Requirements(
        is_gpu=gpu is not None or share is not None,
        is_neuron=neuron is not None,
        instance_types=tuple(name.lower() for name in accelerator.instance_types),
        gpu_count=required_gpus(definition, revision),
        gpu_memory_mib=(gpu.memory_mib or 0) if gpu and not gpu.is_share else 0,
        models=gpu.models if gpu else (),
        neuron_devices=max((neuron.devices or 0) if neuron else 0, _listed_devices(revision)),
        neuron_cores=(neuron.cores or 0) if neuron else 0,
        vcpus=_required_vcpus(revision),
        memory_mib=_required_memory_mib(revision),
        architecture=revision.architecture if revision else "",
        network_mode=revision.network_mode if revision else "",
        share=share,
        compute_capability=gpu.compute_capability if gpu else None,
        interconnect=gpu.interconnect if gpu else None,
        host_ports=_taken_ports(revision),
        platforms=tuple((each.name, each.platforms) for each in _containers(revision) if each.platforms),
    )


def _containers(revision: Revision | None) -> tuple[ContainerRequirement, ...]:
    return revision.containers if revision else ()


def _taken_ports(revision: Revision | None) -> tuple[int, ...]:
    return tuple(port for each in _containers(revision) for port in each.host_ports)


def _listed_devices(revision: Revision | None) -> int:
    """Return how many Neuron devices a machine needs to have every `/dev/neuronN` of the revision; N starts at 0."""
    paths = (NEURON_DEVICE_PATH.fullmatch(path) for each in _containers(revision) for path in each.neuron_devices)
    return max((int(path["number"]) for path in paths if path), default=-1) + 1


def _required_vcpus(revision: Revision | None) -> float:
    if revision is None:
        return 0.0
    return max(revision.vcpus, sum(each.vcpus for each in revision.containers))


def _required_memory_mib(revision: Revision | None) -> int:
    if revision is None:
        return 0
    return max(revision.memory_mib, sum(each.memory_mib for each in revision.containers))
