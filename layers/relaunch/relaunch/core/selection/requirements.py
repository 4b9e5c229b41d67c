"""The requirements of a job for an instance, and whether its definition fits its revision and the containers there."""

import math
import re
from collections.abc import Iterable

from relaunch.core.definitions.accelerator import Interconnect, NeuronPurpose
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.records import dataclass
from relaunch.core.revisions.revision import (
    DEFAULT_ARCHITECTURE,
    NEURON_DEVICE_PATH,
    ContainerRequirement,
    Revision,
    main_container,
)
from relaunch.core.selection.gpu_share import ShareRequirement, derive_share, find_conflict

# The memory that kernel and hypervisor reserve of what DescribeInstanceTypes reports; the ECS agent registers the rest
# ("Reserving Amazon ECS Linux container instance memory", ECS Developer Guide). Measured on Amazon Linux with
# accelerated types: 1.8 % (g3.4xlarge) to 4.3 % (g4dn.xlarge: 699 of 16,384 MiB). An estimate that is too high selects
# a larger instance; one that is too low starts an instance on which the task is never placed.
RESERVED_MEMORY_MIB = 256
RESERVED_MEMORY_FRACTION = 0.04

# A GPU with "24 GB" (24 x 10^9 bytes) has 22,888 MiB in DescribeInstanceTypes, but most definitions mean it by 24 GiB =
# 24,576 MiB, which is 6.87 % more. GPUs with up to 7 % less than required are therefore accepted; the next smaller GPU
# on EC2 always has less than that.
GPU_MEMORY_TOLERANCE = 0.07


@dataclass(frozen=True, slots=True)
class Requirements:
    """What an instance must have; zero or empty means no requirement.

    `gpu_count` is the number of whole GPUs of all containers, `gpu_memory_mib` is per GPU; `share` is set instead for a
    share of a GPU. `models` are those of GPUs or Neuron devices. `is_training` is whether Neuron devices are for
    training. `compute_capability` is the minimum. `host_ports` are the TCP host ports of all containers, with
    duplicates. `platforms` are the known platforms of the image of each container. `placement_constraints` are those of
    the revision, and `is_managed_only` whether ECS runs it on Managed Instances alone.
    """

    is_gpu: bool = False
    is_neuron: bool = False
    is_training: bool = False
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
    placement_constraints: tuple[str, ...] = ()
    is_managed_only: bool = False


def usable_memory_mib(memory_mib: int) -> int:
    """Return the memory available to tasks, given that reported by DescribeInstanceTypes."""
    return memory_mib - RESERVED_MEMORY_MIB - math.ceil(memory_mib * RESERVED_MEMORY_FRACTION)


def fills_instance(required: Requirements, machine: InstanceType) -> bool:
    """Return whether the instance type has no room for two tasks with these requirements."""
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
    """Return the number of whole GPUs of all containers.

    `gpu` in the definition replaces the requirement of the main container.
    """
    gpu = definition.accelerator.gpu
    own = gpu.count if gpu and not gpu.is_share else 0
    return own + sum(each.gpu_count for each in _unchanged_containers(definition, revision))


def required_share(definition: JobDefinition, revision: Revision | None) -> ShareRequirement | None:
    """Return the share of a GPU that the definition or else the revision requires; None if neither does."""
    return derive_share(definition.accelerator.gpu, _unchanged_containers(definition, revision))


def _unchanged_containers(definition: JobDefinition, revision: Revision | None) -> tuple[ContainerRequirement, ...]:
    """Return the containers that keep the GPU requirement of the revision."""
    if revision is None:
        return ()
    if definition.accelerator.gpu is None:
        return revision.containers
    main = main_container(definition, revision)
    return tuple(each for each in revision.containers if each.name != main)


def derive_requirements(definition: JobDefinition, revision: Revision | None) -> Requirements:
    """Return the requirements of a definition and a revision; without a revision, only those of the definition.

    Without a revision the architecture is that of a task definition that names none.
    """
    accelerator = definition.accelerator
    gpu = accelerator.gpu
    neuron = accelerator.neuron
    share = required_share(definition, revision)
    containers = revision.containers if revision else ()
    return Requirements(
        is_gpu=gpu is not None or share is not None,
        is_neuron=neuron is not None,
        is_training=neuron is not None and neuron.purpose is NeuronPurpose.TRAINING,
        instance_types=tuple(name.lower() for name in accelerator.instance_types),
        gpu_count=required_gpus(definition, revision),
        gpu_memory_mib=(gpu.memory_mib or 0) if gpu and not gpu.is_share else 0,
        models=accelerator.models,
        neuron_devices=max((neuron.devices or 0) if neuron else 0, _listed_devices(containers)),
        neuron_cores=(neuron.cores or 0) if neuron else 0,
        vcpus=revision.vcpus or sum(each.vcpus for each in containers) if revision else 0.0,
        memory_mib=revision.memory_mib or sum(each.memory_mib for each in containers) if revision else 0,
        architecture=revision.architecture if revision else DEFAULT_ARCHITECTURE,
        network_mode=revision.network_mode if revision else "",
        share=share,
        compute_capability=gpu.compute_capability if gpu else None,
        interconnect=gpu.interconnect if gpu else None,
        host_ports=tuple(port for each in containers for port in each.host_ports),
        platforms=tuple((each.name, each.platforms) for each in containers if each.platforms),
        placement_constraints=revision.placement_constraints if revision else (),
        is_managed_only=revision.is_managed_only if revision else False,
    )


def _listed_devices(containers: Iterable[ContainerRequirement]) -> int:
    """Return how many Neuron devices a machine needs to have every `/dev/neuronN` of the revision; N starts at 0."""
    paths = (re.fullmatch(NEURON_DEVICE_PATH, path) for each in containers for path in each.neuron_devices)
    return max((int(path["number"]) for path in paths if path), default=-1) + 1


def container_problem(definition: JobDefinition, revision: Revision) -> str | None:
    """Return what is wrong with a revision; None if Relaunch and ECS can launch it and the main container is known."""
    of_nodes = _nodes_problem(definition, revision)
    return _refusal(revision) or of_nodes or _naming_problem(definition, revision) or _conflict(definition, revision)


def _nodes_problem(definition: JobDefinition, revision: Revision) -> str:
    """Return why the ranks of a job could not find each other: in other modes rank 0 has no address of its machine."""
    if definition.nodes == 1 or revision.network_mode == "host":
        return ""
    # Pods have an address of their own.
    if definition.target.capabilities.runs_pods:
        return ""
    return (
        f"{revision.family}:{revision.revision}: the {definition.nodes} nodes of a job meet at the address of a "
        f"machine, and its network mode is {revision.network_mode or 'bridge'}: set networkMode to host, which the "
        "stack allows with its parameter HostAccess"
    )


def _refusal(revision: Revision) -> str:
    return f"{revision.family}:{revision.revision}: {'; '.join(revision.refusals)}" if revision.refusals else ""


def _conflict(definition: JobDefinition, revision: Revision) -> str | None:
    main = definition.container or revision.containers[0].name
    conflict = find_conflict(definition.accelerator.gpu, (each for each in revision.containers if each.name != main))
    return f"{revision.family}:{revision.revision}: {conflict}" if conflict else None


def _naming_problem(definition: JobDefinition, revision: Revision) -> str | None:
    names = [container.name for container in revision.containers]
    shown = f"{revision.family}:{revision.revision}"
    if definition.container is None:
        if len(names) == 1:
            return None
        return f"{shown} has several containers: say which one counts with `container`: {', '.join(names)}"
    if definition.container in names:
        return None
    return f"{shown} has no container `{definition.container}`: it has {', '.join(names)}"
