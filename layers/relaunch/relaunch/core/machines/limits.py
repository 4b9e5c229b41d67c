"""The limits of machines of our own."""

import math
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from relaunch.core.machines.decision import MachineTotals, micro_usd


class TaskStop(StrEnum):
    """When the task on a machine that EC2 takes away is stopped; the next machine is requested at once anyway."""

    AT_WARNING = "at-warning"
    WHEN_NEXT_READY = "when-next-ready"  # or at the last moment before the interruption that leaves its stop time-out


@dataclass(frozen=True, slots=True)
class MachineLimits:
    """The limits of the stack on machines of our own.

    `max_machines` and `max_usd_per_hour` hold for all that live, those that are ending included; 0 stands for none.
    `handover_reserve` is the fraction of both that only the replacements of interrupted machines may use.
    `registration_deadline` is how long an instance may take from its launch until it is READY. `warm_time` is how long
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

    def totals(self, *, is_handover: bool) -> MachineTotals:
        """Return the limits of a new machine; `is_handover`: it replaces one that EC2 takes away."""
        if is_handover:
            return MachineTotals(self.max_machines, micro_usd(self.max_usd_per_hour))
        # With one machine there is nothing to reserve.
        reserved = math.ceil(self.max_machines * self.handover_reserve) if self.max_machines > 1 else 0
        return MachineTotals(
            self.max_machines - reserved, micro_usd(self.max_usd_per_hour * (1 - self.handover_reserve))
        )
