"""Shares of a GPU on ECS: types that support them, the limits of ECS, and whether one fits on an instance now.

A share is either allocated by NVIDIA MPS (`sharingStrategy.nvidiaMps`), or is the fraction of a GPU that a fractional
instance type has (`value` `0.25` on g6f and gr6f). Sources: ResourceRequirement, NvidiaMpsAllocation and GpuDevice
(Amazon ECS API Reference), "Amazon ECS task definitions for GPU workloads" (Developer Guide) and "Volta MPS" (NVIDIA
Multi-Process Service).
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from relaunch.core.definitions.accelerator import GpuRequirement, Isolation
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.records import dataclass
from relaunch.core.revisions.revision import ContainerRequirement
from relaunch.core.selection.rejection import Rejection

# ECS allocates from the memory registered by its agent, which is less than the nominal memory: a T4 with 16,384 MiB
# registers 15,360, or 15,109 with older drivers (92 %). An estimate that is too low selects a larger GPU; one that is
# too high starts an instance on which the task is never placed.
USABLE_MEMORY_FRACTION = 0.9

MIN_COMPUTE_PERCENT = 1
MAX_COMPUTE_PERCENT = 100

# MPS limits memory and compute from Volta on (compute capability 7.0), not on g2, g3 and p2.
VOLTA = (7, 0)


@dataclass(frozen=True, slots=True)
class ShareRequirement:
    """The share of a GPU that a task requires, in MiB and percent of the GPU's compute.

    `other_containers_mib` is the memory of other containers of the task, which ECS places on the same GPU. `partition`
    is the fraction of a GPU in the revision itself (`value` `0.25`), 0 if there is none. `conflict` is the reason why
    ECS would reject the task on any instance, empty if it would not.
    """

    memory_mib: int
    compute_percent: int = 0
    isolation: Isolation = Isolation.BEST_EFFORT
    other_containers_mib: int = 0
    partition: float = 0.0
    conflict: str = ""


def check_requirement(gpu: GpuRequirement) -> tuple[str, ...]:
    """Return what is invalid in a requirement for a share of a GPU, or in share options for whole GPUs."""
    if gpu.compute_percent is None:
        has_share_option = gpu.isolation is Isolation.REQUIRED
        return (
            ("isolation is for a share of a GPU: give `compute_percent` and `memory` too",) if has_share_option else ()
        )
    problems = []
    if not MIN_COMPUTE_PERCENT <= gpu.compute_percent <= MAX_COMPUTE_PERCENT:
        problems.append(f"{gpu.compute_percent} is no share of a GPU's compute: it goes from 1 to 100 percent")
    if gpu.memory_mib is None:
        problems.append("a share of a GPU needs its memory too: give `memory`, like 2GiB")
    elif gpu.memory_mib < 1:
        problems.append(f"a share of a GPU has at least 1 MiB of memory, not {gpu.memory_mib}")
    if gpu.count != 1:
        problems.append(f"a share is of one GPU: leave `count` out, or ask for {gpu.count} whole ones")
    return tuple(problems)


def derive_share(gpu: GpuRequirement | None, kept: Iterable[ContainerRequirement]) -> ShareRequirement | None:
    """Return the share of a GPU that a task requires; None if it requires none and nothing conflicts.

    `kept` are the containers that keep the GPU requirement of the revision: all but the one that `gpu` applies to.
    """
    containers = tuple(kept)
    conflict = find_conflict(gpu, containers)
    other_containers_mib = sum(each.gpu_share_mib for each in containers)
    if gpu is None:
        partition = max((each.gpu_partition for each in containers), default=0.0)
        return (
            ShareRequirement(0, other_containers_mib=other_containers_mib, partition=partition)
            if other_containers_mib or partition
            else None
        )
    if gpu.is_share:
        return ShareRequirement(
            gpu.memory_mib or 0,
            gpu.compute_percent or 0,
            gpu.isolation,
            other_containers_mib=other_containers_mib,
            conflict=conflict,
        )
    return ShareRequirement(0, conflict=conflict) if conflict else None


def find_conflict(gpu: GpuRequirement | None, others: Iterable[ContainerRequirement]) -> str:
    """Return why ECS rejects the task on any instance; empty if it does not.

    All containers of a task that require GPUs must require either whole ones or shares.
    """
    if gpu is None:
        return ""
    if problems := check_requirement(gpu):
        return problems[0]
    for each in others:
        if gpu.is_share and (each.gpu_count or each.gpu_partition):
            asked = "a part of a GPU" if each.gpu_partition else "whole GPUs"
            return f"container `{each.name}` asks for {asked}, the job for a share: ECS takes one kind in a task"
        if not gpu.is_share and (each.gpu_share_mib or each.gpu_partition):
            return f"container `{each.name}` asks for a share of a GPU, the job for whole ones: ECS takes one kind"
    return ""


def supports_mps(machine: InstanceType) -> bool:
    """Return whether ECS can share the GPUs of this type by MPS: whole GPUs, Volta or newer.

    AWS publishes no list of families; fractional types are documented not to support it. A GPU of unknown compute
    capability is newer than the catalogue, and therefore newer than Volta.
    """
    if not machine.gpu_count or machine.is_fractional:
        return False
    return machine.compute_capability is None or machine.compute_capability >= VOLTA


def find_share_rejection(share: ShareRequirement, machine: InstanceType) -> Rejection | None:
    """Return why an instance type cannot provide the share; None if it can."""
    if share.conflict:
        return Rejection(share.conflict)
    if share.partition and share.partition != machine.gpu_partition_size:
        return Rejection(f"the task definition asks for {share.partition:g} of a GPU; it has {_describe_gpu(machine)}")
    if machine.is_fractional:
        return _check_partition(share, machine)
    return _check_mps(share, machine)


def _check_partition(share: ShareRequirement, machine: InstanceType) -> Rejection | None:
    if share.other_containers_mib:
        return Rejection(
            "other containers of the task share the GPU through MPS, which a part of a GPU does not support"
        )
    size = machine.gpu_partition_size
    if size * 100 < share.compute_percent:
        reason = f"it has {size:g} of a GPU; {share.compute_percent} % of its compute are asked for"
        return Rejection(reason, 1 - size * 100 / share.compute_percent)
    if machine.gpu_memory_mib < share.memory_mib:
        reason = f"its part of a GPU has {machine.gpu_memory_mib:,} MiB; {share.memory_mib:,} MiB are asked for"
        return Rejection(reason, 1 - machine.gpu_memory_mib / share.memory_mib)
    return None


def _check_mps(share: ShareRequirement, machine: InstanceType) -> Rejection | None:
    if share.isolation is Isolation.REQUIRED:
        return Rejection(
            "it shares whole GPUs through MPS; isolation is required, which a part of a GPU has (g6f, gr6f)"
        )
    if not supports_mps(machine):
        return Rejection(f"its GPU ({machine.accelerator_model}) is older than Volta: MPS keeps no limits on it")
    usable = int(machine.gpu_memory_mib * USABLE_MEMORY_FRACTION)
    required = share.memory_mib + share.other_containers_mib
    if usable < required:
        reason = (
            f"about {usable:,} MiB of its GPU's {machine.gpu_memory_mib:,} can be shared; {required:,} are asked for"
        )
        return Rejection(reason, 1 - usable / required)
    return None


def _describe_gpu(machine: InstanceType) -> str:
    return f"{machine.gpu_partition_size:g} of one" if machine.is_fractional else "whole ones"


def share_notices(definition: JobDefinition) -> tuple[str, ...]:
    """Return notices for definitions that require a share of a GPU; empty for others."""
    gpu = definition.accelerator.gpu
    if gpu is None or not gpu.is_share:
        return ()
    if gpu.isolation is Isolation.REQUIRED:
        return (f"a part of a GPU has its own compute: {gpu.compute_percent} % is the least it has, not a limit",)
    return (
        "a share of a GPU is for one CUDA process: take a whole GPU for several (data loaders on the CPU do not count)",
        "those who share a GPU fail together: a fatal error of one stops all; keep checkpoints, or ask for isolation",
        f"compute_percent is a limit, not a reservation: {gpu.compute_percent} % at most, less beside busy neighbours",
    )


# The most devices named in a timeline entry.
_SHOWN_DEVICES = 4


class GpuSharingMode(StrEnum):
    """How a GPU is shared between containers ("GpuDevice", Amazon ECS API Reference)."""

    IDLE = "IDLE"
    NVIDIA_MPS = "NVIDIA_MPS"
    DEDICATED = "DEDICATED"


_USE_OF_MODE: Mapping[str, str] = {GpuSharingMode.IDLE: "idle", GpuSharingMode.DEDICATED: "one container's own"}


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """A GPU; `total_mib` is the memory registered by the ECS agent, `remaining_mib` what is left for new shares.

    ECS subtracts the memory allocated to containers, whether or not they use it. `instance_id` is the EC2 instance's.
    """

    gpu_id: str
    instance_id: str
    sharing_mode: str
    total_mib: int
    remaining_mib: int
    container_count: int = 0

    def __str__(self) -> str:
        """Return `GPU-1f2e of i-…: 1,024 of 15,360 MiB left, shared by 3 containers`."""
        users = f"{self.container_count} container{'' if self.container_count == 1 else 's'}"
        use = _USE_OF_MODE.get(self.sharing_mode, f"shared by {users}")
        return f"{self.gpu_id} of {self.instance_id}: {self.remaining_mib:,} of {self.total_mib:,} MiB left, {use}"


def explain_missing_share(share: ShareRequirement, devices: Sequence[GpuDevice]) -> str | None:
    """Return why a share does not fit on any of these GPUs now, with what each has left; None if it fits.

    Only memory is compared: ECS does not reserve compute, `compute_percent` is a limit.
    """
    required = share.memory_mib + share.other_containers_mib
    if any(_fits(device, required) for device in devices):
        return None
    wanted = f"{required:,} MiB of one GPU are asked for"
    if not devices:
        return f"{wanted}; no machine there says that its GPUs can be shared (none is up, or its ECS agent is too old)"
    ordered = sorted(devices, key=lambda device: (-_remaining_mib(device), device.gpu_id))
    shown = "; ".join(str(device) for device in ordered[:_SHOWN_DEVICES])
    others = len(devices) - _SHOWN_DEVICES
    return f"{wanted}; {shown}" + (f"; and {others} more with no more room" if others > 0 else "")


def _fits(device: GpuDevice, required_mib: int) -> bool:
    return device.sharing_mode != GpuSharingMode.DEDICATED and device.remaining_mib >= required_mib


def _remaining_mib(device: GpuDevice) -> int:
    return 0 if device.sharing_mode == GpuSharingMode.DEDICATED else device.remaining_mib
