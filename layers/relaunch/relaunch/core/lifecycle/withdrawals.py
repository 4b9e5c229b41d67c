"""Tasks that the target has taken and that have not started: how long they may take, and what follows then.

Each action is a pure function of (job, event, now, limits) and returns the decision to save.
"""

from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.attempt import Attempt, IntentKind, StopIntent
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import LAUNCH_TIMEOUT, Decision, set_next_check, watch_closely
from relaunch.core.lifecycle.events import TimePassed
from relaunch.core.lifecycle.long_waits import look_or_tell
from relaunch.core.lifecycle.restart_policy import out_of_time
from relaunch.core.lifecycle.stopping import stop_with_intent
from relaunch.core.lifecycle.unconfirmed_stops import is_host_gone, lose_host

START_TIMEOUT = timedelta(minutes=30)
"""How long a task may take to start on its container instance: pulling the image of a training takes minutes."""
REFUSED_FOR = timedelta(minutes=5)
"""How long a target may refuse to start what it has taken: a webhook restarts, or another pod ends, within minutes.

A Job controller has tried five times by then: after 10, 20, 40, 80 and 160 seconds.
"""


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
