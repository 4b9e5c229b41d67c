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
    CountRun,
    JobState,
    LookForWarning,
    PlacementState,
    ReleaseMachine,
    RememberCapacity,
    RequestLaunch,
    RequestMachine,
    StopTask,
    WaitReason,
)
from relaunch.core.lifecycle.events import JobEvent
from relaunch.core.lifecycle.table import TABLE, Row, always

_STATES = {
    JobState.WAITING: "nothing runs; `relaunch explain` shows what it waits for",
    JobState.LAUNCHING: "an offering is selected: its launch is in progress, or its task has not started yet",
    JobState.RUNNING: "its task runs",
    JobState.STOPPING: "its task is stopping, on request or by itself",
    JobState.SUCCEEDED: "the program exited with 0, and not because it was stopped",
    JobState.FAILED: "it cannot be launched, failed too often, or was interrupted for too long",
    JobState.CANCELLED: "it was cancelled",
    JobState.TIMED_OUT: "its deadline has passed, or its tasks have run for `max_runtime`",
}

_WAITS = {
    WaitReason.LAUNCH: "its launch request is in the attempts queue",
    WaitReason.IMAGE: "its commit's image is not in ECR yet",
    WaitReason.SLOT: "the limit on running jobs of its definition, or of the stack, is reached",
    WaitReason.CAPACITY: "every offering that satisfies it failed or was interrupted recently",
    WaitReason.PRICE: "every offering that satisfies it currently exceeds its maximum price",
    WaitReason.BACKOFF: "its program failed, and is launched again after a delay",
    WaitReason.CHECKPOINT: "its checkpoints cannot be read; they are tried again after 5 minutes, later every 30",
    WaitReason.MACHINE: "the machine of our own that it claims has not registered with all its accelerators",
    WaitReason.MACHINE_LIMIT: "`MaxMachines` or `MaxMachinesPricePerHour` of the stack is reached",
}

_PLACEMENTS = {
    PlacementState.PENDING: "its parameters are saved; RunTask may have been sent, and may be sent again",
    PlacementState.PLACED: "it has a task",
    PlacementState.CLOSED: "its task has stopped, or it never had one",
}

_EFFECTS = {
    StopTask: "StopTask for one task",
    RequestLaunch: "a message in the attempts queue, with an optional delay",
    RememberCapacity: "all jobs avoid an offering for some time",
    CountRun: "a run on spot counts for the interruption rate of its offering",
    AdmitWaiting: "request the launch of the job that has waited longest for the free slot",
    LookForWarning: "apply a spot interruption warning of the instance that came before its task was known",
    RequestMachine: "a message in the machines queue, whose consumer has EC2 Fleet launch the machine",
    ReleaseMachine: "the job does not need the machine any more, which ends with its last claim",
}

_HEAD = """\
# The lifecycle of a job

<!-- Written by `python -m relaunch_local.pages.lifecycle docs/lifecycle.md` from relaunch.core.lifecycle.table. -->

Every transition of a job is a row of one table, `relaunch.core.lifecycle.table.TABLE`. The code runs the first row
that matches state, event and guard; an event without a row changes nothing and is logged. Attempts have no state of
their own: the state of the job is that of its current attempt.
"""

_ALWAYS = """\
## Invariants

- An open job has a `wake_at`: if all events are lost, `reconcile` checks the job at that time.
- A placement is created only when the previous one has no task that may run: a job has at most one running task.
- The intent to stop a task is saved before StopTask is called.
- Only a task that started, or that ECS no longer knows, uses up the number of its attempt.
- A slot is taken with the first launch, or with the claim of a machine of our own, kept across interruptions, and
  released at the end. A job whose checkpoints cannot be read has none while it waits: that may be without end.
- The last claim on a machine of our own ends it. What a job claims follows from the job alone, so that a release that
  was lost is found.
- The effects of a decision are saved with it, and each of them is idempotent:
"""


def render_page() -> str:
    """Return the page in Markdown, with its diagram in Mermaid."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    yield from _diagram()
    yield from _section("States", ("state", "means"), _STATES.items())
    yield from _section("What a WAITING job waits for", ("reason", "because"), _WAITS.items())
    yield from _section("Placements of an attempt", ("state", "means"), _PLACEMENTS.items())
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
        "always" if row.guard is always else _first_line(row.guard).removeprefix("Return whether ").rstrip("."),
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
