"""Orphaned tasks: running tasks of a job that are not its current task.

An answer to a launch that arrives after its placement was closed makes one, as does a task that the target did not know
for some time. They are rare, but each costs money and runs the same training as the current task.
"""

from dataclasses import replace
from datetime import datetime

from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.launches.launch import LaunchConflict, LaunchOutcome, TaskPlaced
from relaunch.core.lifecycle.decision import LAUNCH_TIMEOUT, Decision, stop_effects
from relaunch.core.lifecycle.events import LaunchAnswered, TaskSeen
from relaunch.core.lifecycle.gangs import is_gang

ORPHANED = "orphaned task"
"""The timeline event of a stopped orphan."""


def orphaned_tasks(job: Job, outcome: LaunchOutcome) -> tuple[str, ...]:
    """Return the tasks of a response of RunTask that the job does not know."""
    match outcome:
        case TaskPlaced(task_id, _):
            placed: tuple[str, ...] = (task_id, *outcome.followers)
        case LaunchConflict(task_ids):
            placed = task_ids
        case _:
            placed = ()
    return tuple(arn for arn in placed if not _knows(job, arn))


def places_orphan(job: Job, event: LaunchAnswered) -> bool:
    """Return whether RunTask started a task that the job does not expect any more."""
    return bool(orphaned_tasks(job, event.outcome))


def is_orphaned(job: Job, event: TaskSeen) -> bool:
    """Return whether the task is running and is not the current one, or was considered lost."""
    attempt = job.attempt
    seen = event.observation
    if seen.phase.is_ending:
        return False
    if attempt is not None and seen.task_id in attempt.placement.task_ids:
        # The version of a task that reappears may be unchanged; that of several together is no task's.
        is_back = attempt.placement.is_lost and (is_gang(job) or seen.version == attempt.task_version)
        return attempt.stop is not None and (is_back or seen.version > attempt.task_version)
    return not _knows(job, seen.task_id) and not _is_later(job, event) and not _is_being_placed(job, event)


def _is_being_placed(job: Job, event: TaskSeen) -> bool:
    """Return whether the task may be of a gang that is being launched, which is not known before all of it is.

    If they are not launched, those that were placed are stopped, and seen again.
    """
    attempt = job.attempt
    seen = event.observation
    if attempt is None or attempt.placement.state is not PlacementState.PENDING:
        return False
    if job.state.is_final or not is_gang(job):
        return False
    return seen.owner == job.attempt_key


def _is_later(job: Job, event: TaskSeen) -> bool:
    """Return whether the task is of an attempt that the job has not begun: the table was restored from a backup.

    An attempt is saved before its task is launched. The job launches it under the same name when it comes there, and is
    answered with this task.
    """
    owner = event.observation.owner
    return owner is not None and owner.attempt_number > (job.attempt.number if job.attempt else 0)


def stop_orphaned_task(job: Job, event: TaskSeen, now: datetime, _limits: StackLimits) -> Decision:
    """Stop an orphaned task; the state of the job does not change."""
    return _stop(job, (event.observation.task_id,), now)


def stop_placed_orphan(job: Job, event: LaunchAnswered, now: datetime, _limits: StackLimits) -> Decision:
    """Stop a task whose placement is closed; the state of the job does not change."""
    return _stop(job, orphaned_tasks(job, event.outcome), now)


def _knows(job: Job, task_id: str) -> bool:
    attempt = job.attempt
    if attempt is None:
        return False
    # A task considered lost used up its attempt and is not among these: if it reappears, it is an orphan.
    known = (attempt.placement, *attempt.closed_placements)
    return any(task_id in each.task_ids for each in known)


def _stop(job: Job, task_ids: tuple[str, ...], now: datetime) -> Decision:
    effects = stop_effects(task_ids, "it is not the current task of its job")
    # A finished job is due until its effects are done.
    due = replace(job, pending=(*job.pending, *effects), wake_at=job.wake_at or now + LAUNCH_TIMEOUT)
    number = job.attempt.number if job.attempt else None
    return Decision(due, (TimelineEntry(now, job.state, ORPHANED, ", ".join(task_ids), number),))
