"""submit."""

# ruff: noqa: PLC0415 - each command imports what it needs, so that `relaunch --help` needs none of it

from typing import TYPE_CHECKING, Annotated

import typer

from relaunch_cli import exit_codes
from relaunch_cli.commands.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.errors import CommandError, reported
from relaunch_cli.lookup import connect, load_definition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relaunch.core.definitions.definition import JobDefinition
    from relaunch.core.jobs.job import Job
    from relaunch.ports import Dependencies
    from relaunch.usecases.submit_job import Submission
    from relaunch_cli.aws.connection import Connection

commands = typer.Typer()


@commands.command()
@reported
def submit(  # noqa: PLR0913, PLR0917 - a command has the options it has
    context: typer.Context,
    definition: Annotated[str, typer.Argument(metavar="DEFINITION", help="A registered job definition.")],
    inputs: Annotated[
        list[str] | None, typer.Option("--input", "-i", metavar="KEY=VALUE", help="A declared input; repeat for more.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--detach", help="Show progress until the job ends, or return.")] = False,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: the same key again finds the same job. Random if left out.")
    ] = None,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Start a job and print its id.

    With --wait, Ctrl-C leaves the job running; the exit status is 1 when the job failed and 130 when it was cancelled.
    """
    from relaunch_cli.views.json_output import dump, job_shape
    from relaunch_cli.views.screen import remark, say

    connection = connect(context, stack)
    deps = connection.deps
    submission, job = submit_to(deps, definition, parse_inputs(inputs or []), key)
    if not as_json:
        say(job.job_id)
        if not submission.is_new:
            remark(submission.note)
    if wait:
        job = wait_for_end(job.job_id, connection)
    if as_json:
        say(dump(job_shape(job, deps.clock.now())))
    if wait or job.state.is_final:
        raise typer.Exit(exit_code_of(job))


def submit_to(
    deps: "Dependencies", name: str, inputs: "Mapping[str, str]", key: str | None
) -> "tuple[Submission, Job]":
    """Submit a job; without a key each call is a job of its own.

    Raises:
        CommandError: no such definition, or an input that is not declared or does not match.
    """
    import getpass
    import uuid

    from relaunch.core.triggers.events import DirectRequest
    from relaunch.usecases.submit_job import InvalidInputsError, submit_request
    from relaunch_cli.views.screen import progress

    with progress("submitting"):
        check_declared(load_definition(deps, name), inputs)
        # The same key through job_api is the same request.
        identity = f"api:key:{key}" if key else f"cli:{uuid.uuid4()}"
        request = DirectRequest(identity, name, inputs, getpass.getuser(), deps.clock.now())
        try:
            submission = submit_request(request, deps)
        except InvalidInputsError as error:
            raise CommandError(str(error)) from error
    if submission.job is None:
        raise CommandError(submission.note)
    return submission, submission.job


def parse_inputs(pairs: "Sequence[str]") -> dict[str, str]:
    """Read `key=value` pairs.

    Raises:
        CommandError: a pair has no `=`, or a key comes twice.
    """
    inputs: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise CommandError(f"{pair!r} is not KEY=VALUE", "write it like -i learning_rate=0.1")
        if name in inputs:
            raise CommandError(f"input {name} is given twice")
        inputs[name] = value
    return inputs


def check_declared(definition: "JobDefinition", given: "Mapping[str, str]") -> None:
    """Refuse inputs that the definition does not declare: an event's are left out, a person's are a mistake.

    Raises:
        CommandError: with the nearest declared input.
    """
    from relaunch.core.offerings.instance_types import nearest_names

    for name in given:
        if name not in definition.inputs:
            near = nearest_names(name, definition.inputs)
            declared = ", ".join(definition.inputs) or "none"
            hint = f"did you mean {' or '.join(near)}?" if near else f"declared: {declared}"
            raise CommandError(f"{definition.name} declares no input {name!r}", hint)


def wait_for_end(job_id: str, connection: "Connection") -> "Job":
    """Show a job's progress until it is over; Ctrl-C leaves it running and says so."""
    from relaunch_cli.following import follow_job
    from relaunch_cli.views.screen import remark

    try:
        return follow_job(job_id, connection)
    except KeyboardInterrupt:
        remark(f"the job goes on without you: `relaunch show {job_id}`, `relaunch cancel {job_id}`")
        raise


def exit_code_of(job: "Job") -> int:
    """Return the exit code that tells how a job ended."""
    from relaunch.core.jobs.job import JobState

    failed = exit_codes.JOB_FAILED
    return {JobState.SUCCEEDED: exit_codes.OK, JobState.CANCELLED: exit_codes.CANCELLED}.get(job.state, failed)
