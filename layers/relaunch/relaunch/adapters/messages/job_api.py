"""The requests and responses of `job_api`, for callers that may only invoke the function or its URL.

`python -m relaunch.adapters.messages.job_api` writes the published schema, docs/job_api.schema.json.
"""

import json
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from relaunch.adapters.validation import describe_errors
from relaunch.core.jobs.cost import cost_so_far, machine_cost
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import work_at_risk
from relaunch.core.jobs.state import CostBasis, JobState, NotedProgress
from relaunch.ports import PermanentError

# ECS limits all overrides together to 8,192 characters. With a limit pydantic also rejects unpaired surrogates.
_InputName = Annotated[str, Field(max_length=100)]
_InputValue = Annotated[str, Field(max_length=8_192)]
_Inputs = dict[_InputName, _InputValue]
_DefinitionName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,47}$", description="The job definition's name.")]
_JobId = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,100}$", description="A job's id.")]


_Timestamp = Annotated[str, Field(description="ISO 8601, in UTC.", json_schema_extra={"format": "date-time"})]


_Key = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=200,
        pattern=r"\S",
        description="A request of the same caller with the same key returns the same job, and is rejected if its "
        "inputs differ. Without a key, each call that is not repeated by Lambda creates a job.",
    ),
]


def _check_number(value: object) -> object:
    # Pydantic takes true and "1" for 1; JSON Schema takes neither for an integer, but 1.0.
    if isinstance(value, bool | str):
        raise ValueError("must be a whole number")  # noqa: TRY004 - pydantic reports a ValueError
    return value


_Step = Annotated[int, Field(ge=0, le=10**12), BeforeValidator(_check_number)]
_AttemptNumber = Annotated[int, Field(ge=1, le=10**6), BeforeValidator(_check_number)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class SubmitRequest(_Request):
    """Start a job of a registered definition."""

    action: Literal["submit"]
    definition: _DefinitionName
    inputs: _Inputs = Field(default_factory=dict, max_length=50, description="Declared inputs by name.")
    idempotency_key: _Key = None
    image_tag: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$",
        description="The tag of the image that the job runs, of a repository that a trigger of the definition watches; "
        "it must be in ECR, and match the trigger's pattern. Without one, the job runs its revision's images.",
    )


class PlanRequest(_Request):
    """Return where a job of a registered definition would run now; nothing is started."""

    action: Literal["plan"]
    definition: _DefinitionName
    inputs: _Inputs = Field(
        default_factory=dict, max_length=50, description="Declared inputs by name; they are checked."
    )


class ShowRequest(_Request):
    """Return the state of a job of the caller."""

    action: Literal["show"]
    job_id: _JobId


class RetryRequest(_Request):
    """Start a job that goes on where a job of the caller ended, by default from its newest complete checkpoint.

    It runs the definition as it is registered now, with the inputs of the other job.
    """

    action: Literal["retry"]
    job_id: _JobId
    step: _Step | None = Field(None, description="Resume from a checkpoint of this step, or fail.")
    attempt: _AttemptNumber | None = Field(
        None, description="Resume from a checkpoint that this attempt wrote, or fail."
    )
    idempotency_key: _Key = None


class CancelRequest(_Request):
    """Cancel a job of the caller; a finished job does not change."""

    action: Literal["cancel"]
    job_id: _JobId
    reason: str = Field("cancelled by a caller of job_api", min_length=1, max_length=200)


AnyRequest = SubmitRequest | ShowRequest | CancelRequest | PlanRequest | RetryRequest
Request = Annotated[AnyRequest, Field(discriminator="action")]
_REQUEST: TypeAdapter[AnyRequest] = TypeAdapter(Request)


class Progress(BaseModel, defer_build=True):
    """How far the training of a job was at the last look, up to ten minutes ago."""

    step: int = Field(ge=0, description="The step of the newest complete checkpoint.")
    total_steps: int | None
    saved_at: _Timestamp
    loss: float | None
    steps_per_second: float | None = Field(
        gt=0, description="How fast it was, by its newest steps; null if that is not known."
    )
    finishes_at: _Timestamp | None = Field(description="When the training will be done; null if that is not known.")
    stalled_since: _Timestamp | None = Field(
        description="Since when it runs and saves nothing newer, for longer than that should take; else null."
    )


class JobDescription(BaseModel, defer_build=True):
    """The state of a job."""

    job_id: str
    definition: str = Field(description="The job definition's name.")
    state: JobState
    is_final: bool = Field(description="Whether the job has finished; it will not change any more.")
    reason: str = Field(description="The reason for the state.")
    accepted_at: _Timestamp
    ended_at: _Timestamp | None
    revision_arn: str = Field(description="The pinned task definition revision; empty if there was none.")
    attempt: int | None = Field(ge=1, description="The number of the current attempt.")
    offering: str | None = Field(
        description="The offering of the current attempt: instance type, purchase option, zone."
    )
    task_arn: str | None
    interruptions: int = Field(ge=0)
    failures: int = Field(ge=0)
    cost_usd: float | None = Field(
        ge=0,
        description="The cost so far: machines of the stack's own from launch to end, and the running time of attempts "
        "elsewhere; null if one has an unknown price.",
    )
    is_cost_limit: bool = Field(
        description="Whether the cost is an upper limit: an attempt is or was on spot at a price that EC2 did not tell."
    )
    machines_usd: float = Field(0.0, ge=0, description="The part of the cost that machines of the stack's own are.")
    machines_idle_usd: float = Field(0.0, ge=0, description="The part of `machines_usd` while no attempt ran.")
    machines_on_demand_usd: float = Field(
        0.0, ge=0, description="What the same machines would have cost on demand over the same time."
    )
    progress: Progress | None = Field(description="Null of a job of which no checkpoint was seen.")
    work_at_risk_seconds: float | None = Field(
        ge=0,
        description="How long the task has run since its newest checkpoint at the last look, or since its start: the "
        "work that is lost if its machine is; null unless a task runs.",
    )


class JobAnswer(BaseModel, defer_build=True):
    """The requested job; `is_new` and `note` are for submissions and retries only."""

    job: JobDescription
    is_new: bool = Field(
        default=False, description="Whether the request created the job; false for a retry or a known idempotency key."
    )
    note: str = Field("", description="The result of the request in words.")


class Refusal(BaseModel, defer_build=True):
    """The reason why a request is rejected."""

    code: str = Field(
        pattern="^[A-Z][A-Za-z]+$",
        description="InvalidRequest, InvalidInputs, IdempotentParameterMismatch, CannotRetry, UnknownDefinition, "
        "UnknownJob (also if it is another caller's), CallerNotListed (the definition lists others), "
        "WaitingLimitReached (too many jobs wait), of the function URL also MalformedBody, MethodNotAllowed, "
        "UnknownCaller and Unavailable, or the name of another error.",
    )
    message: str = Field(min_length=1, description="A description of the error.")


class RefusalAnswer(BaseModel, defer_build=True):
    """The request is rejected, and would be again; WaitingLimitReached and Unavailable may pass.

    Any other failure of a call may be temporary.
    """

    error: Refusal


class InvalidRequestError(PermanentError):
    """The request is invalid; the message describes the errors."""


def parse_request(event: object) -> AnyRequest:
    """Parse a request.

    Raises:
        InvalidRequestError: the request does not match the schema.
    """
    try:
        return _REQUEST.validate_python(event)
    except ValidationError as error:
        raise InvalidRequestError(describe_errors(error)) from error


def describe_job(job: Job, now: datetime) -> dict[str, Any]:
    """Return a job as in a response, JSON-serializable."""
    attempt = job.attempt
    (usd, basis) = cost_so_far(job, now)
    machines = machine_cost(job, now)
    at_risk = work_at_risk(job, now)
    return JobDescription(
        job_id=job.job_id,
        definition=job.definition.name,
        state=job.state,
        is_final=job.state.is_final,
        reason=job.reason,
        accepted_at=job.accepted_at.isoformat(),
        ended_at=job.ended_at.isoformat() if job.ended_at else None,
        revision_arn=job.revision.arn,
        attempt=attempt.number if attempt else None,
        offering=str(attempt.placement.offering) if attempt else None,
        task_arn=attempt.task_id if attempt else None,
        interruptions=job.totals.interruptions,
        failures=job.totals.failures,
        cost_usd=None if basis is CostBasis.UNKNOWN else round(usd, 4),
        is_cost_limit=basis is CostBasis.LIMIT,
        machines_usd=round(machines.usd, 4),
        machines_idle_usd=round(machines.idle_usd, 4),
        machines_on_demand_usd=round(machines.on_demand_usd, 4),
        progress=_describe_progress(job.noted.in_state(job.state)) if job.noted else None,
        work_at_risk_seconds=None if at_risk is None else round(at_risk.total_seconds(), 3),
    ).model_dump(mode="json")


def _describe_progress(noted: NotedProgress) -> Progress:
    return Progress(
        step=noted.step,
        total_steps=noted.total_steps,
        saved_at=noted.at.isoformat(),
        loss=noted.loss,
        steps_per_second=noted.steps_per_second,
        finishes_at=noted.finishes_at.isoformat() if noted.finishes_at else None,
        stalled_since=noted.stalled_since.isoformat() if noted.stalled_since else None,
    )


def published_schema() -> Mapping[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a request; that of a response is `#/$defs/Answer`."""
    # Imported here because only requests for a plan need it.
    from relaunch.adapters.messages.plan_description import PlanAnswer  # noqa: PLC0415

    request = _REQUEST.json_schema()
    answer = TypeAdapter(JobAnswer | PlanAnswer | RefusalAnswer).json_schema(mode="serialization")
    definitions = {**request.pop("$defs"), **answer.pop("$defs"), "Request": request, "Answer": answer}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Request to Relaunch's job_api; the response is #/$defs/Answer",
        "$ref": "#/$defs/Request",
        "$defs": definitions,
    }


if __name__ == "__main__":
    json.dump(published_schema(), sys.stdout, indent=2)
    sys.stdout.write("\n")
