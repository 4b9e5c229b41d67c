"""logs."""

# ruff: noqa: PLC0415 - each command imports what it needs, so that `relaunch --help` needs none of it

from typing import TYPE_CHECKING, Annotated

import typer

from relaunch_cli import exit_codes
from relaunch_cli.commands.options import DEFAULT_STACK, JobId, Json, Stack
from relaunch_cli.errors import CommandError, reported
from relaunch_cli.lookup import connect, load_history

if TYPE_CHECKING:
    from collections.abc import Iterable

    from relaunch.ports import JobHistory
    from relaunch_cli.job_logs import LogLine

commands = typer.Typer()


@commands.command()
@reported
def logs(  # noqa: PLR0913, PLR0917 - a command has the options it has
    context: typer.Context,
    job: JobId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job ends, over relaunches.")] = False,
    attempt: Annotated[int | None, typer.Option(min=1, help="Only this attempt.")] = None,
    container: Annotated[str | None, typer.Option(help="Another container than the job's own.")] = None,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Print what the job's tasks wrote, all attempts in order."""
    from relaunch_cli.job_logs import JobLogs, follow_logs
    from relaunch_cli.views.screen import progress

    connection = connect(context, stack)
    deps = connection.deps
    with progress("reading the job"):
        history = load_history(deps, job)
    reader = JobLogs(connection.logs, container or logging_container(history), attempt)
    if follow:
        lines = follow_logs(reader, lambda: load_history(deps, job), deps.clock.now, connection.pause)
    else:
        lines = reader.read(history, deps.clock.now())
    print_lines(lines, history, as_json=as_json)


def logging_container(history: "JobHistory") -> str:
    """Return the container that counts.

    Raises:
        CommandError: the revision has several and the definition names none.
    """
    from relaunch.core.revisions.main_container import main_container

    found = main_container(history.job.definition, history.job.revision)
    if found is None:
        raise CommandError("the task has several containers", "say which one with --container", exit_codes.USAGE)
    return found


def print_lines(lines: "Iterable[LogLine]", history: "JobHistory", *, as_json: bool) -> None:
    """Print lines as they come, with a remark where another attempt begins."""
    from relaunch_cli.views.json_output import dump, line_shape
    from relaunch_cli.views.screen import remark

    current = 0
    for line in lines:
        if as_json:
            typer.echo(dump(line_shape(line), indent=None))
            continue
        if line.attempt_number != current:
            current = line.attempt_number
            remark(f"attempt {current}")
        typer.echo(line.message.rstrip("\n"))
    if not current and not as_json:
        remark(f"nothing was written yet; the job is {history.job.state}")
