"""`relaunch logs`."""

from typing import TYPE_CHECKING, Annotated

import typer

from relaunch_cli import exit_codes
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import connect, load_history
from relaunch_cli.options import DEFAULT_STACK, JobId, Json, Stack
from relaunch_cli.terminal import echo, log_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from relaunch.ports import JobHistory
    from relaunch_cli.job_logs import LogLine


def logs(  # noqa: PLR0913, PLR0917 - a command has the options it has
    context: typer.Context,
    job: JobId,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing new lines, across relaunches, until the job ends.")
    ] = False,
    attempt: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only this attempt.")] = None,
    container: Annotated[
        str | None, typer.Option(metavar="NAME", help="Container; default: the job's main container.")
    ] = None,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Print the logs of a job's tasks, all attempts in order."""
    from relaunch_cli.job_logs import JobLogs, follow_logs
    from relaunch_cli.views.screen import progress

    connection = connect(context, stack)
    deps = connection.deps
    with progress("reading the job"):
        history = load_history(deps, job)
    _check_attempt(attempt, history, is_awaited=follow)
    is_on_kubernetes = history.job.definition.target.is_kubernetes
    source = connection.pod_logs if is_on_kubernetes else connection.logs
    reader = JobLogs(source, container or _main_container(history), attempt)
    if follow:
        lines = follow_logs(reader, lambda: load_history(deps, job), deps.clock.now, connection.pause)
    else:
        lines = reader.read(history, deps.clock.now())
    _print_lines(lines, history, as_json=as_json)


def _check_attempt(number: int | None, history: "JobHistory", *, is_awaited: bool) -> None:
    """Check that there is an attempt of this number, or that it may still come while the log is followed."""
    last = len(history.attempts)
    if number is None or number <= last or (is_awaited and not history.job.state.is_final):
        return
    hint = f"it has {last}: `relaunch show {history.job.job_id}`" if last else "it has none yet"
    raise CommandError(f"{history.job.job_id} has no attempt {number}", hint, exit_codes.NOT_FOUND)


def _main_container(history: "JobHistory") -> str:
    from relaunch.core.revisions.main_container import main_container

    found = main_container(history.job.definition, history.job.revision)
    if found is None:
        raise CommandError("the task has several containers", "name one with --container")
    return found


def _print_lines(lines: "Iterable[LogLine]", history: "JobHistory", *, as_json: bool) -> None:
    """Print lines as they arrive, with a note where the next attempt begins."""
    from relaunch_cli.views.json_output.jobs import log_line_json
    from relaunch_cli.views.screen import print_json, print_note

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
    if not current and not as_json:
        print_note(f"no logs yet; the job is {history.job.state}")
