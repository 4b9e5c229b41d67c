"""How a container asks ECS for GPUs: `resourceRequirements` of its override ("ResourceRequirement", ECS API Reference).

A requirement has a `value` (whole GPUs, or the part of one that a fractional instance type has) or a `sharingStrategy`
(a share of a card by NVIDIA MPS), never both: each way of asking is a type of its own here.
"""

from dataclasses import dataclass
from typing import assert_never

from relaunch.core.accelerator import GpuRequirement
from relaunch.core.gpu_share import MAX_COMPUTE_PERCENT, MIN_COMPUTE_PERCENT


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
    match override:
        case WholeGpus(count):
            return {"type": "GPU", "value": str(count)}
        case GpuPartition(size):
            return {"type": "GPU", "value": f"{size:g}"}
        case MpsShare(memory_mib, max_compute_percent):
            allocation = {"memory": memory_mib, "maxComputePercent": max_compute_percent}
            return {"type": "GPU", "sharingStrategy": {"nvidiaMps": allocation}}
        case _:
            assert_never(override)


def check_override(override: GpuOverride) -> tuple[str, ...]:
    """Return in words which limits of ECS the requirement breaks."""
    match override:
        case WholeGpus(count):
            return () if count >= 1 else (f"{count} is no number of GPUs",)
        case GpuPartition(size):
            return () if 0 < size < 1 else (f"{size:g} is no part of a GPU",)
        case MpsShare(memory_mib, percent):
            violations = [] if memory_mib >= 1 else [f"a share of a GPU has at least 1 MiB of memory, not {memory_mib}"]
            if not MIN_COMPUTE_PERCENT <= percent <= MAX_COMPUTE_PERCENT:
                violations.append(f"a share of a GPU has 1 to 100 percent of its compute, not {percent}")
            return tuple(violations)
        case _:
            assert_never(override)
