"""A decision about a machine: what to save, and what it takes from the counters of the stack."""

from dataclasses import dataclass, field, replace
from datetime import datetime

from relaunch.core.machines.machine import Machine, MachineEffect, MachineState, MachineTimelineEntry
from relaunch.core.machines.starts import Starts

MICRO_USD = 1_000_000
"""Money per hour is counted in millionths of a USD: a counter of floating point numbers would drift."""


@dataclass(frozen=True, slots=True)
class MachineTotals:
    """What lives: the number of machines that are not GONE, and their price per hour in millionths of a USD."""

    machines: int = 0
    micro_usd_per_hour: int = 0


@dataclass(frozen=True, slots=True)
class MachineDecision:
    """The machine to save, and what the counters of the stack change by in the same transaction.

    `added` may be negative. `limits`, if given, must hold after the addition, else nothing is written; nor is it if one
    of `starts` was written by others since it was loaded. The effects that follow the save are in `machine.pending`. An
    ignored decision changes nothing; `note` says why. `action` is the name of the action that decided; empty if there
    was none.
    """

    machine: Machine
    added: MachineTotals = MachineTotals()
    limits: MachineTotals | None = None
    starts: tuple[Starts, ...] = ()
    is_ignored: bool = False
    note: str = ""
    action: str = field(default="", compare=False)


def micro_usd(usd_per_hour: float) -> int:
    """Return a price per hour in millionths of a USD."""
    return round(usd_per_hour * MICRO_USD)


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


def set_next_check(
    machine: Machine, wake_at: datetime | None, effects: tuple[MachineEffect, ...] = ()
) -> MachineDecision:
    """Set the time of the next check, without a timeline entry."""
    return MachineDecision(replace(machine, wake_at=wake_at, pending=effects))
