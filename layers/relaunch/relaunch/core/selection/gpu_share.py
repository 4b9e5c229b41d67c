"""Shares of a GPU on ECS: which machines can give one, what ECS takes, and what a share means for its user.

ECS shares a GPU through NVIDIA MPS (`sharingStrategy.nvidiaMps`), or a job gets the part of a GPU that a fractional
instance type has (`value` `0.25` on g6f and gr6f). Sources: ResourceRequirement, NvidiaMpsAllocation and GpuDevice
(Amazon ECS API Reference), "Amazon ECS task definitions for GPU workloads" (Developer Guide) and "Volta MPS" (NVIDIA
Multi-Process Service).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from relaunch.core.definitions.accelerator import GpuRequirement, Isolation
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.revisions.revision import ContainerRequirement
from relaunch.core.selection.rejection import Rejection

# What ECS can hand out of a card is what its agent registered, which is less than the card's nominal memory: a T4 of
# 16,384 MiB shows 15,360, and 15,109 under older drivers (92 %). Counting on too little only takes a larger card;
# counting on too much starts a machine on which the task is never placed.
USABLE_CARD_SHARE = 0.9

MIN_COMPUTE_PERCENT, MAX_COMPUTE_PERCENT = 1, 100

# MPS keeps limits on memory and compute from Volta on (compute capability 7.0): not on g2, g3 and p2.
VOLTA = (7, 0)


@dataclass(frozen=True, slots=True)
class ShareRequirement:
    """What a task needs of one card; MiB, and percent of the card's compute.

    `beside_mib` is what other containers of the task take of the same card: ECS gives all of them the same one.
    `partition` is the part of a GPU that the revision itself names (`value` `0.25`); 0: it names none.
    `conflict` says why ECS would refuse the task on any machine; empty: it would not.
    """

    memory_mib: int
    compute_percent: int = 0
    isolation: Isolation = Isolation.BEST_EFFORT
    beside_mib: int = 0
    partition: float = 0.0
    conflict: str = ""


def check_requirement(gpu: GpuRequirement) -> tuple[str, ...]:
    """Return in words what no share of a GPU can be; nothing for whole GPUs that ask for nothing of the kind."""
    if gpu.compute_percent is None:
        is_meant = gpu.isolation is Isolation.REQUIRED
        return ("isolation is for a share of a GPU: give `compute_percent` and `memory` too",) if is_meant else ()
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
    """Return what share of a card a task needs; None when none is asked for and none conflicts with what is.

    `kept` are the containers whose GPU requirement stays as the revision has it: all but the one that `gpu` concerns.
    """
    containers = tuple(kept)
    conflict = find_conflict(gpu, containers)
    beside_mib = sum(each.gpu_share_mib for each in containers)
    if gpu is None:
        partition = max((each.gpu_partition for each in containers), default=0.0)
        return ShareRequirement(0, beside_mib=beside_mib, partition=partition) if beside_mib or partition else None
    if gpu.is_share:
        return ShareRequirement(
            gpu.memory_mib or 0, gpu.compute_percent or 0, gpu.isolation, beside_mib=beside_mib, conflict=conflict
        )
    return ShareRequirement(0, conflict=conflict) if conflict else None


def find_conflict(gpu: GpuRequirement | None, others: Iterable[ContainerRequirement]) -> str:
    """Say why ECS refuses the task, whatever the machine; empty when it does not.

    The containers of a task that ask for GPUs must all ask the same way: for whole ones, or by a sharing strategy.
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


def usable_card_memory_mib(gpu_memory_mib: int) -> int:
    """Return how much of a card's memory shares may count on, from what DescribeInstanceTypes reports of it."""
    return int(gpu_memory_mib * USABLE_CARD_SHARE)


def supports_mps(machine: InstanceType) -> bool:
    """Tell whether ECS can share this type's GPUs through MPS: whole GPUs of Volta or newer.

    AWS publishes no list of families. Fractional types are excluded by name, older cards by what MPS can keep. A card
    whose compute capability is not known is newer than the catalogue, and so than Volta.
    """
    if not machine.gpu_count or machine.is_fractional:
        return False
    return machine.compute_capability is None or machine.compute_capability >= VOLTA


def find_share_rejection(share: ShareRequirement, machine: InstanceType) -> Rejection | None:
    """Say why a machine cannot give this share; None when it can."""
    if share.conflict:
        return Rejection(share.conflict)
    if share.partition and share.partition != machine.gpu_partition_size:
        return Rejection(f"the task definition asks for {share.partition:g} of a GPU; it has {_has(machine)}")
    if machine.is_fractional:
        return _find_fraction_rejection(share, machine)
    return _find_card_rejection(share, machine)


def _find_fraction_rejection(share: ShareRequirement, machine: InstanceType) -> Rejection | None:
    if share.beside_mib:
        return Rejection(
            "other containers of the task share the GPU through MPS, which a part of a GPU does not support"
        )
    part = machine.gpu_partition_size
    if part * 100 < share.compute_percent:
        reason = f"it has {part:g} of a GPU; {share.compute_percent} % of its compute are asked for"
        return Rejection(reason, 1 - part * 100 / share.compute_percent)
    if machine.gpu_memory_mib < share.memory_mib:
        reason = f"its part of a GPU has {machine.gpu_memory_mib:,} MiB; {share.memory_mib:,} MiB are asked for"
        return Rejection(reason, 1 - machine.gpu_memory_mib / share.memory_mib)
    return None


def _find_card_rejection(share: ShareRequirement, machine: InstanceType) -> Rejection | None:
    if share.isolation is Isolation.REQUIRED:
        return Rejection(
            "it shares whole GPUs through MPS; isolation is required, which a part of a GPU has (g6f, gr6f)"
        )
    if not supports_mps(machine):
        return Rejection(f"its GPU ({machine.accelerator_model}) is older than Volta: MPS keeps no limits on it")
    usable, asked = usable_card_memory_mib(machine.gpu_memory_mib), share.memory_mib + share.beside_mib
    if usable < asked:
        reason = f"about {usable:,} MiB of its GPU's {machine.gpu_memory_mib:,} can be shared; {asked:,} are asked for"
        return Rejection(reason, 1 - usable / asked)
    return None


def _has(machine: InstanceType) -> str:
    return f"{machine.gpu_partition_size:g} of one" if machine.is_fractional else "whole ones"


def share_notices(definition: JobDefinition) -> tuple[str, ...]:
    """Return what a team should know that asks for a share of a GPU; nothing for whole GPUs and Neuron devices."""
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
