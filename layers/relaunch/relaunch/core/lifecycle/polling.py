"""Looking at the tasks of targets that send no events.

ECS publishes a state change of every task. A function cannot hold a watch of a Kubernetes API server: its Jobs are
listed every minute, as long as one of them is of an open job.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.jobs.job import Job, PlacementState
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import Decision

POLL_INTERVAL = timedelta(minutes=1)
"""The interval at which reconcile runs (template.yaml)."""

# Due well before the next run of reconcile, whenever in the current one the job was handled.
_DUE_AFTER = POLL_INTERVAL / 2
_WITH_TASK = frozenset({JobState.LAUNCHING, JobState.RUNNING, JobState.STOPPING})


def is_polled(job: Job) -> bool:
    """Return whether the target of the job sends no events of its tasks."""
    return not job.definition.target.capabilities.sends_events


def with_poll(_before: Job, _event: object, decision: Decision, now: datetime) -> Decision:
    """Return the decision; a job with a task of a polled target is due at the next run of reconcile at the latest."""
    job = decision.job
    if decision.is_ignored or not is_polled(job) or job.state not in _WITH_TASK:
        return decision
    if job.current_attempt.placement.state is not PlacementState.PLACED:
        return decision
    due_at = now + _DUE_AFTER
    if job.wake_at is not None and job.wake_at <= due_at:
        return decision
    return replace(decision, job=replace(job, wake_at=due_at))
