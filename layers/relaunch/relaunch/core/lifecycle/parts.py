"""Actions of the transition table for placements of several tasks, of which only a part may be there.

Each is a pure function of (job, event, now, limits) and returns the decision to save.
"""

from dataclasses import replace
from datetime import datetime

from relaunch.core.jobs.attempt import IntentKind, StopIntent
from relaunch.core.jobs.effects import LookForWarning, RequestLaunch
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.launches.launch import LaunchRefused, PlacementFailed
from relaunch.core.lifecycle.decision import LAUNCH_TIMEOUT, Decision, move, stop_effects
from relaunch.core.lifecycle.events import HostWarned
from relaunch.core.lifecycle.stopping import stop_with_intent, with_task


def withdraw_part(job: Job, outcome: PlacementFailed | LaunchRefused, now: datetime) -> Decision:
    """Stop the tasks of a gang that were placed without the others; their stops are waited for as any other."""
    why = ", ".join(outcome.reasons) if isinstance(outcome, PlacementFailed) else outcome.reason
    reason = f"the cluster did not place all of its tasks: {why}"
    placed = outcome.placed
    placement = job.current_attempt.placement
    part = replace(placement, followers=placement.followers[: len(placed) - 1])
    job = replace(job, attempt=replace(job.current_attempt, placement=part, instance_id=part.instance_id))
    job = with_task(job, placed[0], reason, now, placed[1:])
    intent = job.current_attempt.intent
    if intent is None or intent.kind is IntentKind.INTERRUPTION:
        # None has trained: what is taken away is not the training.
        intent = StopIntent(IntentKind.START_WITHDRAWN, now, reason)
    return with_looks(stop_with_intent(job, intent, now, event="not all placed"))


def with_looks(decision: Decision) -> Decision:
    """Return the decision with a look for what EC2 said of the machine of each rank before its task was known."""
    looks = tuple(LookForWarning(each.instance_id) for each in decision.job.current_attempt.placement.ranks)
    told = replace(decision.job, pending=(*decision.job.pending, *looks))
    return replace(decision, job=told, link_instance=True)


def warn_pending(job: Job, event: HostWarned, now: datetime, _limits: StackLimits) -> Decision:
    """Give up a placement of several tasks of which not all are known to be there: one of its machines ends.

    Its task, if it has one, is stopped at once. If all are there, they are found, and stopped with it.
    """
    reason = f"{event.cause or 'spot interruption warning'} for {event.instance_id}"
    intent = job.current_attempt.intent or StopIntent(IntentKind.INTERRUPTION, now, reason)
    job = replace(job, attempt=replace(job.current_attempt, intent=intent))
    stops = stop_effects((event.task_id,), intent.detail) if event.task_id else ()
    effects = (*stops, RequestLaunch())
    wake_at = now + LAUNCH_TIMEOUT
    return move(job, job.state, now, event="interruption warning", detail=reason, wake_at=wake_at, effects=effects)
