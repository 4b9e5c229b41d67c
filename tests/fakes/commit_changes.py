"""Changes of a job that a push started."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from relaunch.core.jobs.changes import ChangedPart
from relaunch.core.jobs.state import CostBasis, JobState, WaitReason
from relaunch.core.lifecycle.change_events import EventCost, EventTrigger, JobStateChange

SHA = "4b1d8e6f02a97c35e8d0714b6a2f93c5d8e07b1a"
_CHANGE = JobStateChange(
    id="resnet-1f2e3d4c:1",
    sequence=1,
    job_id="resnet-1f2e3d4c",
    definition="resnet",
    target="ecs",
    trigger=EventTrigger(
        source="github",
        identity="github:push:acme/vision",
        summary="push of 4b1d8e6 to main in acme/vision",
        variables={"RELAUNCH_GIT_REPOSITORY": "acme/vision", "RELAUNCH_GIT_SHA": SHA},
    ),
    changed=(ChangedPart.STATE,),
    state=JobState.WAITING,
    waiting_for=WaitReason.LAUNCH,
    reason="push of 4b1d8e6 to main in acme/vision",
    cost=EventCost(usd=0.6546, basis=CostBasis.PRICE),
    time=datetime(2026, 11, 3, 12, 45, tzinfo=UTC),
)


def make_change(**fields: Any) -> JobStateChange:
    """Build the first change of a job that a push to acme/vision started."""
    change = replace(_CHANGE, **fields)
    return replace(change, id=f"{change.job_id}:{change.sequence}")


def with_commit(change: JobStateChange, **variables: str) -> JobStateChange:
    """Return a change of a job whose trigger gave it these variables instead."""
    return replace(change, trigger=replace(change.trigger, variables=variables))
