"""`relaunch ps`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from relaunch.core.jobs.state import FINAL_STATES, JobState
from relaunch_cli.completions import complete_definition
from relaunch_cli.errors import CommandError, did_you_mean
from relaunch_cli.lookup import MOST_OPEN, connect, load_definition
from relaunch_cli.options import DEFAULT_STACK, Json, Stack, parse_age
from relaunch_cli.value_completions import complete_state
from relaunch_cli.views.job_list import render_jobs
from relaunch_cli.views.json_output.job_list import summary_json
from relaunch_cli.views.screen import print_json, print_note, print_result, progress, refreshed, stdout_console

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from relaunch.core.jobs.state import JobSummary
    from relaunch.ports import JobStore
    from relaunch_cli.aws.connected import Connection

_PAGE_SIZE = 100
_POLL_SECONDS = 2.0
# Old jobs that are still open are read each for itself; of many, the pages that they are on.
_MOST_ONE_BY_ONE = 50


@dataclass(frozen=True, slots=True)
class _Filter:
    """Which jobs are listed.

    Of jobs that have ended at most `limit` of the newest are read. `after` is when a job was accepted at the earliest;
    without `states` all open ones match, and with `has_ended` all others too.
    """

    limit: int
    has_ended: bool
    states: frozenset[str]
    definition: str
    after: "datetime | None"

    @property
    def wants_ended(self) -> bool:
        """Return whether jobs that have ended may match."""
        return not self.states.isdisjoint(FINAL_STATES) if self.states else self.has_ended

    def matches(self, job: "JobSummary") -> bool:
        """Return whether a job is listed."""
        in_state = job.state.value in self.states if self.states else self.has_ended or not job.state.is_final
        named = not self.definition or job.definition == self.definition
        return in_state and named and (self.after is None or job.accepted_at >= self.after)


def ps(  # noqa: PLR0913 - a command has the options it has
    context: typer.Context,
    *,
    is_all: Annotated[bool, typer.Option("--all", "-a", help="Include jobs that have ended.")] = False,
    state: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATE",
            help="Only jobs in this state, for example RUNNING or FAILED; repeatable.",
            autocompletion=complete_state,
        ),
    ] = None,
    definition: Annotated[
        str,
        typer.Option(metavar="NAME", help="Only jobs of this definition.", autocompletion=complete_definition),
    ] = "",
    since: Annotated[
        str,
        typer.Option(metavar="TIME", help="Only jobs accepted in the last 30m, 12h or 7d; also those that have ended."),
    ] = "",
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many jobs to read, newest first; open ones are all listed.")
    ] = 200,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh every two seconds until Ctrl-C.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """List the open jobs, newest first; their costs include the running task."""
    states = _parse_states(state or [])
    age = parse_age(since) if since else None
    connection = connect(context, stack)
    wanted = _Filter(limit, is_all or bool(age), states, definition, connection.now() - age if age else None)
    if watch and not as_json:
        _watch(connection, wanted)
    with progress("reading jobs"):
        jobs, is_cut = _load_jobs(connection, wanted)
        if not jobs:
            _check_definition(definition, connection)
    now = connection.now()
    if as_json:
        print_json({"jobs": [summary_json(job, now) for job in jobs], "is_cut": is_cut})
        return
    if jobs:
        print_result(render_jobs(jobs, now, _load_awaited(jobs, connection)))
    else:
        print_note(_describe_none(wanted))
    if is_cut:
        print_note(f"only the newest {limit} jobs were read, and all open ones: see --limit")


def _parse_states(names: "Iterable[str]") -> frozenset[str]:
    """Return the states of `--state`, written in any case.

    Raises:
        CommandError: there is no such state.
    """
    known = [each.value for each in JobState]
    for name in names:
        if name.upper() not in known:
            hint = did_you_mean(name.upper(), known) or f"the states are {', '.join(known)}"
            raise CommandError(f"there is no state {name!r}", hint)
    return frozenset(name.upper() for name in names)


def _check_definition(name: str, connection: "Connection") -> None:
    """Check that a definition without jobs is registered; one that was deleted may have jobs.

    Raises:
        CommandError: it is not.
    """
    if name:
        load_definition(connection.deps, name)


def _describe_none(wanted: _Filter) -> str:
    if wanted.states or wanted.definition or wanted.after:
        return "no such jobs"
    return "no jobs" if wanted.has_ended else "no open jobs; --all includes jobs that have ended"


def _load_jobs(connection: "Connection", wanted: _Filter) -> "tuple[list[JobSummary], bool]":
    """Return the jobs, and whether older ones that have ended were left unread."""
    found: list[JobSummary] = []
    cursor: str | None = None
    missing: set[str] | None = None
    limit = wanted.limit
    while True:
        page, cursor = connection.jobs.list_jobs(min(_PAGE_SIZE, max(limit - len(found), 1)), cursor)
        found += page
        if cursor is None or (wanted.after and page[-1].accepted_at < wanted.after):
            cursor = None
            break
        if len(found) >= limit:
            missing = set(connection.jobs.load_open(MOST_OPEN)) if missing is None else missing
            missing -= {job.job_id for job in found}
            if len(missing) <= _MOST_ONE_BY_ONE:
                found += _load_one_by_one(missing, connection.deps.jobs)
                break
            limit = len(found) + _PAGE_SIZE
    return [job for job in found if wanted.matches(job)], wanted.wants_ended and cursor is not None


def _load_one_by_one(job_ids: "Collection[str]", store: "JobStore") -> "list[JobSummary]":
    from relaunch.core.jobs.cost import summarize_job  # noqa: PLC0415 - where an old job is still open

    loaded = (store.load_job(job_id) for job_id in job_ids)
    return sorted((summarize_job(job) for job in loaded if job), key=lambda job: job.accepted_at, reverse=True)


def _load_awaited(jobs: "Sequence[JobSummary]", connection: "Connection") -> "Mapping[str, tuple[str, str]]":
    """Return type and zone of the machines that jobs wait for, by ID."""
    if not any(job.machine_id for job in jobs):
        return {}
    from relaunch_cli.job_machines import load_awaited  # noqa: PLC0415 - where a job has a machine
    from relaunch_cli.views.machines import short_offering  # noqa: PLC0415 - as above

    found = load_awaited(jobs, connection.deps.machines)
    return {machine_id: short_offering(machine) for machine_id, machine in found.items()}


def _watch(connection: "Connection", wanted: _Filter) -> NoReturn:
    with refreshed(stdout_console()) as show:
        while True:
            jobs, _ = _load_jobs(connection, wanted)
            table = render_jobs(jobs, connection.now(), _load_awaited(jobs, connection))
            show(table if jobs else _describe_none(wanted))
            connection.pause(_POLL_SECONDS)
