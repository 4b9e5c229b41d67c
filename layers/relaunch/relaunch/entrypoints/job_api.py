"""The requests of `job_api` (docs/job_api.schema.json), by Invoke or its function URL."""

from collections.abc import Mapping
from typing import Any

from relaunch.adapters.messages.function_url import is_http_request, make_response, read_caller, read_json
from relaunch.adapters.messages.job_api import (
    CancelRequest,
    PlanRequest,
    RetryRequest,
    ShowRequest,
    SubmitRequest,
    describe_job,
    parse_request,
)
from relaunch.core.jobs.job import INVOKE, Job, is_own, keyed_identity
from relaunch.core.triggers.events import DirectRequest
from relaunch.ports import NotGrantedError, PermanentError, RequestDependencies, TransientError
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.retry_job import retry_job
from relaunch.usecases.submit_job import Submission, submit_request

_OK = 200
_CREATED = 201
_UNPROCESSABLE = 422
_UNAVAILABLE = 503
_STATUSES: Mapping[str, int] = {
    "InvalidRequest": 400,
    "MalformedBody": 400,
    "InvalidInputs": 400,
    "UnknownCaller": 401,
    "CallerNotListed": 403,
    "UnknownDefinition": 404,
    "UnknownJob": 404,
    "MethodNotAllowed": 405,
    "IdempotentParameterMismatch": 409,
    "CannotRetry": 409,
    "WaitingLimitReached": 429,
}


class UnknownJobError(PermanentError):
    """The caller has no job of this id; the answer does not say whether another one has."""


def answer_request(event: object, request_id: str, deps: RequestDependencies) -> dict[str, Any]:
    """Return the response to a request: `{"job": …}`, or `{"error": {"code", "message"}}` for a permanent error.

    A request to the function URL gets an HTTP response with this body, of status 503 for a temporary error.
    `request_id` is the request id of Lambda: a retry of an asynchronous call has the same id and returns the same job.

    Raises:
        TransientError: a temporary error of an Invoke, or a permission that the function lacks; retry the call.
    """
    if not isinstance(event, Mapping) or not is_http_request(event):
        return _answer(event, INVOKE, request_id, deps)
    try:
        answer = _answer(read_json(event), read_caller(event), request_id, deps)
    except PermanentError as error:
        answer = describe_refusal(error)
    except TransientError as error:
        deps.log.decided("failed", reason=str(error))
        return make_response(_UNAVAILABLE, {"error": {"code": "Unavailable", "message": "try again later"}})
    return make_response(status_of(answer), answer)


def _answer(event: object, caller: str, request_id: str, deps: RequestDependencies) -> dict[str, Any]:
    try:
        request = parse_request(event)
        match request:
            case SubmitRequest():
                return _submit(request, caller, request_id, deps)
            case RetryRequest():
                return _retry(request, caller, request_id, deps)
            case PlanRequest():
                return _plan(request, caller, deps)
            case ShowRequest():
                return _found(_load_own(request.job_id, caller, deps), request.job_id, deps)
            case CancelRequest():
                _load_own(request.job_id, caller, deps)
                return _found(cancel_job(request.job_id, request.reason, deps), request.job_id, deps)
    except NotGrantedError as error:
        # What this function may not do, its caller cannot change: an asynchronous call comes back.
        raise TransientError(str(error)) from error
    except PermanentError as error:
        return describe_refusal(error)


def _submit(request: SubmitRequest, caller: str, request_id: str, deps: RequestDependencies) -> dict[str, Any]:
    identity = _identity(request.idempotency_key, caller, request_id)
    direct = DirectRequest(
        identity,
        request.definition,
        request.inputs,
        caller,
        deps.clock.now(),
        request.image_tag or "",
        through_api=True,
    )
    return _submitted(submit_request(direct, deps), deps)


def _retry(request: RetryRequest, caller: str, request_id: str, deps: RequestDependencies) -> dict[str, Any]:
    identity = _identity(request.idempotency_key, caller, request_id)
    job = _load_own(request.job_id, caller, deps)
    asked = DirectRequest(identity, job.definition.name, {}, caller, deps.clock.now(), through_api=True)
    submission = retry_job(job, asked, deps, step=request.step, attempt=request.attempt)
    return _submitted(submission, deps)


def _identity(key: str | None, caller: str, request_id: str) -> str:
    return keyed_identity(caller, key) if key else f"api:call:{request_id}"


def _submitted(submission: Submission, deps: RequestDependencies) -> dict[str, Any]:
    return {**_found(submission.job, "", deps), "is_new": submission.is_new, "note": submission.note}


def _plan(request: PlanRequest, caller: str, deps: RequestDependencies) -> dict[str, Any]:
    # Imported here because the other requests, which are most, start without them.
    from relaunch.adapters.messages.plan_description import describe_plan  # noqa: PLC0415
    from relaunch.usecases.plan_jobs import plan_submission  # noqa: PLC0415

    direct = DirectRequest("api:plan", request.definition, request.inputs, caller, deps.clock.now(), through_api=True)
    plan = plan_submission(direct, deps)
    arn = plan.revision.arn if plan.revision else ""
    name = plan.definition.name
    return {"plan": describe_plan(name, plan.at, arn, plan.selection, problem=plan.problem, notices=plan.notices)}


def _load_own(job_id: str, caller: str, deps: RequestDependencies) -> Job:
    job = deps.jobs.load_job(job_id)
    if job is None or not is_own(job, caller):
        raise _unknown(job_id)
    return job


def _found(job: Job | None, job_id: str, deps: RequestDependencies) -> dict[str, Any]:
    if job is None:
        raise _unknown(job_id)
    return {"job": describe_job(job, deps.clock.now())}


def _unknown(job_id: str) -> UnknownJobError:
    return UnknownJobError(f"there is no job {job_id!r}")


def describe_refusal(error: PermanentError) -> dict[str, Any]:
    """Return the answer to a request that is refused."""
    return {"error": {"code": type(error).__name__.removesuffix("Error"), "message": str(error)}}


def status_of(answer: Mapping[str, Any]) -> int:
    """Return the status of HTTP of an answer."""
    if "error" in answer:
        return _STATUSES.get(answer["error"]["code"], _UNPROCESSABLE)
    return _CREATED if answer.get("is_new") else _OK
