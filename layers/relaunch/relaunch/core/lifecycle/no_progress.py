"""A job whose attempts gain no step ends: what each of them trained was lost, and the next one would lose it again.

An attempt says so if it outlived the time that one of the job takes until it has saved, whatever ended it: it is known
by what is in the bucket once it has stopped, before the next machine is bought. A shorter attempt, and one that was
cancelled or out of time, says nothing; one that gained a step, however short, says that the training goes on. One that
was moved to spot saved before it stopped, as any other.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from relaunch.core.definitions.durations import write_minutes
from relaunch.core.jobs.job import Attempt, Job, StopKind
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.overheads import between_checkpoints
from relaunch.core.jobs.progress import SavedCheckpoint, resumed_step
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import LAUNCH_TIMEOUT, Decision, end, look_again, move
from relaunch.core.lifecycle.events import CheckpointsRead
from relaunch.core.selection.expected_cost import CHECKPOINT_INTERVAL

NO_PROGRESS = "no progress"
"""The event of the timeline."""

_STOPPED_ON_PURPOSE = frozenset({StopKind.CANCELLED, StopKind.TIME_OUT})
# A program that deletes its older checkpoints, or saves on SIGTERM alone, shows how long it ran, and not how often it
# saves: attempts that lose so much each are worth telling of anyway.
_LONGEST_SAVING = timedelta(hours=6)


def is_to_be_judged(job: Job, _event: object = None) -> bool:
    """Return whether it is to be read what the last attempt saved: it may have gained no step, or ends a row of such.

    A definition without checkpoints promises no steps.
    """
    attempt = job.attempt
    if attempt is None or attempt.stop is None or attempt.started_at is None or job.definition.checkpoint_uri is None:
        return False
    is_new = attempt.number > job.judged_attempt
    return is_new and (job.attempts_without_progress > 0 or _ran(attempt) >= between_checkpoints(0.0))


def judge_progress(job: Job, event: CheckpointsRead, now: datetime, _limits: StackLimits) -> Decision:
    """Count the attempt if it gained no step, and fail after too many in a row."""
    attempt, newest, wake_at = job.current_attempt, event.newest, now + LAUNCH_TIMEOUT
    judged = replace(job, judged_attempt=attempt.number)
    if newest is not None and _has_gained(attempt, newest):
        seconds = _saving_seconds(job, newest) if newest.attempt == attempt.number else job.saving_seconds
        return look_again(replace(judged, attempts_without_progress=0, saving_seconds=seconds), wake_at)
    least = time_to_save(job)
    is_on_purpose = attempt.stop is not None and attempt.stop.kind in _STOPPED_ON_PURPOSE
    if is_on_purpose or _ran(attempt) < least:
        return look_again(judged, wake_at)
    count, limit = job.attempts_without_progress + 1, job.definition.retry.max_attempts_without_progress
    judged = replace(judged, attempts_without_progress=count)
    saved = (
        "no checkpoint is complete" if newest is None else f"its newest checkpoint is still that of step {newest.step}"
    )
    if count >= limit:
        detail = (
            f"{count} attempts in a row gained no step, though each ran for longer than the {write_minutes(least)} "
            f"within which one is to save: {saved}, and retry.max_attempts_without_progress is {limit}"
        )
        return end(judged, JobState.FAILED, now, event=NO_PROGRESS, detail=detail)
    detail = (
        f"attempt {attempt.number} ran for {write_minutes(_ran(attempt))}, longer than the {write_minutes(least)} "
        f"within which one is to save, and gained no step: {saved}; {count} in a row, after {limit} the job fails"
    )
    return move(judged, job.state, now, event=NO_PROGRESS, detail=detail, wake_at=wake_at)


def time_to_save(job: Job) -> timedelta:
    """Return the running time within which an attempt of the job is to have gained a step.

    That is what one needed that gained a step, as far as it is known, a time that is shorter than the constant only
    half: half an hour while nothing was ever saved.
    """
    return between_checkpoints(job.saving_seconds) if job.saving_seconds else CHECKPOINT_INTERVAL


def _has_gained(attempt: Attempt, newest: SavedCheckpoint) -> bool:
    """Return whether the newest checkpoint is beyond the one that the attempt resumed from.

    Of a program that counts no steps, each checkpoint is of step 0: then a newer one is enough, unless it is so soon
    after the start that it may be of a program that saves before its first step.
    """
    began = attempt.started_at or newest.saved_at
    is_newer = newest.attempt == attempt.number and newest.saved_at - began >= CHECKPOINT_INTERVAL / 2
    return (newest.step == 0 and is_newer) or newest.step > resumed_step(attempt.placement.resume_uri)


def _saving_seconds(job: Job, newest: SavedCheckpoint) -> float:
    """Return how long the attempt ran until it had saved by itself, or between two of its checkpoints, if that is more.

    If it saved only because it was told to stop, what was known before stays; if nothing was, it is how long the
    attempt ran until then, where that is more than CHECKPOINT_INTERVAL, and else 0.
    """
    attempt = job.current_attempt
    began = attempt.started_at or newest.saved_at
    ended = began + _ran(attempt)
    intent_at = attempt.intent.at if attempt.intent is not None else ended
    told_at = min(intent_at, attempt.warned_at or ended, ended)
    times = [at for at in (*(at for _, at in newest.earlier), newest.saved_at) if at <= told_at]
    if not times:
        least = min(told_at - began, _LONGEST_SAVING)
        return job.saving_seconds or (least.total_seconds() if least > CHECKPOINT_INTERVAL else 0.0)
    between = max((later - sooner for sooner, later in pairwise(times)), default=timedelta(0))
    return max(min(times[0] - began, _LONGEST_SAVING), between).total_seconds()


def _ran(attempt: Attempt) -> timedelta:
    stop, began = attempt.stop, attempt.started_at
    return stop.at - began if stop is not None and began is not None else timedelta(0)
