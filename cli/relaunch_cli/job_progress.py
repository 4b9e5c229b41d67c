"""Waiting for a job to end, for `wait` and `--wait`: prints its timeline as it grows."""

from dataclasses import dataclass
from datetime import datetime

from rich.console import Console
from rich.status import Status
from rich.text import Text

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.explanation import explain, time_left
from relaunch.ports import Dependencies, TransientError
from relaunch_cli import exit_codes
from relaunch_cli.aws.connected import Connection
from relaunch_cli.lookup import load_history, load_job
from relaunch_cli.views.formatting import format_duration, format_time
from relaunch_cli.views.jobs import describe_entry
from relaunch_cli.views.screen import print_note, progress, state_text, stderr_console

_POLL_SECONDS = 2.0
# In a row: a job may run for days, and what throttles or does not answer for a minute ends no wait.
_MAX_FAILURES = 30


def exit_code_of(job: Job) -> int:
    """Return the exit code of a command that waited for a job."""
    codes = {JobState.SUCCEEDED: exit_codes.OK, JobState.CANCELLED: exit_codes.CANCELLED}
    return codes.get(job.state, exit_codes.JOB_FAILED)


def wait_for_job(job_id: str, connection: Connection) -> Job:
    """Print a job's timeline and what it waits for until it ends; Ctrl-C ends the wait alone."""
    shown = _Shown(job_id)
    try:
        with progress("") as status:
            return _wait(shown, connection, stderr_console(), status)
    except KeyboardInterrupt:
        # A line each: of two commands a terminal of 80 columns would break the second within the ID.
        if shown.state is not None:
            print_note(f"the job goes on: it is {shown.state}")
            print_note(f"  relaunch show {shown.job_id}")
            print_note(f"  relaunch cancel {shown.job_id}")
        raise


def _wait(shown: "_Shown", connection: Connection, console: Console, status: Status | None) -> Job:
    deps = connection.deps
    failures = 0
    while True:
        try:
            job = _look(deps, console, shown)
            failures = 0
        except TransientError:
            failures += 1
            if failures == _MAX_FAILURES:
                raise
        else:
            if job.state.is_final:
                return job
            if status is not None:
                status.update(_describe(job, deps.clock.now()))
        connection.pause(_POLL_SECONDS)


@dataclass
class _Shown:
    """What is printed already: the number of entries of the timeline, and the version of the job that had them.

    `job_id` is what the user gave until the job is found.
    """

    job_id: str
    state: JobState | None = None
    entries: int = 0
    version: int = -1


def _look(deps: Dependencies, console: Console, shown: _Shown) -> Job:
    """Load a job, and print what is new in its timeline."""
    job = load_job(deps, shown.job_id)
    shown.job_id = job.job_id
    shown.state = job.state
    if job.version == shown.version:
        return job
    history = load_history(deps, job.job_id)
    now = deps.clock.now()
    for entry in history.timeline[shown.entries :]:
        line = Text(f"{format_time(entry.at, now)}  ", style="dim")
        line.append(state_text(f"{entry.state.value:<9}")).append("  ").append(describe_entry(entry))
        # In a pipe every record is one line.
        console.print(line, soft_wrap=not console.is_terminal)
    shown.entries = len(history.timeline)
    shown.version = history.job.version
    return history.job


def _describe(job: Job, now: datetime) -> Text:
    explanation = explain(job, now)
    left = time_left(explanation, now)
    shown = f" ({format_duration(left)} at most)" if left and not explanation.is_look else ""
    return state_text(job.state.value).append(f"  waits for {explanation.waiting_for}{shown}", style="dim")
