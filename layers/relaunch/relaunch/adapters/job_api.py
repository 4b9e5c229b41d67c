"""The requests and answers of `job_api`, for callers that may only invoke a function.

`python -m relaunch.adapters.job_api` writes the published schema, docs/job_api.schema.json.
"""

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from relaunch.core.job import Job
from relaunch.ports import PermanentError

_JobId = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,100}$", description="A job's id.")]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SubmitRequest(_Request):
    """Start a job of a registered definition."""

    action: Literal["submit"]
    definition: str = Field(pattern=r"^[a-z][a-z0-9-]{0,47}$", description="The job definition's name.")
    inputs: dict[str, str] = Field(default_factory=dict, max_length=50, description="Declared inputs by name.")
    idempotency_key: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="The same key finds the same job. Without one, each call that is not a retry starts a job.",
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
        wrong = "; ".join(f"{_place(each['loc'])}: {each['msg']}" for each in error.errors())
        raise InvalidRequestError(wrong) from error


def describe_job(job: Job) -> dict[str, Any]:
    """Return a job as the answers of job_api carry it, JSON-ready."""
    attempt = job.attempt
    return {
        "job_id": job.job_id,
        "definition": job.definition.name,
        "state": str(job.state),
        "is_final": job.state.is_final,
        "reason": job.reason,
        "accepted_at": job.accepted_at.isoformat(),
        "ended_at": job.ended_at.isoformat() if job.ended_at else None,
        "revision_arn": job.revision.arn,
        "attempt": attempt.number if attempt else None,
        "offering": str(attempt.placement_try.offering) if attempt else None,
        "task_arn": attempt.task_arn if attempt else None,
        "interruptions": job.interruptions,
        "failures": job.failures,
        "cost_usd": round(job.cost_usd, 4),
    }


def _place(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "the request"


def request_schema() -> Mapping[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a request."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A request to Relaunch's job_api",
        **_REQUEST.json_schema(),
    }


if __name__ == "__main__":
    json.dump(request_schema(), sys.stdout, indent=2)
    sys.stdout.write("\n")
