"""Waiting for the ECS agent of a machine of our own, which RunTask finds disconnected (`AGENT`)."""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.jobs.effects import RequestLaunch
from relaunch.core.jobs.job import Job, PlacementState
from relaunch.core.jobs.state import Waiting, WaitReason
from relaunch.core.launches.launch import Shortage
from relaunch.core.lifecycle.decision import LAUNCH_TIMEOUT, Decision, wait

# An agent disconnects and reconnects several times an hour as part of its normal operation ("Container instance state
# change events", Amazon ECS Developer Guide), mostly within seconds. A new machine takes minutes and may never come.
_SHORTEST_DELAY = timedelta(seconds=5)
_LONGEST_WAIT = timedelta(minutes=3)


def waits_for_agent(job: Job, shortages: frozenset[Shortage], outcome: str, now: datetime) -> bool:
    """Return whether the job keeps its machine, whose agent is not connected: for three minutes at most.

    `outcome` is that of its placement. The placement constraint admits no other instance than the job's machine.
    """
    is_away = bool(job.current_attempt.placement.machine_id) and Shortage.AGENT in shortages
    return is_away and not job.cancel_requested and _away_for(job, outcome, now) < _LONGEST_WAIT


def wait_for_agent(job: Job, outcome: str, now: datetime) -> Decision:
    """Close the placement, and let the next one follow on the same machine.

    The same request would be answered alike: ECS repeats the failures of a client token that it knows ("Ensuring
    idempotency", Amazon ECS API Reference).
    """
    away_for = _away_for(job, outcome, now)
    until = now + min(max(away_for, _SHORTEST_DELAY), _LONGEST_WAIT - away_for)
    placement = job.current_attempt.placement
    closed = replace(placement, state=PlacementState.CLOSED, outcome=outcome)
    job = replace(job, machine_id=placement.machine_id, attempt=replace(job.current_attempt, placement=closed))
    waiting = Waiting(WaitReason.MACHINE, now, f"the agent of {placement.instance_id} is not connected", until)
    launch = RequestLaunch(int((until - now).total_seconds()))
    wake_at = until + LAUNCH_TIMEOUT
    return wait(job, waiting, now, event="agent not connected", wake_at=wake_at, effects=(launch,))


def _away_for(job: Job, outcome: str, now: datetime) -> timedelta:
    """Return for how long placements on the job's machine have had this outcome, since the second one was requested.

    The first one may have been requested long before it was answered.
    """
    attempt = job.current_attempt
    placement = attempt.placement
    closed = [
        each for each in attempt.closed_placements if (each.machine_id, each.outcome) == (placement.machine_id, outcome)
    ]
    return now - [*closed, placement][1].requested_at if closed else timedelta(0)
