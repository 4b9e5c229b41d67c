"""`relaunch retry`."""

import re
import uuid
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from relaunch.core.jobs.job import keyed_identity
from relaunch.core.launches.launch_plan import job_checkpoint_uri
from relaunch.core.triggers.events import DirectRequest
from relaunch.core.triggers.retry import CannotRetry
from relaunch.core.triggers.retry import retry as retry_of
from relaunch.ports import PortError
from relaunch.usecases.find_checkpoints import MissingCheckpointError, find_resume_uri
from relaunch.usecases.retry_job import retry_job
from relaunch_cli import exit_codes
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import connect, load_job
from relaunch_cli.options import DEFAULT_STACK, JobId, Json, Stack
from relaunch_cli.submission import check_key, finish, submit_job
from relaunch_cli.views.screen import print_note, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.core.jobs.job import Job
    from relaunch.core.jobs.trigger_facts import ResumePoint
    from relaunch.ports import Dependencies

_CHECKPOINT = re.compile(r"(?:attempt-(?P<attempt>[0-9]{1,6}))?/?(?:(?:step-)?(?P<step>[0-9]{1,12}))?/?")


class _Choice(NamedTuple):
    """The checkpoints to choose from; None: of any step, by any attempt."""

    step: int | None = None
    attempt: int | None = None


def retry(  # noqa: PLR0913 - a command has the options it has
    context: typer.Context,
    job: JobId,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="CHECKPOINT",
            help="Resume from this one: a step (300), attempt-2, attempt-2/step-300, or its URI. Default: the newest.",
        ),
    ] = "",
    *,
    wait: Annotated[
        bool, typer.Option("--wait/--detach", help="Show progress until the job ends, or return at once.")
    ] = False,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="Idempotency key: the same key and JOB return the same job. Default: a random one."
        ),
    ] = None,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Submit a job that goes on where another one ended, and print its ID.

    It resumes from the newest complete checkpoint of JOB, which may have failed, been cancelled, or succeeded. It has
    JOB's inputs, and the image that JOB's trigger named, and runs the definition as it is registered now, with the
    newest revision.

    With --wait, Ctrl-C ends the wait, not the job; the exit code is 1 if the job failed and 130 if it was cancelled.
    """
    check_key(key)
    connection = connect(context, stack)
    deps = connection.deps
    with progress("looking for its checkpoints"):
        ended = load_job(deps, job)
        chosen = _parse_checkpoint(start, ended)
        note = _look_for_checkpoint(ended, chosen, deps)
    identity = keyed_identity(connection.caller, key) if key else f"cli:{uuid.uuid4()}"
    asked = DirectRequest(identity, ended.definition.name, {}, connection.caller, deps.clock.now())
    submission, new = submit_job(lambda: retry_job(ended, asked, deps, **chosen._asdict()))
    if submission.is_new and not as_json:
        print_note(note)
    finish(submission, new, connection, is_awaited=wait, as_json=as_json)


def _parse_checkpoint(text: str, job: "Job") -> _Choice:
    """Parse `300`, `step-300`, `attempt-2`, `attempt-2/step-300`, or the URI of a checkpoint of the job.

    Raises:
        CommandError: it is none of these.
    """
    if not text:
        return _Choice()
    prefix = job_checkpoint_uri(job)
    match = _CHECKPOINT.fullmatch(text.removeprefix(prefix))
    if match is None or not any(match.groups()):
        hint = f"give a step (300), attempt-2, attempt-2/step-300, or a URI below {prefix}"
        raise CommandError(f"{text!r} is no checkpoint of {job.job_id}", hint)
    return _Choice(*(int(match[name]) if match[name] else None for name in ("step", "attempt")))


def _look_for_checkpoint(job: "Job", chosen: _Choice, deps: "Dependencies") -> str:
    """Return what a retry resumes from, in words.

    Raises:
        CommandError: the job cannot be retried, or the chosen checkpoint is not there.
    """
    retried = retry_of(job, chosen.step, chosen.attempt)
    if isinstance(retried, CannotRetry):
        raise CommandError(retried.reason)
    unusable: list[str] = []
    try:
        found = find_resume_uri(retried.resume_from, deps.checkpoints, unusable.append)
    except MissingCheckpointError as error:
        raise CommandError(str(error), _name_newest(job, deps), exit_codes.NOT_FOUND) from error
    except PortError as error:
        return f"its checkpoint is looked for when it is launched: {error}"
    start = f"resumes from {found}" if found else _describe_start(retried.resume_from)
    return "; ".join((start, *unusable[:1]))


def _name_newest(job: "Job", deps: "Dependencies") -> str:
    found = deps.checkpoints.newest_complete(job.definition.checkpoint_uri or "", job.job_id)
    return f"the newest is {found}" if found else f"{job.job_id} left no complete checkpoint at all"


def _describe_start(points: "Sequence[ResumePoint]") -> str:
    looked = " and ".join(f"{point.checkpoint_uri}{point.job_id}/" for point in points)
    return f"starts from the beginning: there is no complete checkpoint{' below ' if looked else ''}{looked}"
