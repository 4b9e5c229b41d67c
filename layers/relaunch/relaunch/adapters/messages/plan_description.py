"""The plan of a job in a response of `job_api`: what is best, what comes after it, and what rejected the rest."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from relaunch.core.selection.expected_cost import cost_of
from relaunch.core.selection.selection import Selection, explain_rejection

_MOST_OFFERINGS = 10


class PlannedOffering(BaseModel, defer_build=True):
    """An offering that satisfies the definition."""

    offering: str = Field(description="Instance type, purchase option, zone.")
    price_usd_per_hour: float | None = Field(description="Null if it is not known.")
    expected_cost_usd: float | None = Field(
        description="Until the job has finished, interruptions included, at the slow end of its speed; null: unknown."
    )


class FilterCount(BaseModel, defer_build=True):
    """A filter that rejected offerings."""

    filter: str = Field(description="The name of the filter.")
    rejected: int = Field(ge=1, description="How many offerings it rejected.")


class PlanDescription(BaseModel, defer_build=True):
    """Where a job would run now."""

    definition: str = Field(description="The job definition's name.")
    at: Annotated[str, Field(description="ISO 8601, in UTC.", json_schema_extra={"format": "date-time"})]
    revision_arn: str = Field(description="The task definition revision that a job would pin; empty if there is none.")
    problem: str = Field(description="Why a job can never run, and what to change; empty if it can.")
    rejection: str = Field(description="Why no offering satisfies the definition now; empty if one does.")
    offerings: list[PlannedOffering] = Field(
        max_length=_MOST_OFFERINGS, description="Those that satisfy it, best first; none for ack and acs."
    )
    kept: int = Field(ge=0, description="How many offerings satisfy it.")
    rejections: list[FilterCount] = Field(description="The filters that rejected the others, in their order.")
    notices: list[str] = Field(description="What is doubtful about the definition or its images.")


class PlanAnswer(BaseModel, defer_build=True):
    """The requested plan; nothing was stored or launched."""

    plan: PlanDescription


def describe_plan(
    definition: str,
    at: datetime,
    revision_arn: str,
    selection: Selection | None,
    *,
    problem: str,
    notices: Sequence[str],
) -> dict[str, Any]:
    """Return a plan as in a response, JSON-serializable; without a selection it has no offerings."""
    rejection = explain_rejection(selection) if selection else ""
    counts = selection.filter_counts if selection else ()
    return PlanDescription(
        definition=definition,
        at=at.isoformat(),
        revision_arn=revision_arn,
        problem=problem,
        rejection="" if rejection == problem else rejection,
        offerings=_describe_best(selection) if selection else [],
        kept=len(selection.kept) if selection else 0,
        rejections=[
            FilterCount(filter=name, rejected=before - after) for name, before, after in counts if before > after
        ],
        notices=list(notices),
    ).model_dump(mode="json")


def _describe_best(selection: Selection) -> list[PlannedOffering]:
    cost = cost_of(selection.work)
    return [
        PlannedOffering(
            offering=str(each.key), price_usd_per_hour=each.price_usd_per_hour, expected_cost_usd=cost(each)
        )
        for each in selection.kept[:_MOST_OFFERINGS]
    ]
