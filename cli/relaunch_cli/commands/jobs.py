"""ps, show, explain, cancel and events."""

# ruff: noqa: PLC0415 - each command imports what it needs, so that `relaunch --help` needs none of it

from typing import TYPE_CHECKING, Annotated

import typer

from relaunch_cli.commands.options import DEFAULT_STACK, JobId, Json, Stack
from relaunch_cli.errors import reported
from relaunch_cli.lookup import connect, load_history, refuse_job

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from relaunch.core.jobs.job import Job, JobSummary
    from relaunch.ports import Dependencies, JobHistory
    from relaunch_cli.aws.connection import Connection

commands = typer.Typer()
_PAGE = 100
_WATCH_SECONDS = 2.0


@commands.command()
@reported
def ps(
    context: typer.Context,
    is_all: Annotated[bool, typer.Option("--all", "-a", help="Also jobs that are over.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many of the newest jobs to look at.")] = 200,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again every two seconds until Ctrl-C.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """List jobs, newest first."""
    from relaunch_cli.views.json_output import dump, summary_shape
    from relaunch_cli.views.screen import progress, say

    connection = connect(context, stack)
    deps = connection.deps
    if as_json:
        jobs, is_cut = load_jobs(deps, limit, is_all=is_all)
        say(dump({"jobs": [summary_shape(job) for job in jobs], "is_cut": is_cut}))
    elif watch:
        watch_jobs(connection, limit, is_all=is_all)
    else:
        with progress("reading jobs"):
            jobs, is_cut = load_jobs(deps, limit, is_all=is_all)
        show_jobs(jobs, deps, limit, is_cut=is_cut, is_all=is_all)


def load_jobs(deps: "Dependencies", limit: int, *, is_all: bool) -> "tuple[list[JobSummary], bool]":
    """Load the newest jobs, all or only those that are not over; also tell whether older ones were left unread."""
    found: list[JobSummary] = []
    cursor: str | None = None
    while True:
        page, cursor = deps.jobs.list_jobs(min(_PAGE, limit - len(found)), cursor)
        found += page
        if cursor is None or len(found) >= limit:
            return [job for job in found if is_all or not job.state.is_final], cursor is not None


def show_jobs(jobs: "Sequence[JobSummary]", deps: "Dependencies", limit: int, *, is_cut: bool, is_all: bool) -> None:
    """Print the table of jobs, and what is not in it."""
    from relaunch_cli.views.jobs import render_jobs
    from relaunch_cli.views.screen import out, remark, show

    if jobs:
        show(render_jobs(jobs, deps.clock.now(), out().width))
    else:
        remark("no jobs" if is_all else "no open jobs; --all also shows those that are over")
    if is_cut:
        remark(f"only the newest {limit} jobs were looked at: --limit")


def watch_jobs(connection: "Connection", limit: int, *, is_all: bool) -> None:
    """Show the table of jobs anew until Ctrl-C."""
    from rich.live import Live

    from relaunch_cli.views.jobs import render_jobs
    from relaunch_cli.views.screen import out

    console, deps = out(), connection.deps
    with Live(console=console, auto_refresh=False) as live:
        while True:
            jobs, _ = load_jobs(deps, limit, is_all=is_all)
            live.update(render_jobs(jobs, deps.clock.now(), console.width), refresh=True)
            connection.pause(_WATCH_SECONDS)


@commands.command()
@reported
def show(context: typer.Context, job: JobId, as_json: Json = False, stack: Stack = DEFAULT_STACK) -> None:
    """Show a job and its attempts."""
    from relaunch.core.lifecycle.explanation import explain as explain_job
    from relaunch_cli.views import screen
    from relaunch_cli.views.jobs import render_job
    from relaunch_cli.views.json_output import dump, history_shape

    deps = connect(context, stack).deps
    with screen.progress("reading the job"):
        history = load_history(deps, job)
    now = deps.clock.now()
    if as_json:
        screen.say(dump(history_shape(history, now)))
    else:
        screen.show(render_job(history, explain_job(history.job, now), now))


@commands.command()
@reported
def explain(
    context: typer.Context,
    job: JobId,
    is_full: Annotated[bool, typer.Option("--all", help="Name every rejected offering.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Explain a job: what comes next, what came, and why.

    What it waits for and since when, what happens next and when, what you could change, its timeline, and the
    selection of each attempt.
    """
    from relaunch.core.lifecycle.explanation import explain as explain_job
    from relaunch_cli.views.json_output import dump, explanation_shape
    from relaunch_cli.views.screen import progress, say

    deps = connect(context, stack).deps
    with progress("reading the job"):
        history = load_history(deps, job)
    now = deps.clock.now()
    if as_json:
        say(dump(explanation_shape(history, explain_job(history.job, now), now)))
    else:
        show_explanation(history, now, is_full=is_full)


def show_explanation(history: "JobHistory", now: "datetime", *, is_full: bool) -> None:
    """Print an explanation."""
    from rich.text import Text

    from relaunch.core.lifecycle.explanation import explain as explain_job
    from relaunch_cli.views import screen
    from relaunch_cli.views.formats import write_moment
    from relaunch_cli.views.jobs import render_explanation, render_timeline
    from relaunch_cli.views.selection import render_selection

    job, width = history.job, screen.out().width
    screen.show(Text(job.job_id, style="bold").append("  ").append(screen.state_text(job.state.value)), Text())
    screen.show(render_explanation(explain_job(job, now), now), Text())
    screen.show(render_timeline(history.timeline, now))
    for stored in history.selections:
        place = f"Selection of attempt {stored.attempt_number}"
        if stored.placement_number > 1:
            place += f", placement try {stored.placement_number}"
        screen.show(Text(f"\n{place}, {write_moment(stored.selected_at, now)}", style="bold"))
        screen.show(render_selection(stored.rows, stored.filter_counts, width, is_full=is_full))


@commands.command()
@reported
def cancel(
    context: typer.Context,
    job: JobId,
    reason: Annotated[str, typer.Option(help="Why, for the timeline.")] = "cancelled by hand",
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Cancel a job.

    A running task gets SIGTERM and time to save; the job is not launched again.
    """
    from relaunch.usecases.cancel_job import cancel_job
    from relaunch_cli.views.json_output import dump, job_shape
    from relaunch_cli.views.screen import progress, say

    deps = connect(context, stack).deps
    with progress("cancelling"):
        before = deps.jobs.load_job(job) or refuse_job(deps, job)
        after = cancel_job(job, reason, deps) or refuse_job(deps, job)
    if as_json:
        say(dump({"state_before": before.state.value, **job_shape(after, deps.clock.now())}))
        return
    say(describe_cancel(before, after))


def describe_cancel(before: "Job", after: "Job") -> str:
    """Say what a job was found as, and what cancelling does to it."""
    if before.state.is_final:
        return f"{after.job_id} is over already: {after.state}"
    if after.state.is_final:
        return f"{after.job_id} was {before.state} and is {after.state} now"
    return f"{after.job_id} was {before.state}: its task is being stopped, then the job is CANCELLED"


@commands.command()
@reported
def events(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help="How many of the newest events.")] = 20,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """List recent events and what came of each.

    Of the last eight days: the jobs an event started, or why it started none.
    """
    from relaunch_cli.views.jobs import render_events
    from relaunch_cli.views.json_output import dump, event_shape
    from relaunch_cli.views.screen import progress, remark, say
    from relaunch_cli.views.screen import show as show_parts

    deps = connect(context, stack).deps
    with progress("reading events"):
        found = deps.events.list_events(deps.clock.now(), limit)
    if as_json:
        say(dump({"events": [event_shape(event) for event in found]}))
    elif found:
        show_parts(render_events(found, deps.clock.now()))
    else:
        remark("no event has arrived: is the webhook set up, and does the bucket send its events to EventBridge?")
