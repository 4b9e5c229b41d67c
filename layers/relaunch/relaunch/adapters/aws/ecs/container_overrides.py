"""The overrides of RunTask: command, environment and accelerators of the main container.

A `resourceRequirements` for GPUs has either a `value` (whole GPUs, or the fraction of a GPU of a fractional instance
type) or a `sharingStrategy` (a share of a GPU by NVIDIA MPS) ("ContainerOverride" and "ResourceRequirement", Amazon ECS
API Reference).
"""

from relaunch.core.launches.launch import (
    Accelerators,
    AllNeuronDevices,
    GpuPartition,
    GpuShare,
    LaunchRequest,
    NeuronDevices,
    WholeGpus,
)
from relaunch.core.selection.gpu_share import MAX_COMPUTE_PERCENT, MIN_COMPUTE_PERCENT


def build_overrides(request: LaunchRequest) -> dict[str, object]:
    """Return `overrides` of RunTask, identical for identical requests, as their client token requires."""
    container: dict[str, object] = {"name": request.container}
    if request.command:
        container["command"] = list(request.command)
    container["environment"] = [{"name": name, "value": value} for name, value in sorted(request.environment.items())]
    requirement = build_requirement(request.accelerators)
    if requirement:
        container["resourceRequirements"] = [requirement]
    return {"containerOverrides": [container]}


def build_requirement(accelerators: Accelerators | None) -> dict[str, object] | None:
    """Return the resource requirement; `value` is a string, `0.25` for a quarter of a GPU.

    None for what the revision has: single Neuron devices are in its `linuxParameters`, which RunTask cannot override.
    With a share, ECS sets CUDA_MPS_PINNED_DEVICE_MEM_LIMIT and CUDA_MPS_ACTIVE_THREAD_PERCENTAGE in the container. All
    Neuron devices can only be requested of ECS Managed Instances.
    """
    match accelerators:
        case None | NeuronDevices():
            return None
        case AllNeuronDevices():
            return {"type": "NeuronDevice", "value": "ALL"}
        case GpuShare(memory_mib, percent):
            allocation = {"memory": memory_mib, "maxComputePercent": percent}
            return {"type": "GPU", "sharingStrategy": {"nvidiaMps": allocation}}
        case GpuPartition(size):
            return {"type": "GPU", "value": f"{size:g}"}
        case WholeGpus(count):
            return {"type": "GPU", "value": str(count)}


def check_accelerators(accelerators: Accelerators | None) -> tuple[str, ...]:
    """Return the limits of ECS that the accelerators violate."""
    match accelerators:
        case WholeGpus(count) if count < 1:
            return (f"{count} is no number of GPUs",)
        case GpuPartition(size) if not 0 < size < 1:
            return (f"{size:g} is no part of a GPU",)
        case GpuShare(memory_mib, percent):
            return tuple(_share_violations(memory_mib, percent))
        case _:
            return ()


def _share_violations(memory_mib: int, percent: int) -> list[str]:
    violations = []
    if memory_mib < 1:
        violations.append(f"a share of a GPU has at least 1 MiB of memory, not {memory_mib}")
    if not MIN_COMPUTE_PERCENT <= percent <= MAX_COMPUTE_PERCENT:
        violations.append(f"a share of a GPU has 1 to 100 percent of its compute, not {percent}")
    return violations
