"""Retry a job: submit one of the same definition that resumes from its checkpoints."""

from dataclasses import replace

from relaunch.core.jobs.job import Job
from relaunch.core.triggers.events import DirectRequest
from relaunch.core.triggers.retry import CannotRetry, retry
from relaunch.ports import PermanentError, SubmitDependencies
from relaunch.usecases.submit_job import Submission, submit_request


class CannotRetryError(PermanentError):
    """The job has not ended, or has no checkpoints to choose from."""


def retry_job(
    job: Job,
    asked: DirectRequest,
    deps: SubmitDependencies,
    *,
    step: int | None = None,
    attempt: int | None = None,
) -> Submission:
    """Submit a job that goes on where another one ended; the same identity of `asked` returns the same job.

    `asked` says who asks, when, how, and under what identity. Everything else is taken from the job.

    It runs the definition as it is registered now, with the inputs of the other job, the newest revision, and the image
    that the other job's trigger named. Its checkpoints are looked for when it is launched, by the function that may.

    Raises:
        CannotRetryError: the job has not ended, or has no checkpoints to choose from.
        UnknownDefinitionError, CallerNotListedError, InvalidInputsError, WaitingLimitReachedError,
            IdempotentParameterMismatchError: as submit_request.
    """
    retried = retry(job, step, attempt)
    if isinstance(retried, CannotRetry):
        raise CannotRetryError(retried.reason)
    # The identity is one of the job that is retried, too: a key means another job for each.
    identity = f"{asked.identity} retry of {job.job_id}"
    request = replace(asked, identity=identity, definition=job.definition.name, inputs=job.inputs, retried=retried)
    return submit_request(request, deps)
