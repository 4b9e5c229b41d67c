"""Finding what a command names: its connection, a job, a definition; with the nearest names when there is none."""

# ruff: noqa: PLC0415 - boto3 and our core are imported where they are needed, so that `relaunch --help` is fast

from typing import TYPE_CHECKING, NoReturn

import typer

from relaunch_cli import exit_codes
from relaunch_cli.aws.connection import AwsConnection, Connection
from relaunch_cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from relaunch.core.definitions.definition import JobDefinition
    from relaunch.ports import Dependencies, JobHistory

_RECENT = 100


def connect(context: typer.Context, stack: str, region: str = "") -> Connection:
    """Return the connection of a test, or else the stack's; `region` in place of the one the caller works in."""
    given = context.find_root().obj
    return AwsConnection(stack, region) if given is None else given


def load_history(deps: "Dependencies", job_id: str) -> "JobHistory":
    """Load everything about a job.

    Raises:
        CommandError: there is no such job.
    """
    return deps.jobs.load_history(job_id) or refuse_job(deps, job_id)


def refuse_job(deps: "Dependencies", job_id: str) -> NoReturn:
    """Say that there is no such job, and which ones there are.

    Raises:
        CommandError: always.
    """
    summaries, _ = deps.jobs.list_jobs(_RECENT)
    hint = _nearest(job_id, (summary.job_id for summary in summaries)) or "`relaunch ps --all` lists all jobs"
    raise CommandError(f"there is no job {job_id!r}", hint, exit_codes.NOT_FOUND)


def load_definition(deps: "Dependencies", name: str) -> "JobDefinition":
    """Load a registered definition.

    Raises:
        CommandError: there is none of this name.
    """
    definition = deps.definitions.load_definition(name)
    if definition is not None:
        return definition
    known = (each.name for each in deps.definitions.list_definitions())
    hint = _nearest(name, known) or "`relaunch definitions` lists them, `relaunch apply` registers them"
    raise CommandError(f"there is no job definition {name!r}", hint, exit_codes.NOT_FOUND)


def _nearest(name: str, known: "Iterable[str]") -> str:
    from relaunch.core.offerings.instance_types import nearest_names

    near = nearest_names(name, known)
    return f"did you mean {' or '.join(near)}?" if near else ""
