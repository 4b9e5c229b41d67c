"""Generates docs/lifecycle.md from the transition table.

Run `python -m relaunch_local.pages.lifecycle docs/lifecycle.md`.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.jobs.effects import (
    AbandonMachine,
    AdmitWaiting,
    CountRun,
    LookForWarning,
    ReleaseMachine,
    RememberCapacity,
    RequestLaunch,
    RequestMachine,
    StopTask,
)
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.lifecycle.events import JobEvent
from relaunch.core.lifecycle.table import COMPLETIONS, TABLE
from relaunch_local.pages.transitions import (
    completions_section,
    diagram,
    effects_list,
    events_section,
    section,
    transitions_section,
)

_STATES = {
    JobState.WAITING: "nothing runs; `relaunch explain` shows what it waits for",
    JobState.LAUNCHING: "an offering is selected: its launch is in progress, or its task has not started yet",
    JobState.RUNNING: "its task runs",
    JobState.STOPPING: "its task is stopping, on request or by itself",
    JobState.SUCCEEDED: "the program exited with 0 by itself, neither stopped nor left by an essential sidecar",
    JobState.FAILED: "it cannot be launched, failed too often, or was interrupted for too long",
    JobState.CANCELLED: "it was cancelled",
    JobState.TIMED_OUT: "its deadline has passed, or its tasks have run for `max_runtime`",
}

_RULE = "([ADR 19](decisions/0019-a-refusal-that-may-heal-is-a-wait.md))"
_WAITS = {
    WaitReason.LAUNCH: "its launch request is in the attempts queue",
    WaitReason.IMAGE: "its commit's image is not in ECR yet",
    WaitReason.SLOT: "the limit on running jobs of its definition or of the stack is reached, or its group is held",
    WaitReason.CAPACITY: "every offering that satisfies it failed or was interrupted recently",
    WaitReason.PRICE: "every offering that satisfies it currently exceeds its maximum price",
    WaitReason.BACKOFF: "its program failed, or every request of a machine would; it is launched again after a delay",
    WaitReason.MARKET: "its market policy rather waits for spot than pays for on-demand, as its limit allows",
    WaitReason.MACHINE: "the machine of the stack's own that it claims is not ready yet, or its agent not connected "
    "(machine-lifecycle.md)",
    WaitReason.MACHINE_LIMIT: "a limit of the stack on machines of its own is reached, or as many start as may at once",
    WaitReason.BUDGET: "a budget has no room for an hour of what was selected; again every 10 minutes",
    WaitReason.CHECKPOINT: f"its checkpoints cannot be read; again after 5 minutes, later every 30 {_RULE}",
    WaitReason.REFUSED: f"a permission, a credential, a role or a cluster is missing {_RULE}",
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
    AdmitWaiting: "request the launch of the job that waits longest for the free slot, and of others of its group",
    RequestMachine: "a message in the machines queue: EC2 is asked for the machine",
    ReleaseMachine: "release the claim on a machine; without claims it ends",
    AbandonMachine: "end a machine of our own that does not confirm a stop; its other jobs leave it before",
    LookForWarning: "apply a spot interruption warning of the instance that came before its task was known",
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
- Only a task that started, or of which nobody knows whether it did, uses up the number of its attempt.
- A slot is taken with the first launch, kept across interruptions, and released at the end. A job that is
  refused what somebody has to grant has none while it waits, unless it keeps its machine for some minutes.
- A machine and its first claim are saved with the job that needs it, and every claim that the job does not need any
  more is released.
- The effects of a decision are saved with it, and each of them is idempotent:
"""


def render_page() -> str:
    """Return the page in Markdown, with its diagram in Mermaid."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    starts = (f"{JobState.WAITING}: accepted", f"{JobState.FAILED}: accepted, but it can never run")
    yield from diagram(JobState, TABLE, starts, (state for state in JobState if state.is_final))
    yield from section("States", ("state", "means"), _STATES.items())
    yield from section("What a WAITING job waits for", ("reason", "because"), _WAITS.items())
    yield from section("Placements of an attempt", ("state", "means"), _PLACEMENTS.items())
    yield from events_section(JobEvent)
    yield from transitions_section(JobState, TABLE)
    yield from completions_section(COMPLETIONS)
    yield _ALWAYS.rstrip("\n")
    yield from effects_list(_EFFECTS.items())


def main(arguments: Sequence[str]) -> None:
    """Write the page to the given file."""
    Path(arguments[0]).write_text(render_page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
