"""`relaunch submit`."""

from typing import TYPE_CHECKING, Annotated

import typer

from relaunch_cli import exit_codes
from relaunch_cli.errors import CommandError, did_you_mean
from relaunch_cli.lookup import connect, load_definition
from relaunch_cli.options import DEFAULT_STACK, Json, Stack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relaunch.core.definitions.definition import JobDefinition
    from relaunch.core.jobs.job import Job
    from relaunch.ports import Dependencies
    from relaunch.usecases.submit_job import Submission
    from relaunch_cli.aws.connection import Connection


def submit(  # noqa: PLR0913, PLR0917 - a command has the options it has
    context: typer.Context,
    definition: Annotated[str, typer.Argument(metavar="DEFINITION", help="Name of a registered job definition.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="KEY=VALUE", help="Declared input; repeatable."),
    ] = None,
    image_tag: Annotated[
        str, typer.Option(metavar="TAG", help="Run this image of the repository that a trigger watches.")
    ] = "",
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

    With --wait, Ctrl-C leaves the job running; the exit code is 1 if the job failed and 130 if it was cancelled.
    """
    from relaunch_cli.views.json_output.jobs import job_json
    from relaunch_cli.views.screen import print_json, print_note, print_text

    connection = connect(context, stack)
    deps = connection.deps
    submission, job = _submit(connection, definition, _parse_inputs(inputs or []), image_tag, key)
    if not as_json:
        print_text(job.job_id)
        if not submission.is_new:
            print_note(submission.note)
        for trouble in _bucket_troubles(job, deps):
            print_note(trouble)
    if wait:
        from relaunch_cli.job_progress import wait_for_job

        job = wait_for_job(job.job_id, connection)
    if as_json:
        print_json(job_json(job, deps.clock.now()))
    if wait or job.state.is_final:
        raise typer.Exit(_exit_code(job))


def _submit(
    connection: "Connection", name: str, inputs: "Mapping[str, str]", image_tag: str, key: str | None
) -> "tuple[Submission, Job]":
    import uuid

    from relaunch.core.jobs.callers import keyed_identity
    from relaunch.core.triggers.events import DirectRequest
    from relaunch.usecases.submit_job import (
        IdempotentParameterMismatchError,
        InvalidInputsError,
        WaitingLimitReachedError,
        submit_request,
    )
    from relaunch_cli.views.screen import progress

    deps = connection.deps
    with progress("submitting"):
        _check_declared(load_definition(deps, name), inputs)
        # The URL of job_api derives the same identity from the same key of the same caller.
        identity = keyed_identity(connection.caller, key) if key else f"cli:{uuid.uuid4()}"
        request = DirectRequest(identity, name, inputs, connection.caller, deps.clock.now(), image_tag)
        try:
            submission = submit_request(request, deps)
        except (InvalidInputsError, IdempotentParameterMismatchError) as error:
            raise CommandError(str(error)) from error
        except WaitingLimitReachedError as error:
            hint = "`relaunch ps` lists them; `relaunch cancel` makes room"
            raise CommandError(str(error), hint, exit_codes.UNAVAILABLE) from error
    if submission.job is None:
        raise CommandError(submission.note)
    return submission, submission.job


def _bucket_troubles(job: "Job", deps: "Dependencies") -> "Sequence[str]":
    from relaunch.usecases.check_bucket import check_bucket

    problem, notices = check_bucket(job.definition, deps)
    return [problem] if problem else notices


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
    """Check that inputs are declared: events may have others, which are ignored, but a person mistyped them."""
    for name in given:
        if name not in definition.inputs:
            hint = did_you_mean(name, definition.inputs) or f"declared: {', '.join(definition.inputs) or 'none'}"
            raise CommandError(f"{definition.name} declares no input {name!r}", hint)


def _exit_code(job: "Job") -> int:
    from relaunch.core.jobs.job import JobState

    codes = {JobState.SUCCEEDED: exit_codes.OK, JobState.CANCELLED: exit_codes.CANCELLED}
    return codes.get(job.state, exit_codes.JOB_FAILED)
