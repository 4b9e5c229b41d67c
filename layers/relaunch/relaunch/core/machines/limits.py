"""The limits of machines of our own, and the counters of the stack that they are held against."""

import math
import re
from collections.abc import Collection
from datetime import timedelta
from enum import StrEnum

from relaunch.core.machines.decision import MachineDecision, MachineTotals, micro_usd
from relaunch.core.records import dataclass

_SLOW_TYPES = (
    # "From the time the instance enters the running state it can take 20 minutes until it becomes available over the
    # network" ("Amazon EC2 bare metal instances", EC2 User Guide); over 20 were met (canonical/pycloudlib#192).
    (re.compile(r"\.metal\b"), timedelta(minutes=30)),
    # P and Trn types that fill a host: no figures are published. Karpenter gives every node 15 minutes, which has
    # worked well (kubernetes-sigs/karpenter#357); types with GPUs or local disks boot later than others
    # (awslabs/amazon-eks-ami#1099).
    (re.compile(r"^(p|trn)\d[^.]*\.(2[4-9]|[3-9]\d|\d{3})xlarge$"), timedelta(minutes=15)),
)
"""Instance types that need longer than others until they have registered, and the time that they have at least."""


class TaskStop(StrEnum):
    """When the task on a machine that EC2 takes away is stopped; the next machine is requested at once anyway."""

    AT_WARNING = "at-warning"
    WHEN_NEXT_READY = "when-next-ready"  # or at the last moment before the interruption that leaves its stop time-out


@dataclass(frozen=True, slots=True)
class MachineLimits:
    """The limits of the stack on machines of our own.

    `max_machines` and `max_usd_per_hour` hold for all that live, those that are ending included; 0 stands for none.
    `handover_reserve` is the fraction of both that only the replacements of interrupted machines may use.
    `registration_deadline` is how long an instance of an ordinary type may take from its launch until it is READY
    (registration_deadline_of). `warm_time` is how long
    a machine without a claim is kept. `price_tolerance` is how much more than the cheapest offering the others in one
    request may be expected to cost, as a fraction. `starts_on_rebalance`: a rebalance recommendation is reason enough
    to request the replacement of a machine; an interruption may follow it, or not. `task_stop` is when the task on
    it is stopped then.
    """

    max_machines: int = 20
    max_usd_per_hour: float = 0.0
    handover_reserve: float = 0.1
    registration_deadline: timedelta = timedelta(minutes=5)
    warm_time: timedelta = timedelta(0)
    price_tolerance: float = 0.15
    starts_on_rebalance: bool = False
    task_stop: TaskStop = TaskStop.AT_WARNING

    def registration_deadline_of(self, instance_type: str) -> timedelta:
        """Return how long an instance of this type may take from its launch until it is READY."""
        least = (time for names, time in _SLOW_TYPES if names.search(instance_type))
        return max(self.registration_deadline, next(least, self.registration_deadline))

    def totals(self, *, is_handover: bool) -> MachineTotals:
        """Return the limits of a new machine; `is_handover`: it replaces one that EC2 takes away."""
        if is_handover:
            return MachineTotals(self.max_machines, micro_usd(self.max_usd_per_hour))
        # With one machine there is nothing to reserve.
        reserved = math.ceil(self.max_machines * self.handover_reserve) if self.max_machines > 1 else 0
        return MachineTotals(
            self.max_machines - reserved, micro_usd(self.max_usd_per_hour * (1 - self.handover_reserve))
        )


def nodes_problem(nodes: int, limits: MachineLimits) -> str:
    """Return why a job of so many nodes never has all its machines within the limits of the stack; empty if it may."""
    most = limits.totals(is_handover=False).machines
    if nodes == 1 or not limits.max_machines or nodes <= most:
        return ""
    return (
        f"a job of {nodes} nodes needs as many machines at once, and the stack has at most {most} besides those that "
        f"it keeps for interrupted jobs: raise its parameter MaxMachines, which is {limits.max_machines}"
    )


@dataclass(frozen=True, slots=True)
class TotalsChange:
    """What decisions of one transaction change the counters by, and the limits that must hold then; 0 is none."""

    added: MachineTotals
    limits: MachineTotals

    @property
    def is_needed(self) -> bool:
        """Return whether the counters change, or have to be compared with limits."""
        return self.added != MachineTotals() or self.limits != MachineTotals()


def change_of(decisions: Collection[MachineDecision]) -> TotalsChange:
    """Return what decisions change the counters by together; of each limit the strictest holds.

    Raises:
        ValueError: there are two decisions about one machine.
    """
    ids = [each.machine.machine_id for each in decisions]
    if len(set(ids)) < len(ids):
        raise ValueError(f"more than one decision about a machine: {', '.join(sorted(ids))}")
    limits = [each.limits for each in decisions if each.limits is not None]
    return TotalsChange(
        MachineTotals(
            sum(each.added.machines for each in decisions), sum(each.added.micro_usd_per_hour for each in decisions)
        ),
        MachineTotals(
            min((each.machines for each in limits if each.machines), default=0),
            min((each.micro_usd_per_hour for each in limits if each.micro_usd_per_hour), default=0),
        ),
    )


def add(totals: MachineTotals, added: MachineTotals) -> MachineTotals:
    """Return the sum."""
    return MachineTotals(totals.machines + added.machines, totals.micro_usd_per_hour + added.micro_usd_per_hour)


def is_within(totals: MachineTotals, limits: MachineTotals) -> bool:
    """Return whether the totals exceed no limit."""
    return not (
        _exceeds(totals.machines, limits.machines) or _exceeds(totals.micro_usd_per_hour, limits.micro_usd_per_hour)
    )


def exceeded_limit(totals: MachineTotals, limits: MachineTotals) -> str:
    """Return the name of the limit that totals exceed which are not within: `machines` if they exceed both."""
    return "machines" if _exceeds(totals.machines, limits.machines) else "usd_per_hour"


def _exceeds(total: int, limit: int) -> bool:
    return 0 < limit < total
