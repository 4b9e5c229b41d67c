"""Context managers that break the application at run time, and restore it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.lifecycle import table
from relaunch.core.lifecycle.decision import Decision, ignore
from relaunch.core.lifecycle.events import JobEvent
from relaunch.core.lifecycle.table import Row
from relaunch.usecases import advance_job as advancing


@contextmanager
def patched(owner: object, **values: object) -> Iterator[None]:
    """Replace existing attributes of a module or class for a while."""
    originals = {name: getattr(owner, name) for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(owner, name, original)


@contextmanager
def patched_in(owners: Iterable[object], **values: object) -> Iterator[None]:
    """Replace names in every module that imported them."""
    with ExitStack() as stack:
        for owner in owners:
            stack.enter_context(patched(owner, **values))
        yield


@contextmanager
def action_changed(name: str, replacement: Callable[..., Decision]) -> Iterator[None]:
    """Replace the action of this name in every row of the transition table that has it."""
    with _table(lambda row: replace(row, action=replacement) if row.action.__name__ == name else row):
        yield


@contextmanager
def guard_changed(name: str, replacement: Callable[..., bool]) -> Iterator[None]:
    """Replace the guard of this name in every row of the transition table that has it."""
    with _table(lambda row: replace(row, guard=replacement) if row.guard.__name__ == name else row):
        yield


@contextmanager
def rows_dropped(action: str) -> Iterator[None]:
    """Remove every row with this action from the transition table."""
    with _table(lambda row: None if row.action.__name__ == action else row):
        yield


@contextmanager
def _table(change: Callable[[Row], Row | None]) -> Iterator[None]:
    changed = tuple(row for row in map(change, table.TABLE) if row is not None)
    if changed == table.TABLE:
        raise LookupError("no row of the transition table was changed")
    with patched(table, TABLE=changed):
        yield


@contextmanager
def writes(change: Callable[[Job, Decision], Decision]) -> Iterator[None]:
    """Change every decision that is saved: `change` gets the job as it was, and the decision."""
    original = advancing.decide

    def decided(job: Job, event: JobEvent, now: datetime, limits: StackLimits) -> Decision:
        decision = original(job, event, now, limits)
        return decision if decision.is_ignored else change(job, decision)

    with patched(advancing, decide=decided):
        yield


def ignored_in(job: Job, _event: JobEvent, *_rest: object) -> Decision:
    """Decide to do nothing."""
    return ignore(job, "forgotten")
