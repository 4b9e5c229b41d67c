"""Reads what jobs cost, and their budgets, at most once a minute: what runs takes a read for each machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from relaunch.core.jobs.budgets import Budget
from relaunch.core.jobs.cost import CostEntry
from relaunch.ports import Dependencies
from relaunch_cli.dashboard.kept import Kept
from relaunch_cli.running_costs import load_running_costs

SECONDS = 60
"""How long what was read is shown."""


@dataclass(frozen=True)
class Costs:
    """What was paid, and what costs already that is not over; `is_cut`: some of that was left unread."""

    paid: Sequence[CostEntry]
    running: Sequence[CostEntry]
    budgets: Sequence[Budget]
    read_at: datetime
    is_cut: bool = False


def read_costs(first: date, last: date, deps: Dependencies, kept: Kept) -> Costs:
    """Return the costs from one day (UTC) to another, and all budgets."""
    read_at, (unpaid, is_cut), budgets = kept.get("running-costs", SECONDS, lambda: _read_running(deps))
    paid = kept.get(("costs", first, last), SECONDS, lambda: deps.jobs.load_costs(first, last))
    return Costs(paid, [each.within(first, last) for each in unpaid], budgets, read_at, is_cut)


def _read_running(deps: Dependencies) -> tuple[datetime, tuple[list[CostEntry], bool], Sequence[Budget]]:
    now = deps.clock.now()
    return now, load_running_costs(deps, now), deps.budgets.load_budgets()
