"""The requests and answers of `job_api`, for callers that may only invoke a function.

`python -m relaunch.adapters.messages.job_api` writes the published schema, docs/job_api.schema.json.
"""

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from relaunch.adapters.validation import describe_errors
from relaunch.core.jobs.job import Job, JobState
from relaunch.ports import PermanentError

# ECS takes 8,192 characters of overrides, all inputs together. A limit also makes pydantic refuse what is no Unicode.
_InputName = Annotated[str, Field(max_length=100)]
_InputValue = Annotated[str, Field(max_length=8_192)]
_JobId = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,100}$", description="A job's id.")]


_Moment = Annotated[str, Field(description="ISO 8601, in UTC.", json_schema_extra={"format": "date-time"})]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SubmitRequest(_Request):
    """Start a job of a registered definition."""

    action: Literal["submit"]
    definition: str = Field(pattern=r"^[a-z][a-z0-9-]{0,47}$", description="The job definition's name.")
    inputs: dict[_InputName, _InputValue] = Field(
        default_factory=dict, max_length=50, description="Declared inputs by name."
    )
    idempotency_key: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="The same key finds the same job, and is refused with other inputs. Without one, each call that is "
        "not a retry starts a job.",
    )


class ShowRequest(_Request):
    """Say how a job stands."""

    action: Literal["show"]
    job_id: _JobId


class CancelRequest(_Request):
    """End a job; one that is over is left as it is."""

    action: Literal["cancel"]
    job_id: _JobId
    reason: str = Field("cancelled by a caller of job_api", min_length=1, max_length=200)


Request = Annotated[SubmitRequest | ShowRequest | CancelRequest, Field(discriminator="action")]
_REQUEST: TypeAdapter[SubmitRequest | ShowRequest | CancelRequest] = TypeAdapter(Request)


class JobDescription(BaseModel):
    """How a job stands."""

    job_id: str
    definition: str = Field(description="The job definition's name.")
    state: JobState
    is_final: bool = Field(description="The job is over: nothing of this will change.")
    reason: str = Field(description="Why the job is in this state, in words.")
    accepted_at: _Moment
    ended_at: _Moment | None
    revision_arn: str = Field(description="The pinned task definition revision; empty when there was none.")
    attempt: int | None = Field(ge=1, description="The number of the attempt that counts now.")
    offering: str | None = Field(description="What the attempt runs on, or is meant to: type, zone, purchase option.")
    task_arn: str | None
    interruptions: int = Field(ge=0)
    failures: int = Field(ge=0)
    cost_usd: float = Field(ge=0, description="Of the attempts that are over.")


class JobAnswer(BaseModel):
    """The job that was asked for; `is_new` and `note` are told of a submission only."""

    job: JobDescription
    is_new: bool = Field(False, description="False: the same idempotency key, or a retry, found this job.")
    note: str = Field("", description="What came of the request, in words.")


class Refusal(BaseModel):
    """Why a request is refused."""

    code: str = Field(
        pattern="^[A-Z][A-Za-z]+$",
        description="InvalidRequest, InvalidInputs, IdempotentParameterMismatch, UnknownDefinition, UnknownJob, "
        "or the name of another error.",
    )
    message: str = Field(min_length=1, description="What is wrong, in words.")


class RefusalAnswer(BaseModel):
    """The request is refused: the same one again will be too. A call that fails otherwise is worth another try."""

    error: Refusal


Answer = JobAnswer | RefusalAnswer


class InvalidRequestError(PermanentError):
    """The request is not one that job_api knows; the message names every field that is wrong."""


def parse_request(event: object) -> SubmitRequest | ShowRequest | CancelRequest:
    """Read a request.

    Raises:
        InvalidRequestError: it does not keep the schema.
    """
    try:
        return _REQUEST.validate_python(event)
    except ValidationError as error:
        raise InvalidRequestError(describe_errors(error)) from error


def describe_job(job: Job) -> dict[str, Any]:
    """Return a job as the answers of job_api carry it, JSON-ready."""
    attempt = job.attempt
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
        task_arn=attempt.task_arn if attempt else None,
        interruptions=job.interruptions,
        failures=job.failures,
        cost_usd=round(job.cost_usd, 4),
    ).model_dump(mode="json")


def published_schema() -> Mapping[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a request; `#/$defs/Answer` in it is that of an answer."""
    request = _REQUEST.json_schema()
    answer = TypeAdapter(Answer).json_schema(mode="serialization")
    definitions = {**request.pop("$defs"), **answer.pop("$defs"), "Request": request, "Answer": answer}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A request to Relaunch's job_api, and under #/$defs/Answer what is answered",
        "$ref": "#/$defs/Request",
        "$defs": definitions,
    }


if __name__ == "__main__":
    json.dump(published_schema(), sys.stdout, indent=2)
    sys.stdout.write("\n")
