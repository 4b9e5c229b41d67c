"""Watching a job until it is over."""

from collections.abc import Callable
from datetime import datetime

from rich.console import Console
from rich.text import Text

from relaunch.core.jobs.job import Job
from relaunch.core.lifecycle.explanation import explain, time_left
from relaunch_cli.aws.connection import Connection
from relaunch_cli.lookup import load_history, refuse_job
from relaunch_cli.views.formats import write_span, write_time
from relaunch_cli.views.jobs import describe_entry
from relaunch_cli.views.screen import err, state_text

_LOOK_SECONDS = 2.0


def follow_job(job_id: str, connection: Connection) -> Job:
    """Print every new line of a job's timeline, and what it waits for, until it is over."""
    console = err()
    if not console.is_terminal:
        return _follow(job_id, connection, console, lambda _text: None)
    with console.status("") as status:
        return _follow(job_id, connection, console, status.update)


def _follow(job_id: str, connection: Connection, console: Console, tell: Callable[[Text], None]) -> Job:
    deps, shown, version = connection.deps, 0, -1
    while True:
        job = deps.jobs.load_job(job_id) or refuse_job(deps, job_id)
        now = deps.clock.now()
        if job.version != version:
            history = load_history(deps, job_id)
            for entry in history.timeline[shown:]:
                line = Text(f"{write_time(entry.at, now)}  ", style="dim").append(state_text(f"{entry.state.value:<9}"))
                console.print(line.append("  ").append(describe_entry(entry)))
            job, version, shown = history.job, history.job.version, len(history.timeline)
        if job.state.is_final:
            return job
        tell(_status(job, now))
        connection.pause(_LOOK_SECONDS)


def _status(job: Job, now: datetime) -> Text:
    explanation = explain(job, now)
    left = time_left(explanation, now)
    shown = f" ({write_span(left)} at most)" if left else ""
    return state_text(job.state.value).append(f"  waits for {explanation.waiting_for}{shown}", style="dim")
