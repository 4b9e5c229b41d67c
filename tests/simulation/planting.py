"""Context managers that break the application at run time, and restore it."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from inspect import isclass, isfunction
from unittest import mock

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle import table
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.events import JobEvent
from relaunch.core.machines import table as machine_table
from relaunch.core.machines.decision import MachineDecision
from relaunch.core.transitions.table import Row
from relaunch.usecases import advance_job as advancing

patched = mock.patch.multiple
"""Replace existing attributes of a module or class for a while."""


@contextmanager
def patched_in(owners: Iterable[object], **values: object) -> Iterator[None]:
    """Replace names in every module that imported them.

    Raises:
        LookupError: another module of the application imported one of them: what moved there would stay as it was.
    """
    known = tuple(owners)
    for name in values:
        _find_all(name, known)
    with ExitStack() as stack:
        for owner in known:
            stack.enter_context(patched(owner, **values))
        yield


def _find_all(name: str, owners: Sequence[object]) -> None:
    """Check that the owners are all modules that have imported a function or class."""
    original = getattr(owners[0], name)
    if not isfunction(original) and not isclass(original):
        return
    left = [
        module.__name__
        for module in tuple(sys.modules.values())
        if module.__name__.startswith("relaunch.")
        and module.__name__ != original.__module__
        and vars(module).get(name) is original
        and module not in owners
    ]
    if left:
        raise LookupError(f"{name} stays as it is in {', '.join(sorted(left))}")


def action_changed(name: str, replacement: Callable[..., Decision]) -> AbstractContextManager[object]:
    """Replace the action of this name in every row of the transition table that has it."""
    return _table(lambda row: replace(row, action=replacement) if row.action.__name__ == name else row)


def machine_action(
    name: str, replacement: Callable[..., MachineDecision]
) -> Callable[[], AbstractContextManager[object]]:
    """Return what replaces the action of this name in the transition table of machines."""
    rows = [replace(row, action=replacement) if row.action.__name__ == name else row for row in machine_table.TABLE]
    return lambda: patched(machine_table, TABLE=tuple(rows))


def guard_changed(name: str, replacement: Callable[..., bool]) -> AbstractContextManager[object]:
    """Replace the guard of this name in every row of the transition table that has it."""
    return _table(lambda row: replace(row, guard=replacement) if row.guard.__name__ == name else row)


def rows_dropped(action: str) -> AbstractContextManager[object]:
    """Remove every row with this action from the transition table."""
    return _table(lambda row: None if row.action.__name__ == action else row)


def _table(change: Callable[[Row[JobState]], Row[JobState] | None]) -> AbstractContextManager[object]:
    changed = tuple(row for row in map(change, table.TABLE) if row is not None)
    if changed == table.TABLE:
        raise LookupError("no row of the transition table was changed")
    return patched(table, TABLE=changed)


def writes(change: Callable[[Job, Decision], Decision]) -> AbstractContextManager[object]:
    """Change every decision that is saved: `change` gets the job as it was, and the decision."""
    original = advancing.decide

    def decided(job: Job, event: JobEvent, now: datetime, limits: StackLimits) -> Decision:
        decision = original(job, event, now, limits)
        return decision if decision.is_ignored else change(job, decision)

    return patched(advancing, decide=decided)
