"""Bugs planted in what jobs reserve of their budgets, and in what follows when one is used up."""

from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from relaunch.core.jobs.job import Job
from relaunch.core.lifecycle import charging, leases
from relaunch.entrypoints import reconcile
from relaunch.usecases import advance_job
from simulation.broken_parts import changed
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched

COUNTED = "a budget has what its jobs cost"
BOUGHT = "nothing is bought above a budget"
RESERVED = "what jobs have cost is reserved"


def _unchecked() -> AbstractContextManager[object]:
    original = leases.reserve

    def reserve(*given: Any) -> Any:
        reserved, changes = original(*given)
        return reserved, tuple(replace(each, limits=None) for each in changes)

    return patched(leases, reserve=reserve)


def _kept(job: Job, _now: object) -> Any:
    return job.reserved, ()


class _NoEvent:
    """An event that never happens."""


BUDGET_BUGS = (
    PlantedBug("budget-unchecked", "what a job reserves is not held against the limit", _unchecked, BOUGHT, 41, 6),
    PlantedBug("budget-kept", "what was reserved is never given back", changed(leases, settle=_kept), COUNTED),
    PlantedBug(
        "lease-not-renewed",
        "an hour is reserved once",
        changed(reconcile, renew_leases=lambda *_given: 0),
        "nothing trains on above a budget",
        101,
        6,
    ),
    PlantedBug(
        "lost-machine-unreserved",
        "what a machine cost that never became ready is not reserved until it is charged",
        changed(charging, MachineAwaited=_NoEvent, MachineLost=_NoEvent),
        RESERVED,
        81,
        6,
    ),
    PlantedBug(
        "left-machine-unreserved",
        "a job that leaves a machine reserves what it knew of its cost until it is charged",
        changed(advance_job, find_left=lambda *_given: None),
        RESERVED,
        10,
        1970,
    ),
    PlantedBug(
        "budget-asked-once",
        "a job looks once whether its budget has room",
        changed(leases, BUDGET_POLL_INTERVAL=timedelta(days=30)),
        "a job that can finish does finish",
        31,
        6,
    ),
)
