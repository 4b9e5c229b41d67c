"""How a container asks ECS for GPUs: `resourceRequirements` of its override ("ResourceRequirement", ECS API Reference).

A requirement has a `value` (whole GPUs, or the part of one that a fractional instance type has) or a `sharingStrategy`
(a share of a card by NVIDIA MPS), never both: each way of asking is a type of its own here.
"""

from dataclasses import dataclass

from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.selection.gpu_share import MAX_COMPUTE_PERCENT, MIN_COMPUTE_PERCENT


@dataclass(frozen=True, slots=True)
class WholeGpus:
    """This many GPUs, for this container alone."""

    count: int


@dataclass(frozen=True, slots=True)
class GpuPartition:
    """The part of a GPU that a fractional instance type (g6f, gr6f) has: above 0 and below 1."""

    size: float


@dataclass(frozen=True, slots=True)
class MpsShare:
    """A share of one GPU: MiB of its memory, and at most this percentage of its compute (a limit, not a reservation).

    ECS gives the container CUDA_MPS_PINNED_DEVICE_MEM_LIMIT and CUDA_MPS_ACTIVE_THREAD_PERCENTAGE.
    """

    memory_mib: int
    max_compute_percent: int


GpuOverride = WholeGpus | GpuPartition | MpsShare


def choose_override(gpu: GpuRequirement | None, partition_size: float) -> GpuOverride | None:
    """Return how to ask for what the definition wants on the type that was chosen; None: as the revision does.

    `partition_size` is the chosen type's: 1 for whole GPUs.
    """
    if gpu is None:
        return None
    if not gpu.is_share:
        return WholeGpus(gpu.count)
    if partition_size < 1:
        return GpuPartition(partition_size)
    return MpsShare(gpu.memory_mib or 0, gpu.compute_percent or 0)


def build_requirement(override: GpuOverride) -> dict[str, object]:
    """Build the resource requirement; `value` is text, `0.25` for a quarter of a GPU."""
    if isinstance(override, MpsShare):
        allocation = {"memory": override.memory_mib, "maxComputePercent": override.max_compute_percent}
        return {"type": "GPU", "sharingStrategy": {"nvidiaMps": allocation}}
    value = str(override.count) if isinstance(override, WholeGpus) else f"{override.size:g}"
    return {"type": "GPU", "value": value}


def check_override(override: GpuOverride) -> tuple[str, ...]:
    """Return in words which limits of ECS the requirement breaks."""
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
