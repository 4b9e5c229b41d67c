"""A decision about a machine: what to save, what it takes from the counters of the stack, and how stores find it.

A job sees what others claimed an instant ago only a moment later, because indexes are eventually consistent. Before EC2
is asked there is time to look once more: of jobs that each request a machine though one would do, one joins another.
"""

from collections.abc import Iterable
from dataclasses import field, replace
from datetime import datetime, timedelta

from relaunch.core.machines.machine import (
    NOTHING,
    Machine,
    MachineEffect,
    MachineState,
    MachineTimelineEntry,
    Resources,
    machine_id_of,
)
from relaunch.core.machines.starts import Starts
from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.records import dataclass

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


KEPT_AFTER_END = timedelta(days=30)

_LEAST = Resources(cpu_units=1, memory_mib=1)
# A share has at least one percent of a GPU's compute.
_LEAST_WITH_ACCELERATOR = (
    Resources(cpu_units=1, memory_mib=1, gpus=0.01),
    Resources(cpu_units=1, memory_mib=1, neuron_devices=1),
)


def due_at(machine: Machine) -> datetime | None:
    """Return when the machine is to be checked again, None if never.

    A machine that is gone is due while effects are pending; loading it for the next event repeats them.

    Raises:
        ValueError: the machine is not gone and has no `wake_at`.
    """
    if machine.state is MachineState.GONE:
        return (machine.wake_at or gone_at(machine)) if machine.pending else None
    if machine.wake_at is None:
        raise ValueError(f"machine {machine.machine_id} is {machine.state} and has no wake_at")
    return machine.wake_at


def gone_at(machine: Machine) -> datetime | None:
    """Return since when the machine is gone, None while it is not."""
    return (machine.state_since or machine.created_at) if machine.state is MachineState.GONE else None


def has_room(machine: Machine) -> bool:
    """Return whether another job may find room on the machine.

    The rest must have CPU, memory and, if the machine has accelerators, some of those. A machine that was warned takes
    no more jobs.
    """
    if not machine.state.is_usable or machine.warned_at is not None or machine.is_unusable:
        return False
    capacity = machine.capacity
    free = machine.free
    needed = [least for least in _LEAST_WITH_ACCELERATOR if capacity.holds(least)]
    return any(free.holds(least) for least in needed or [_LEAST])


def may_give_way(machine: Machine) -> bool:
    """Return whether the request of a machine may be given up for room on another one.

    EC2 was not asked, the machine has room for others itself, and only the job that requested it claims it, for which
    it is the first one: a job moves at most once.
    """
    if machine.asked_at is not None or len(machine.claims) != 1 or machine.request.size > 1 or not has_room(machine):
        return False
    (claim,) = machine.claims
    return machine.machine_id == machine_id_of(claim.job_id, claim.attempt_number, 1)


def find_older(machine: Machine, others: Iterable[Machine]) -> Machine | None:
    """Return the first older machine that has room for the jobs of a machine, None if there is none.

    Whatever it is, the machine may be too, and costs no less: so its jobs accept it. Of two that are requested the
    younger one gives way.
    """
    needed = sum((each.resources for each in machine.claims), NOTHING)
    possible = {each.offering for each in machine.request.overrides}
    for other in others:
        is_older = (other.created_at, other.machine_id) < (machine.created_at, machine.machine_id)
        is_alike = _possible_offerings(other) <= possible and other.usd_per_hour <= machine.usd_per_hour
        is_alike = is_alike and other.request.reservation_id == machine.request.reservation_id
        if is_older and is_alike and other.accepts(needed):
            return other
    return None


def _possible_offerings(machine: Machine) -> set[OfferingKey]:
    return {machine.offering} if machine.offering else {each.offering for each in machine.request.overrides}
