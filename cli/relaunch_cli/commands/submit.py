"""`relaunch submit`."""

import uuid
from typing import TYPE_CHECKING, Annotated

import typer

from relaunch.core.jobs.job import keyed_identity
from relaunch.core.triggers.events import DirectRequest
from relaunch.usecases.submit_job import submit_request
from relaunch_cli.completions import complete_definition
from relaunch_cli.errors import CommandError, did_you_mean
from relaunch_cli.lookup import connect, load_definition
from relaunch_cli.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.submission import check_key, finish, submit_job

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relaunch.core.definitions.definition import JobDefinition


def submit(  # noqa: PLR0913 - a command has the options it has
    context: typer.Context,
    definition: Annotated[
        str,
        typer.Argument(
            metavar="DEFINITION", help="Name of a registered job definition.", autocompletion=complete_definition
        ),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="KEY=VALUE", help="Declared input; repeatable."),
    ] = None,
    image_tag: Annotated[
        str, typer.Option(metavar="TAG", help="Run this image of the repository that a trigger watches.")
    ] = "",
    *,
    wait: Annotated[
        bool, typer.Option("--wait/--detach", help="Show progress until the job ends, or return at once.")
    ] = False,
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Idempotency key: the same key returns the same job. Default: a random one."),
    ] = None,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Submit a job and print its ID.

    With --wait, Ctrl-C ends the wait, not the job; the exit code is 1 if the job failed and 130 if it was cancelled.
    """
    check_key(key)
    connection = connect(context, stack)
    deps = connection.deps
    given = _parse_inputs(inputs or [])
    _check_declared(load_definition(deps, definition), given)
    # The URL of job_api derives the same identity from the same key of the same caller.
    identity = keyed_identity(connection.caller, key) if key else f"cli:{uuid.uuid4()}"
    request = DirectRequest(identity, definition, given, connection.caller, deps.clock.now(), image_tag)
    submission, job = submit_job(lambda: submit_request(request, deps))
    finish(submission, job, connection, is_awaited=wait, as_json=as_json)


def _parse_inputs(pairs: "Sequence[str]") -> dict[str, str]:
    inputs: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise CommandError(f"{pair!r} is not KEY=VALUE", "for example: -i learning_rate=0.1")
        if name in inputs:
            raise CommandError(f"input {name} is given twice")
        inputs[name] = value
    return inputs


def _check_declared(definition: "JobDefinition", given: "Mapping[str, str]") -> None:
    """Check that inputs are declared, as every submission is, to name the nearest one."""
    for name in given:
        if name not in definition.inputs:
            hint = did_you_mean(name, definition.inputs) or f"declared: {', '.join(definition.inputs) or 'none'}"
            raise CommandError(f"{definition.name} declares no input {name!r}", hint)
