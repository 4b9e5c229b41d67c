"""Waiting for a job to end, for `submit --wait`: prints its timeline as it grows."""

from contextlib import nullcontext
from datetime import datetime

from rich.console import Console
from rich.status import Status
from rich.text import Text

from relaunch.core.jobs.job import Job
from relaunch.core.lifecycle.explanation import explain, time_left
from relaunch_cli.aws.connection import Connection
from relaunch_cli.lookup import load_history, raise_no_job
from relaunch_cli.views.formatting import format_duration, format_time
from relaunch_cli.views.jobs import describe_entry
from relaunch_cli.views.screen import print_note, state_text, stderr_console

_POLL_SECONDS = 2.0


def wait_for_job(job_id: str, connection: Connection) -> Job:
    """Print a job's timeline and what it waits for until it ends; Ctrl-C leaves it running."""
    console = stderr_console()
    try:
        with console.status("") if console.is_terminal else nullcontext() as status:
            return _wait(job_id, connection, console, status)
    except KeyboardInterrupt:
        print_note(f"the job keeps running: `relaunch show {job_id}`, `relaunch cancel {job_id}`")
        raise


def _wait(job_id: str, connection: Connection, console: Console, status: Status | None) -> Job:
    deps, shown, version = connection.deps, 0, -1
    while True:
        job = deps.jobs.load_job(job_id) or raise_no_job(deps, job_id)
        now = deps.clock.now()
        if job.version != version:
            history = load_history(deps, job_id)
            for entry in history.timeline[shown:]:
                line = Text(f"{format_time(entry.at, now)}  ", style="dim")
                console.print(
                    line.append(state_text(f"{entry.state.value:<9}")).append("  ").append(describe_entry(entry))
                )
            job, version, shown = history.job, history.job.version, len(history.timeline)
        if job.state.is_final:
            return job
        if status is not None:
            status.update(_describe(job, now))
        connection.pause(_POLL_SECONDS)


def _describe(job: Job, now: datetime) -> Text:
    explanation = explain(job, now)
    left = time_left(explanation, now)
    shown = f" ({format_duration(left)} at most)" if left else ""
    return state_text(job.state.value).append(f"  waits for {explanation.waiting_for}{shown}", style="dim")
