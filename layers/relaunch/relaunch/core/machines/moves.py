"""Decisions that save a machine."""

from dataclasses import replace
from datetime import datetime

from relaunch.core.machines.decision import MachineDecision
from relaunch.core.machines.machine import Machine, MachineEffect, MachineState, MachineTimelineEntry

# A machine is one item, which should stay small.
_KEPT_ENTRIES = 20


def ignore(machine: Machine, note: str) -> MachineDecision:
    """Return a decision that changes nothing."""
    return MachineDecision(machine, is_ignored=True, note=note)


def move(  # noqa: PLR0913 - the parts of one transition, all of them named at every call
    machine: Machine,
    state: MachineState,
    now: datetime,
    *,
    event: str,
    detail: str = "",
    wake_at: datetime | None = None,
    effects: tuple[MachineEffect, ...] = (),
) -> MachineDecision:
    """Move a machine to a state, or keep it there, with one timeline entry."""
    entry = MachineTimelineEntry(now, state, event, detail)
    moved = replace(
        machine,
        state=state,
        state_since=machine.state_since if state is machine.state else now,
        wake_at=wake_at,
        pending=effects,
        timeline=(*machine.timeline, entry)[-_KEPT_ENTRIES:],
    )
    return MachineDecision(moved)


def look_again(machine: Machine, wake_at: datetime | None, effects: tuple[MachineEffect, ...] = ()) -> MachineDecision:
    """Set the time of the next check, without a timeline entry."""
    return MachineDecision(replace(machine, wake_at=wake_at, pending=effects))
