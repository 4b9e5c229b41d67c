"""The requests of `job_api`: submit, show, cancel (docs/job_api.schema.json)."""

from typing import Any

from relaunch.adapters.messages.job_api import CancelRequest, ShowRequest, SubmitRequest, describe_job, parse_request
from relaunch.core.jobs.job import Job
from relaunch.core.triggers.events import DirectRequest
from relaunch.ports import PermanentError, SubmitDependencies
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.submit_job import submit_request


class UnknownJobError(PermanentError):
    """No job has this id."""


def answer_request(event: object, request_id: str, deps: SubmitDependencies) -> dict[str, Any]:
    """Return the response to a request: `{"job": …}`, or `{"error": {"code", "message"}}` for a permanent error.

    `request_id` is the request id of Lambda: a retry of an asynchronous call has the same id and returns the same job.

    Raises:
        TransientError: a temporary error; the call may be retried.
    """
    try:
        request = parse_request(event)
        match request:
            case SubmitRequest():
                return _submit(request, request_id, deps)
            case ShowRequest():
                return _found(deps.jobs.load_job(request.job_id), request.job_id)
            case CancelRequest():
                return _found(cancel_job(request.job_id, request.reason, deps), request.job_id)
    except PermanentError as error:
        return {"error": {"code": type(error).__name__.removesuffix("Error"), "message": str(error)}}


def _submit(request: SubmitRequest, request_id: str, deps: SubmitDependencies) -> dict[str, Any]:
    identity = f"api:key:{request.idempotency_key}" if request.idempotency_key else f"api:call:{request_id}"
    direct = DirectRequest(identity, request.definition, request.inputs, "job_api", deps.clock.now())
    submission = submit_request(direct, deps)
    return {**_found(submission.job, ""), "is_new": submission.is_new, "note": submission.note}


def _found(job: Job | None, job_id: str) -> dict[str, Any]:
    if job is None:
        raise UnknownJobError(f"there is no job {job_id!r}")
    return {"job": describe_job(job)}
