"""`relaunch ps`."""

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from relaunch_cli.lookup import connect
from relaunch_cli.options import DEFAULT_STACK, Json, Stack

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from relaunch.core.jobs.job import JobSummary
    from relaunch.core.machines.machine import Machine
    from relaunch.ports import JobStore
    from relaunch_cli.aws.connection import Connection

_PAGE_SIZE = 100
_POLL_SECONDS = 2.0
# More than MaxRunningJobs and MaxWaitingJobs of a stack let in.
_MOST_OPEN = 10_000
# Old jobs that are still open are read each for itself; of many, the pages that they are on.
_MOST_ONE_BY_ONE = 50


def ps(
    context: typer.Context,
    is_all: Annotated[bool, typer.Option("--all", "-a", help="Include jobs that have ended.")] = False,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many jobs to read, newest first; open ones are all listed.")
    ] = 200,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh every two seconds until Ctrl-C.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """List the open jobs, newest first; their costs include the running task."""
    from relaunch_cli.views.jobs import render_jobs
    from relaunch_cli.views.screen import print_json, print_note, print_result, progress, stdout_console

    connection = connect(context, stack)
    if watch and not as_json:
        _watch(connection, limit, is_all=is_all)
    with progress("reading jobs"):
        jobs, is_cut = _load_jobs(connection, limit, is_all=is_all)
    now = connection.now()
    if as_json:
        from relaunch_cli.views.json_output.jobs import summary_json

        print_json({"jobs": [summary_json(job, now) for job in jobs], "is_cut": is_cut})
        return
    if jobs:
        awaited = _load_awaited(jobs, connection)
        print_result(render_jobs(jobs, now, stdout_console().width, awaited))
    else:
        print_note("no jobs" if is_all else "no open jobs; --all includes jobs that have ended")
    if is_cut:
        print_note(f"only the newest {limit} jobs were read, and all open ones: see --limit")


def _load_jobs(connection: "Connection", limit: int, *, is_all: bool) -> "tuple[list[JobSummary], bool]":
    """Return the open jobs, with `is_all` the newest others too, and whether older ones of these were left unread."""
    found: list[JobSummary] = []
    cursor: str | None = None
    missing: set[str] | None = None
    while True:
        page, cursor = connection.jobs.list_jobs(min(_PAGE_SIZE, max(limit - len(found), 1)), cursor)
        found += page
        if cursor is None:
            break
        if len(found) >= limit:
            missing = set(connection.jobs.load_open(_MOST_OPEN)) if missing is None else missing
            missing -= {job.job_id for job in found}
            if len(missing) <= _MOST_ONE_BY_ONE:
                found += _load_one_by_one(missing, connection.deps.jobs)
                break
            limit = len(found) + _PAGE_SIZE
    return [job for job in found if is_all or not job.state.is_final], is_all and cursor is not None


def _load_one_by_one(job_ids: "Collection[str]", store: "JobStore") -> "list[JobSummary]":
    from relaunch.core.jobs.summary import summarize_job

    loaded = (store.load_job(job_id) for job_id in job_ids)
    return sorted((summarize_job(job) for job in loaded if job), key=lambda job: job.accepted_at, reverse=True)


def _load_awaited(jobs: "Sequence[JobSummary]", connection: "Connection") -> "Mapping[str, Machine]":
    if not any(job.machine_id for job in jobs):
        return {}
    from relaunch_cli.job_machines import load_awaited

    return load_awaited(jobs, connection.deps.machines)


def _watch(connection: "Connection", limit: int, *, is_all: bool) -> NoReturn:
    from relaunch_cli.views.jobs import render_jobs
    from relaunch_cli.views.screen import refreshed, stdout_console

    console = stdout_console()
    with refreshed(console) as show:
        while True:
            jobs, _ = _load_jobs(connection, limit, is_all=is_all)
            show(render_jobs(jobs, connection.now(), console.width, _load_awaited(jobs, connection)))
            connection.pause(_POLL_SECONDS)
