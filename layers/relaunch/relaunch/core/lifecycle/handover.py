"""The task on a machine that EC2 takes away trains on until the next machine is ready, or it has to save."""

import math
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.jobs.effects import RequestLaunch
from relaunch.core.jobs.job import Handover, Job
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import HEARTBEAT, Decision, move
from relaunch.core.lifecycle.restart_policy import next_time_limit
from relaunch.core.machines.limits import MachineLimits, TaskStop
from relaunch.core.revisions.stop_timeout import STOP_TIMEOUT_SECONDS, WARNING_SECONDS, find_stop_timeout

# From the last moment to SIGTERM in 95 of 100 cases: a message, a cold start, StopTask and the agent's second. A
# budget; the metric WarningToStop shows all of it but the agent's second.
_MOMENT_TO_SIGTERM = timedelta(seconds=10)
# The maximum delay of an SQS message.
_LONGEST_DELAY_SECONDS = 900

WARNING_TO_LAST_MOMENT = timedelta(seconds=WARNING_SECONDS - STOP_TIMEOUT_SECONDS) - _MOMENT_TO_SIGTERM
"""From a warning to the last moment of a task with the stop time-out that Relaunch sets."""


def may_train_on(job: Job, limits: MachineLimits) -> bool:
    """Return whether the task may train on after a warning: it runs, on a machine of our own, and the stack wants it.

    A task that has not started has nothing to lose, and a capacity provider's next machine cannot be requested.
    """
    return job.state is JobState.RUNNING and is_to_train_on(job, limits)


def is_to_train_on(job: Job, limits: MachineLimits) -> bool:
    """Return whether a warning lets the task train on while it runs."""
    return limits.task_stop is TaskStop.WHEN_NEXT_READY and bool(job.current_attempt.placement.machine_id)


def last_moment(job: Job, warned_at: datetime, ends_at: datetime | None = None) -> datetime:
    """Return when the task must be stopped after a warning at `warned_at`, so that it has its whole stop time-out.

    `ends_at` is when the interruption begins, if the warning says it. The moment is before the warning if the stop
    time-out is longer than what the warning leaves.
    """
    ends_at = ends_at or warned_at + timedelta(seconds=WARNING_SECONDS)
    timeout = find_stop_timeout(job.definition, job.revision)
    stop_seconds = timeout.seconds if timeout is not None else STOP_TIMEOUT_SECONDS
    return ends_at - timedelta(seconds=stop_seconds) - _MOMENT_TO_SIGTERM


def is_last_moment(job: Job, now: datetime) -> bool:
    """Return whether a task that trains on has to be stopped now."""
    stop_by = stops_by(job)
    return stop_by is not None and now >= stop_by


def stops_by(job: Job) -> datetime | None:
    """Return the last moment of a task that trains on, None for others and after a rebalance recommendation."""
    attempt = job.attempt
    if job.state is not JobState.RUNNING or attempt is None or attempt.handover is None:
        return None
    return attempt.handover.stop_by


def next_look(job: Job, now: datetime) -> datetime:
    """Return when a running job is to be checked next."""
    limit = min(now + HEARTBEAT, next_time_limit(job, now))
    attempt = job.attempt
    stop_by = attempt.handover.stop_by if attempt is not None and attempt.handover is not None else None
    return limit if stop_by is None else min(limit, stop_by)


def _delay_until(stop_by: datetime, now: datetime) -> int:
    return min(math.ceil((stop_by - now).total_seconds()), _LONGEST_DELAY_SECONDS)


def train_on(job: Job, reason: str, stop_by: datetime | None, now: datetime, *, event: str) -> Decision:
    """Let the task train on while the next machine is requested, until that is ready or `stop_by` is reached."""
    attempt = job.current_attempt
    since = attempt.handover.since if attempt.handover is not None else now
    job = replace(job, attempt=replace(attempt, handover=Handover(since, reason, stop_by)))
    # The last moment has a message of its own, sent first, beside that of the warning, which comes back then
    # (observe_capacity).
    timer = () if stop_by is None else (RequestLaunch(_delay_until(stop_by, now)),)
    until = "" if stop_by is None else f", at the latest {stop_by:%H:%M:%S} UTC"
    detail = f"{reason}; it trains on until the next machine is ready{until}"
    effects = (*timer, RequestLaunch())
    return move(job, JobState.RUNNING, now, event=event, detail=detail, wake_at=next_look(job, now), effects=effects)
