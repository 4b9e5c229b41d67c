"""What a start of a job loses, and what an interruption may lose: measured by the job's own attempts.

A start takes from the request of its machine, or of its task where a machine is there, until the task is RUNNING, and
then until the training works on: with two checkpoints of an attempt their steps and times say when that was. The
constants of core.selection.expected_cost count as one more start, and as one more time between two checkpoints. A time
in which a task ran without a checkpoint, from its start or its newest one until it stopped, is the least that there is
between two; it counts where it is longer than what is known.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from relaunch.core.jobs.attempt import Attempt
from relaunch.core.jobs.job import Job, MeasuredTimes
from relaunch.core.jobs.progress import (
    LONGEST_START,
    SHORTEST_START,
    Progress,
    SavedCheckpoint,
    kept_time,
    resumed_step,
)
from relaunch.core.jobs.state import WaitReason
from relaunch.core.records import dataclass
from relaunch.core.selection.expected_cost import CHECKPOINT_INTERVAL, START_OVERHEAD

# The part of START_OVERHEAD in which a task loads data and compiles: taken for an attempt without two checkpoints.
_LOADING = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Overheads:
    """The time that a start takes without work, and the longest time between two checkpoints."""

    start: timedelta = START_OVERHEAD
    checkpoint_interval: timedelta = CHECKPOINT_INTERVAL


@dataclass(frozen=True, slots=True)
class Measured:
    """What the attempts and the checkpoints of a job say of its work and of its overheads."""

    progress: Progress
    overheads: Overheads = Overheads()


def measure_overheads(job: Job, newest: SavedCheckpoint | None, now: datetime) -> Overheads:
    """Return the overheads of a job: the mean of its starts, and the longest time between two of its checkpoints.

    A start is from SHORTEST_START to LONGEST_START, a time between checkpoints at least half of the constant.
    """
    so_far = measured_so_far(job, newest, now)
    mean = (START_OVERHEAD + timedelta(seconds=so_far.start_seconds)) / (1 + so_far.starts)
    start = min(max(mean, SHORTEST_START), LONGEST_START)
    if not so_far.checkpoint_seconds:
        return Overheads(start)
    return Overheads(start, between_checkpoints(so_far.checkpoint_seconds))


def between_checkpoints(seconds: float) -> timedelta:
    """Return the time to reckon with between two checkpoints, of which this was the longest that was seen.

    One that is shorter than the constant counts only half: it is of few checkpoints.
    """
    longest = timedelta(seconds=seconds)
    return max(longest, (longest + CHECKPOINT_INTERVAL) / 2)


def with_measured(job: Job, newest: SavedCheckpoint | None, now: datetime) -> Job:
    """Return the job, of which a new attempt begins, with what those before it kept and say of its overheads."""
    progress = replace(job.progress, kept_seconds=kept_time(job, newest).total_seconds())
    return replace(job, progress=progress, measured=measured_so_far(job, newest, now))


def machine_asked_at(job: Job) -> datetime | None:
    """Return since when a job waits for the machine of its next task; None if it does not."""
    waiting = job.waiting
    return waiting.since if waiting is not None and waiting.reason is WaitReason.MACHINE else None


def measured_so_far(job: Job, newest: SavedCheckpoint | None, now: datetime) -> MeasuredTimes:
    """Return what the attempts of a job say, its current one included, which runs until `now` or stopped."""
    attempt = job.attempt
    before = job.measured
    if attempt is None or attempt.started_at is None:
        return before
    own = newest if newest is not None and newest.attempt == attempt.number else None
    to_running = max(attempt.started_at - (job.machines.asked_at or attempt.placement.requested_at), timedelta(0))
    loading = _loading(attempt, own) if own is not None else None
    start = to_running + (_LOADING if loading is None else loading)
    longest = max(before.checkpoint_seconds, _longest_interval(own) if own is not None else 0.0)
    unsaved_since = attempt.started_at if own is None else own.saved_at
    unsaved = ((now if attempt.stop is None else attempt.stop.at) - unsaved_since).total_seconds()
    # It would lower what is assumed of a program that failed at once.
    is_news = unsaved > (longest or CHECKPOINT_INTERVAL.total_seconds())
    seconds = before.start_seconds + start.total_seconds()
    return MeasuredTimes(before.starts + 1, seconds, unsaved if is_news else longest)


def _loading(attempt: Attempt, newest: SavedCheckpoint) -> timedelta | None:
    """Return how long the running task did not work before its first steps, None if its checkpoints do not say it.

    Of the time until the first checkpoint that is still there, the rest were steps at the speed between it and the
    newest one.
    """
    if attempt.started_at is None or not newest.earlier:
        return None
    step, at = newest.earlier[0]
    if newest.step <= step or newest.saved_at <= at:
        return None
    per_step = (newest.saved_at - at) / (newest.step - step)
    worked = per_step * max(step - resumed_step(attempt.placement.resume_uri), 0)
    return max(at - attempt.started_at - worked, timedelta(0))


def _longest_interval(newest: SavedCheckpoint) -> float:
    times = [*(at for _, at in newest.earlier), newest.saved_at]
    return max(((later - sooner).total_seconds() for sooner, later in pairwise(times)), default=0.0)
