"""What `submit` and `retry` have in common: a refusal as a message, and what follows once there is a job."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import typer

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.explanation import explain
from relaunch.ports import Dependencies
from relaunch.usecases.plan_jobs import check_bucket
from relaunch.usecases.retry_job import CannotRetryError
from relaunch.usecases.submit_job import (
    IdempotentParameterMismatchError,
    InvalidInputsError,
    Submission,
    UnknownDefinitionError,
    WaitingLimitReachedError,
)
from relaunch_cli import exit_codes
from relaunch_cli.aws.connected import Connection
from relaunch_cli.errors import CommandError, print_error
from relaunch_cli.job_progress import exit_code_of, wait_for_job
from relaunch_cli.views.json_output.jobs import job_json
from relaunch_cli.views.screen import print_json, print_note, print_text, progress


def check_key(key: str | None) -> None:
    """Check that an idempotency key is none or has letters: an empty one is a variable that nobody set.

    Raises:
        CommandError: it is empty.
    """
    if key is not None and not key.strip():
        raise CommandError("--key is empty: the same job would be submitted again each time", "set it, or leave it out")


def submit_job(submit: Callable[[], Submission]) -> tuple[Submission, Job]:
    """Submit a job.

    Raises:
        CommandError: the request is refused.
    """
    try:
        with progress("submitting"), explained_refusals():
            submission = submit()
    except KeyboardInterrupt:
        # The request may have been answered already, and a second one would start another job.
        print_note("interrupted: the job may have been submitted, `relaunch ps` lists it then")
        raise
    if submission.job is None:
        raise CommandError(submission.note)
    return submission, submission.job


@contextmanager
def explained_refusals() -> Iterator[None]:
    """Raise a CommandError for each refusal of a submission.

    Raises:
        CommandError: the request is refused.
    """
    try:
        yield
    except (InvalidInputsError, IdempotentParameterMismatchError, CannotRetryError) as error:
        raise CommandError(str(error)) from error
    except UnknownDefinitionError as error:
        raise CommandError(str(error), exit_code=exit_codes.NOT_FOUND) from error
    except WaitingLimitReachedError as error:
        hint = "`relaunch ps` lists them; `relaunch cancel` makes room"
        raise CommandError(str(error), hint, exit_codes.UNAVAILABLE) from error


def finish(submission: Submission, job: Job, connection: Connection, *, is_awaited: bool, as_json: bool) -> None:
    """Print the job of a submission, wait for it if that is wanted, and end with its exit code if it has ended."""
    deps = connection.deps
    if not as_json:
        print_text(job.job_id)
        if not submission.is_new:
            print_note(submission.note)
        for trouble in _bucket_troubles(job, deps):
            print_note(trouble)
    if is_awaited:
        job = wait_for_job(job.job_id, connection)
    if as_json:
        print_json(job_json(job, deps.clock.now()))
    if job.state in {JobState.FAILED, JobState.TIMED_OUT}:
        advice = explain(job, deps.clock.now()).advice
        print_error(CommandError(f"{job.job_id} is {job.state}: {job.reason}", "; ".join(advice)))
    if is_awaited or job.state.is_final:
        raise typer.Exit(exit_code_of(job))


def _bucket_troubles(job: Job, deps: Dependencies) -> Sequence[str]:
    problem, notices = check_bucket(job.definition, deps)
    return [problem] if problem else notices
