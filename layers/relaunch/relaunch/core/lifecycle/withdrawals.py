"""Tasks that the target has taken and that have not started: how long they may take, and what follows then.

So are several of one placement of which not all may be there.

Each action is a pure function of (job, event, now, limits) and returns the decision to save.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.attempt import Attempt, IntentKind, StopIntent
from relaunch.core.jobs.effects import LookForWarning, RequestLaunch
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import LaunchRefused, PlacementFailed
from relaunch.core.lifecycle.decision import (
    LAUNCH_TIMEOUT,
    Decision,
    is_polled,
    move,
    set_next_check,
    stop_effects,
    watch_closely,
)
from relaunch.core.lifecycle.events import HostWarned, TimePassed
from relaunch.core.lifecycle.long_waits import look_or_tell
from relaunch.core.lifecycle.restart_policy import out_of_time
from relaunch.core.lifecycle.stopping import stop_with_intent, with_task
from relaunch.core.lifecycle.unconfirmed_stops import is_host_gone, lose_host

START_TIMEOUT = timedelta(minutes=30)
"""How long a task may take to start on its container instance: pulling the image of a training takes minutes."""
REFUSED_FOR = timedelta(minutes=5)
"""How long a target may refuse to start what it has taken: a webhook restarts, or another pod ends, within minutes.

A Job controller has tried five times by then: after 10, 20, 40, 80 and 160 seconds.
"""
UNTOLD_FOR = timedelta(minutes=5)
"""How much longer a task may take of which a target that sends no events does not tell now whether it has started."""


def start_deadline(attempt: Attempt, limits: StackLimits) -> datetime:
    """Return when a task that has not started is withdrawn: later once it has a container instance.

    One that the target refuses to start is withdrawn as soon as that lasts: it waits without a slot.
    """
    placed_at = attempt.placement.placed_at or attempt.placement.requested_at
    if attempt.refused_since is not None:
        return attempt.refused_since + REFUSED_FOR
    if attempt.node is not None:
        return placed_at + START_TIMEOUT
    return placed_at + limits.provisioning_deadline(is_managed=attempt.placement.is_managed)


def wake_placed(job: Job, event: TimePassed, now: datetime, limits: StackLimits) -> Decision:
    """Withdraw a task that has not started before its deadline, and try another offering.

    One of several pods does not stay where some of them hold nodes for the others, which may wait for each other's.
    One without a machine is withdrawn when the job has waited for too long in all: the stop ends the job then.
    """
    if is_host_gone(job, event, now):
        return lose_host(job, now)
    verdict = out_of_time(job, now)
    if verdict is not None and verdict.state is JobState.TIMED_OUT:
        return stop_with_intent(job, StopIntent(IntentKind.TIME_OUT, now, verdict.reason), now, event="out of time")
    attempt = job.current_attempt
    # With a container instance capacity is not the cause, but that instance, or the image.
    has_machine = attempt.node is not None
    is_over = verdict is not None and not has_machine
    deadline = start_deadline(attempt, limits)
    is_queued = attempt.suspended_since is not None
    if is_polled(job) and attempt.refused_since is None and not event.is_described:
        # It may train since the last look that was answered.
        deadline += UNTOLD_FOR
    if now < deadline and not (is_over or is_queued):
        return set_next_check(job, watch_closely(job, deadline, now))
    if attempt.refused_since is not None and not is_over:
        intent = StopIntent(IntentKind.START_REFUSED, now, job.reason)
        return stop_with_intent(job, intent, now, event="start refused")
    if _keeps_its_place(job) and not (is_over or event.is_partial):
        return look_or_tell(job, now, set_next_check(job, now + LAUNCH_TIMEOUT))
    placed_at = attempt.placement.placed_at or attempt.placement.requested_at
    waited = timedelta(seconds=int((now - placed_at).total_seconds())) if is_over else deadline - placed_at
    reason = f"not started within {waited}; the cluster says {attempt.task_status or 'nothing'}"
    reason = job.reason if is_queued else reason
    kind = IntentKind.START_WITHDRAWN if has_machine else IntentKind.PLACEMENT_WITHDRAWN
    return stop_with_intent(job, StopIntent(kind, now, reason), now, event="start deadline")


def _keeps_its_place(job: Job) -> bool:
    """Return whether a task without a node stays where it waits: the target keeps it, and there is no other offering.

    ECS gives such a task up by itself, and a capacity provider has others beside it. A queue of the cluster says
    nothing of an offering.
    """
    attempt = job.current_attempt
    if attempt.suspended_since is not None:
        return True
    definition = job.definition
    has_other = attempt.placement.offering.purchase is PurchaseOption.SPOT and len(definition.purchase.options) > 1
    return definition.target.capabilities.keeps_pending_tasks and attempt.node is None and not has_other


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
        # None has trained: what is taken away is not the training. A task that was stopped for a warning may have
        # stopped since then.
        intent = StopIntent(IntentKind.START_WITHDRAWN, intent.at if intent is not None else now, reason)
    return with_looks(stop_with_intent(job, intent, now, event="not all placed"))


def with_looks(decision: Decision) -> Decision:
    """Return the decision with a look for warnings by EC2 of the machine of each rank before its task was known."""
    looks = tuple(LookForWarning(each.instance_id) for each in decision.job.current_attempt.placement.ranks)
    looking = replace(decision.job, pending=(*decision.job.pending, *looks))
    return replace(decision, job=looking, link_instance=True)


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
