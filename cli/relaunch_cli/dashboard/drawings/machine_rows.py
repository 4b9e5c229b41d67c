"""The row of a machine that lived longer than the attempts of the job on it: it was there before, or after."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from relaunch.core.machines.living import BECAME_READY
from relaunch.core.machines.machine import Machine
from relaunch_cli.dashboard.drawings.attempt_rows import Run
from relaunch_cli.dashboard.drawings.drawing import Row, RowKind, Span, SpanKind
from relaunch_cli.views.formatting import format_duration

# To end a machine takes as long.
_LONGER = timedelta(minutes=1)


def make_machine_row(
    machine: Machine, runs: Sequence[tuple[Run, datetime]], scale: tuple[datetime, datetime]
) -> Row | None:
    """Return the row of a machine; None if it did not live longer than its attempts by a minute.

    `runs` are the attempts on it, and when the row of each begins. Only what lies within the scale counts.
    """
    ended_at = _ended_at(machine)
    ready_at = _ready_at(machine)
    busy = [(began_at, run.ended_at) for run, began_at in runs]
    idle = tuple(_idle(max(ready_at or machine.created_at, scale[0]), min(ended_at or scale[1], scale[1]), busy))
    first = min(began_at for began_at, _ in busy)
    booted_before = ready_at is not None and ready_at < first and ready_at > scale[0]
    if not idle and not booted_before:
        return None
    boot = Span(
        SpanKind.BOOTING, machine.created_at, ready_at, "booting", "booting, from its request until it is ready"
    )
    is_over = "" if ended_at is not None else " so far"
    unused = sum((end - began for began, end in idle), timedelta(0))
    return Row(
        RowKind.MACHINE,
        "Machine",
        first,
        place=" ".join(part for part in (machine.instance_id or "", str(machine.offering or "")) if part),
        outcome=f"unused by this job for {format_duration(unused)}{is_over}" if idle else "booted before the attempt",
        spans=(*((boot,) if booted_before else ()), *(_unused(began, end, machine) for began, end in idle)),
    )


def _unused(began_at: datetime, ended_at: datetime, machine: Machine) -> Span:
    why = f"; {machine.reason}" if machine.reason else ""
    return Span(SpanKind.IDLE, began_at, ended_at, "unused", f"there, and not used by this job{why}")


def _idle(
    since: datetime, until: datetime, busy: Sequence[tuple[datetime, datetime | None]]
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the times of a minute or more between these two moments at which no attempt was there."""
    at = since
    for began_at, ended_at in sorted(busy, key=lambda each: each[0]):
        if began_at - at >= _LONGER:
            yield at, began_at
        at = max(at, ended_at or until)
    if until - at >= _LONGER:
        yield at, until


def _ready_at(machine: Machine) -> datetime | None:
    ready = (each.at for each in reversed(machine.timeline) if each.event == BECAME_READY)
    return next(ready, machine.registered_at)


def _ended_at(machine: Machine) -> datetime | None:
    """Return when its end began, or when EC2 said that it was there; None if it lives."""
    if machine.ended_at is not None:
        return machine.ended_at
    ended = (each.at for each in machine.timeline if not each.state.is_usable)
    return next(ended, None if machine.state.is_usable else machine.state_since)
