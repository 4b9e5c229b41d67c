"""Generates docs/lifecycle.md from the transition table.

Run `python -m relaunch_local.pages.lifecycle docs/lifecycle.md`.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import get_args

from relaunch.core.jobs.job import (
    AdmitWaiting,
    JobState,
    PlacementState,
    RememberCapacity,
    RequestLaunch,
    StopTask,
    WaitReason,
)
from relaunch.core.lifecycle.events import JobEvent
from relaunch.core.lifecycle.table import TABLE, Row

_STATES = {
    JobState.WAITING: "nothing runs; `relaunch explain` says what it waits for",
    JobState.LAUNCHING: "an offering is chosen: its launch is under way, or its task has not started yet",
    JobState.RUNNING: "its task runs",
    JobState.STOPPING: "its task is on its way out, because of us or by itself",
    JobState.SUCCEEDED: "the program ended with 0, and not because it was stopped",
    JobState.FAILED: "it cannot be launched, failed too often, or was interrupted for too long",
    JobState.CANCELLED: "somebody ended it",
    JobState.TIMED_OUT: "its deadline has passed, or its tasks have run for `max_runtime`",
}

_WAITS = {
    WaitReason.LAUNCH: "its launch request is in the attempts queue",
    WaitReason.IMAGE: "its commit's image is not in ECR yet",
    WaitReason.SLOT: "as many jobs of its definition, or of the stack, run as may",
    WaitReason.CAPACITY: "every offering that satisfies it failed or was interrupted lately",
    WaitReason.PRICE: "every offering that satisfies it is too dear right now",
    WaitReason.BACKOFF: "its program failed, and is tried again after a pause",
}

_TRIES = {
    PlacementState.PENDING: "its parameters are saved; RunTask may have been sent, and sending it again is harmless",
    PlacementState.PLACED: "it has a task",
    PlacementState.CLOSED: "its task has stopped, or it never had one",
}

_EFFECTS = {
    StopTask: "StopTask for one task",
    RequestLaunch: "a message in the attempts queue, perhaps delayed",
    RememberCapacity: "let every job avoid an offering for a while",
    AdmitWaiting: "ask for the launch of whoever waits longest for the slot that became free",
}

_HEAD = """\
# The life of a job

<!-- Written by `python -m relaunch_local.pages.lifecycle docs/lifecycle.md` from relaunch.core.lifecycle.table. -->

Everything that can happen to a job is a row of one table, `relaunch.core.lifecycle.table.TABLE`. The code runs the
first row that matches state, event and guard; an event without a row changes nothing, and the log says so. Attempts
have no state of their own: an attempt is its task, and the job's state says how far that has come.
"""

_ALWAYS = """\
## What always holds

- A job that is not over has a `wake_at`: should every event get lost, `reconcile` looks at it then.
- A placement try is frozen only when the task before it has stopped, or never was: at most one task of a job lives.
- The intent to stop a task is saved before StopTask is called.
- An attempt's number is used up by a task that started, or was lost from sight, and by nothing else.
- A slot is taken with the first launch and given back with the end, also across interruptions.
- What is still to be done after a save is saved with it, and each of these effects may be done twice:
"""


def render_page() -> str:
    """Return the page in Markdown, with its diagram in Mermaid."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    yield from _diagram()
    yield from _section("States", ("state", "means"), _STATES.items())
    yield from _section("What a WAITING job waits for", ("reason", "because"), _WAITS.items())
    yield from _section("Placement tries of an attempt", ("state", "means"), _TRIES.items())
    events = ((_words(event), _first_line(event)) for event in get_args(JobEvent))
    yield from _section("Events", ("event", "says"), events)
    heads = ("in", "on", "when", "what happens", "leads to")
    yield from _section("Transitions", heads, (_cells(row) for row in TABLE))
    yield _ALWAYS.rstrip("\n")
    yield from (f"  - `{get_args(effect.__annotations__['kind'])[0]}`: {words}" for effect, words in _EFFECTS.items())


def _diagram() -> Iterator[str]:
    """Yield the state diagram, without events that do not change the state."""
    labels: dict[tuple[JobState, JobState], list[str]] = {}
    for row in TABLE:
        for edge in ((state, target) for state in JobState for target in JobState):
            is_named = edge[0] in row.states and edge[1] in row.targets and edge[0] is not edge[1]
            if is_named and _words(row.event) not in labels.setdefault(edge, []):
                labels[edge].append(_words(row.event))
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"  [*] --> {JobState.WAITING}: accepted"
    yield f"  [*] --> {JobState.FAILED}: accepted, but it can never run"
    for (state, target), words in labels.items():
        if words:
            yield f"  {state} --> {target}: {', '.join(words)}"
    yield from (f"  {state} --> [*]" for state in JobState if state.is_final)
    yield "```\n"


def _section(title: str, heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"## {title}\n"
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _cells(row: Row) -> tuple[str, ...]:
    everywhere = row.states == frozenset(JobState)
    return (
        "any state" if everywhere else _names(row.states),
        _words(row.event),
        _first_line(row.guard).removeprefix("Hold").strip(" .") or "always",
        _first_line(row.action),
        _names(row.targets) or "stays",
    )


def _names(states: frozenset[JobState]) -> str:
    return ", ".join(state for state in JobState if state in states)


def _words(event: type[JobEvent]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", " ", event.__name__).lower()


def _first_line(documented: Callable[..., object] | type) -> str:
    return (inspect.getdoc(documented) or "").partition("\n")[0]


def main(arguments: Sequence[str]) -> None:
    """Write the page to the given file."""
    Path(arguments[0]).write_text(render_page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
