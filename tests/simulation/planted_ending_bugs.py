"""Bugs in what follows when EC2 does not end a machine."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.lifecycle import metrics
from relaunch.core.machines import ending, table
from relaunch.core.machines.decision import MachineDecision, set_next_check
from relaunch.core.machines.machine import Machine
from relaunch_local.simulation.faults import endless_machines
from simulation.broken_parts import changed, replaced
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched

_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)


def _with_endless_machines() -> AbstractContextManager[object]:
    return patched(endless_machines, _EVERY=1, _FIRST=0, _SHARE=1.0)


def _told_once() -> AbstractContextManager[object]:
    """Let a machine that runs on although it was to end be looked at only."""

    def look(machine: Machine, _event: object, now: datetime, _limits: object) -> MachineDecision:
        return set_next_check(machine, now + _MINUTE)

    rows = tuple(replace(row, action=look) if row.action is ending.terminate_again else row for row in table.TABLE)
    if rows == table.TABLE:
        raise LookupError("no row terminates an instance again")
    return patched(table, TABLE=rows)


def _given_up(original: Callable[..., MachineDecision]) -> Callable[..., MachineDecision]:
    def decide(machine: Machine, found: str, now: datetime, *given: object) -> MachineDecision:
        decision = original(machine, found, now, *given)
        return ending.gone(machine, now, event="terminated", detail="") if decision.machine.told_at else decision

    return decide


ENDING_BUGS = (
    PlantedBug(
        "termination-asked-for-once",
        "EC2 is asked once to end a machine, whether it does or not",
        _told_once,
        "no instance lives that nobody needs",
        20,
        world=_with_endless_machines,
    ),
    PlantedBug(
        "long-ending-untold",
        "nobody is told of a machine that does not end for days",
        changed(ending, ENDING_LIMIT=_DAY),
        "somebody is told of a machine that does not end",
        20,
        world=_with_endless_machines,
    ),
    PlantedBug(
        "long-ending-uncounted",
        "no metric counts a machine that does not end",
        changed(metrics, NOT_TERMINATED="nothing is called so"),
        "a machine that does not end is counted",
        20,
        world=_with_endless_machines,
    ),
    PlantedBug(
        "long-ending-makes-room",
        "another machine takes the place of one that EC2 has not ended in half an hour",
        replaced(ending, "_not_gone", _given_up),
        "EC2 has no more machines than allowed",
        20,
        world=_with_endless_machines,
    ),
)
