"""GPU requirements in a container override: `resourceRequirements` ("ResourceRequirement", ECS API Reference).

A requirement has either a `value` (whole GPUs, or the fraction of a GPU of a fractional instance type) or a
`sharingStrategy` (a share of a GPU by NVIDIA MPS).
"""

from dataclasses import dataclass

from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.selection.gpu_share import MAX_COMPUTE_PERCENT, MIN_COMPUTE_PERCENT


@dataclass(frozen=True, slots=True)
class WholeGpus:
    """A number of whole GPUs for the container alone."""

    count: int


@dataclass(frozen=True, slots=True)
class GpuPartition:
    """The fraction of a GPU of a fractional instance type (g6f, gr6f), above 0 and below 1."""

    size: float


@dataclass(frozen=True, slots=True)
class MpsShare:
    """A share of a GPU: memory in MiB, and a limit on compute in percent, which is not reserved.

    ECS sets CUDA_MPS_PINNED_DEVICE_MEM_LIMIT and CUDA_MPS_ACTIVE_THREAD_PERCENTAGE in the container.
    """

    memory_mib: int
    max_compute_percent: int


GpuOverride = WholeGpus | GpuPartition | MpsShare


def choose_override(gpu: GpuRequirement | None, partition_size: float) -> GpuOverride | None:
    """Return the override for the definition's GPUs; None to keep the requirement of the revision.

    `partition_size` is that of the chosen instance type: 1 for whole GPUs.
    """
    if gpu is None:
        return None
    if not gpu.is_share:
        return WholeGpus(gpu.count)
    if partition_size < 1:
        return GpuPartition(partition_size)
    return MpsShare(gpu.memory_mib or 0, gpu.compute_percent or 0)


def build_requirement(override: GpuOverride) -> dict[str, object]:
    """Return the resource requirement; `value` is a string, `0.25` for a quarter of a GPU."""
    if isinstance(override, MpsShare):
        allocation = {"memory": override.memory_mib, "maxComputePercent": override.max_compute_percent}
        return {"type": "GPU", "sharingStrategy": {"nvidiaMps": allocation}}
    value = str(override.count) if isinstance(override, WholeGpus) else f"{override.size:g}"
    return {"type": "GPU", "value": value}


def check_override(override: GpuOverride) -> tuple[str, ...]:
    """Return the limits of ECS that the override violates."""
    if isinstance(override, WholeGpus):
        return () if override.count >= 1 else (f"{override.count} is no number of GPUs",)
    if isinstance(override, GpuPartition):
        return () if 0 < override.size < 1 else (f"{override.size:g} is no part of a GPU",)
    violations = []
    if override.memory_mib < 1:
        violations.append(f"a share of a GPU has at least 1 MiB of memory, not {override.memory_mib}")
    if not MIN_COMPUTE_PERCENT <= override.max_compute_percent <= MAX_COMPUTE_PERCENT:
        violations.append(f"a share of a GPU has 1 to 100 percent of its compute, not {override.max_compute_percent}")
    return tuple(violations)
