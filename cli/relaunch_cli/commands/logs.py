"""`relaunch logs`."""

from itertools import chain
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from relaunch.core.definitions.targets import Target
from relaunch_cli.job_logs import JobLogs, follow_logs
from relaunch_cli.lookup import check_rank, connect, find_attempt, find_container, load_runs
from relaunch_cli.options import DEFAULT_STACK, JobId, Json, Stack, parse_age
from relaunch_cli.terminal import echo, log_lines
from relaunch_cli.views.json_output.job_list import log_line_json
from relaunch_cli.views.screen import print_json, print_note, progress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from relaunch.core.jobs.state import JobState
    from relaunch_cli.job_logs import LogLine


def logs(  # noqa: PLR0913 - a command has the options it has
    context: typer.Context,
    job: JobId,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing new lines, across relaunches, until the job ends.")
    ] = False,
    attempt: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only this attempt.")] = None,
    tail: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Only the newest N lines, and with --follow what comes then.")
    ] = None,
    since: Annotated[str, typer.Option(metavar="TIME", help="Only lines of the last 10m, 2h or 1h30m.")] = "",
    container: Annotated[
        str | None, typer.Option(metavar="NAME", help="Container; default: the job's main container.")
    ] = None,
    rank: Annotated[
        int, typer.Option(metavar="N", min=0, help="Of a job with several nodes: the node to read, counted from 0.")
    ] = 0,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Print the logs of a job's tasks, all attempts in order."""
    age = parse_age(since) if since else None
    connection = connect(context, stack)
    jobs = connection.jobs
    with progress("reading the job"):
        history = load_runs(jobs, job)
    if not follow or history.job.state.is_final:
        find_attempt(attempt, history.attempts, history.job.job_id)
    check_rank(rank, history)
    match history.job.definition.target:
        case Target.ECS:
            source = connection.logs
        case Target.KUBERNETES | Target.ACK | Target.ACS:
            # A task has the pods of all ranks.
            source, rank = connection.pod_logs.of_rank(rank), 0
        case _:
            assert_never(history.job.definition.target)
    now = connection.now()
    start = now - age if age else None
    reader = JobLogs(source, find_container(container, history), attempt, start, rank=rank)
    lines: Iterable[LogLine] = [] if tail is None else reader.tail(history, tail, now)
    if follow:
        lines = chain(
            lines, follow_logs(reader, lambda: load_runs(jobs, history.job.job_id), connection.now, connection.pause)
        )
    elif tail is None:
        lines = reader.read(history, now)
    is_any = _print_lines(lines, as_json=as_json)
    if not is_any and not as_json:
        print_note(f"no logs{_until(history.job.state, has_start=age is not None)}; the job is {history.job.state}")
    for note in reader.notes(connection.now(), is_followed=follow):
        print_note(note)


def _until(state: "JobState", *, has_start: bool) -> str:
    if has_start:
        return " since then"
    return "" if state.is_final else " yet"


def _print_lines(lines: "Iterable[LogLine]", *, as_json: bool) -> bool:
    """Print lines as they arrive, with a note where the next attempt begins; return whether there were any."""
    current = 0
    for line in lines:
        if as_json:
            print_json(log_line_json(line), indent=None)
            continue
        if line.attempt_number != current:
            current = line.attempt_number
            print_note(f"attempt {current}")
        for text in log_lines(line.message):
            echo(text)
    return current > 0
