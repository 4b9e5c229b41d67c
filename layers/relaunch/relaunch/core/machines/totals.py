"""The counters of the machines of a stack: what decisions change them by, and the limits on them."""

from collections.abc import Collection
from dataclasses import dataclass

from relaunch.core.machines.decision import MachineDecision, MachineTotals


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
