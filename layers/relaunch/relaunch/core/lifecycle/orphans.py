"""Tasks of a job that are not its current one: at most one may live.

They come of what ECS promises nobody: an answer of RunTask that comes after its try was closed, a task that ECS did
not know for a while. They are rare, and each would be paid for and train beside the current one.
"""

from dataclasses import replace
from datetime import datetime

from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.launches.launch import LaunchConflict, LaunchOutcome, TaskPlaced
from relaunch.core.lifecycle.decision import LAUNCH_TIMEOUT, Decision, stop_effects
from relaunch.core.lifecycle.events import LaunchAnswered, TaskSeen

ORPHANED = "stray task"
"""What the timeline says when one is stopped."""


def orphaned_tasks(job: Job, outcome: LaunchOutcome) -> tuple[str, ...]:
    """Return the tasks of an answer of RunTask that the job does not know."""
    match outcome:
        case TaskPlaced(task_arn):
            placed: tuple[str, ...] = (task_arn,)
        case LaunchConflict(task_arns):
            placed = task_arns
        case _:
            placed = ()
    return tuple(arn for arn in placed if not _knows(job, arn))


def places_orphan(job: Job, event: LaunchAnswered) -> bool:
    """Hold when RunTask made a task that the job does not wait for any more."""
    return bool(orphaned_tasks(job, event.outcome))


def is_orphaned(job: Job, event: TaskSeen) -> bool:
    """Hold for a live task that is not the job's current one, or that was taken for lost."""
    attempt, seen = job.attempt, event.observation
    if "STOPPED" in {seen.last_status, seen.desired_status}:
        return False
    if attempt is not None and attempt.task_arn == seen.task_arn:
        # About a task that comes back nothing needs to have changed: it may have run all the time.
        is_back = attempt.placement.is_lost and seen.version == attempt.task_version
        return attempt.stop is not None and (is_back or seen.version > attempt.task_version)
    return not _knows(job, seen.task_arn)


def stop_orphaned_task(job: Job, event: TaskSeen, now: datetime, _limits: StackLimits) -> Decision:
    """Stop a task of the job that is not its current one; the job itself goes on as it is."""
    return _stop(job, (event.observation.task_arn,), now)


def stop_placed_orphan(job: Job, event: LaunchAnswered, now: datetime, _limits: StackLimits) -> Decision:
    """RunTask's answer came too late: stop the task it made; the job itself goes on as it is."""
    return _stop(job, orphaned_tasks(job, event.outcome), now)


def _knows(job: Job, task_arn: str) -> bool:
    attempt = job.attempt
    if attempt is None:
        return False
    # What was taken for lost used its attempt up and is not among them: should it come back, it is a stray.
    return task_arn in {attempt.task_arn, *(each.task_arn for each in attempt.closed_placements)}


def _stop(job: Job, task_arns: tuple[str, ...], now: datetime) -> Decision:
    effects = stop_effects(task_arns, "it is not the current task of its job")
    # A job that is over has to be due until its effects are done.
    due = replace(job, pending=(*job.pending, *effects), wake_at=job.wake_at or now + LAUNCH_TIMEOUT)
    number = job.attempt.number if job.attempt else None
    return Decision(due, (TimelineEntry(now, job.state, ORPHANED, ", ".join(task_arns), number),))
