"""How much work of a job is done, and how much is left: what a deadline is held against.

Work is measured in running time. What no complete checkpoint keeps is lost with the task; a definition without
checkpoints starts over. With `total_steps` the newest checkpoint says which share is done, and the running time that
it took says how fast the job is; before a MEASURED_SHARE is done, and without steps, `estimated_duration` is taken. A
job that retries another one begins with the step of the checkpoint that it resumes from: the steps before it took none
of its own time.

What a start loses, and what an interruption may lose, is measured by the job's own attempts. A start takes from the
request of its machine, or of its task where a machine is there, until the task is RUNNING, and then until the training
works on: with two checkpoints of an attempt their steps and times say when that was. The constants of
core.selection.expected_cost count as one more start, and as one more time between two checkpoints. A time in which a
task ran without a checkpoint, from its start or its newest one until it stopped, is the least that there is between
two; it counts where it is longer than what is known.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from relaunch.core.jobs.attempt import Attempt
from relaunch.core.jobs.job import Job, MeasuredTimes
from relaunch.core.jobs.state import WaitReason
from relaunch.core.selection.expected_cost import CHECKPOINT_INTERVAL, START_OVERHEAD

# Before that, loading data and compiling are most of what a checkpoint says of the speed.
MEASURED_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """A complete checkpoint: its URI, the step it was saved after, the attempt that wrote it, and when it was done.

    `earlier` are the steps and times of the checkpoints of that attempt before it, as far as they are still there.
    """

    uri: str
    step: int
    attempt: int
    saved_at: datetime
    earlier: tuple[tuple[int, datetime], ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """The work done and left of a job.

    If the estimate is too low by the padding, `left` lacks the padding of all work, done and left (`at_most_left`).
    """

    done: timedelta
    left: timedelta

    def at_most_left(self, padding: float) -> timedelta:
        """Return the work left if the estimate of all work is too low by this share."""
        return self.left + padding * (self.done + self.left)


def kept_time(job: Job, newest: SavedCheckpoint | None) -> timedelta:
    """Return the running time whose work the newest complete checkpoint keeps.

    A checkpoint of an earlier attempt was counted when that attempt was followed by the next one.
    """
    before, attempt = timedelta(seconds=job.progress.kept_seconds), job.attempt
    if newest is None:
        return timedelta(0)
    if attempt is None or attempt.started_at is None or newest.attempt != attempt.number:
        return before
    saved_at = newest.saved_at if attempt.stop is None else min(newest.saved_at, attempt.stop.at)
    return before + max(saved_at - attempt.started_at, timedelta(0))


def measure_progress(job: Job, newest: SavedCheckpoint | None, now: datetime) -> Progress | None:
    """Return the work done and left at `now`; None if nothing says how much work the job is.

    What a running task did since the newest checkpoint is counted as done.
    """
    kept = kept_time(job, newest)
    unsaved = _unsaved_time(job, kept, now)
    by_steps = _by_steps(job, newest, kept)
    if by_steps is None:
        return _by_estimate(job, kept + unsaved)
    return Progress(by_steps.done + unsaved, max(by_steps.left - unsaved, timedelta(0)))


def _unsaved_time(job: Job, kept: timedelta, now: datetime) -> timedelta:
    attempt = job.attempt
    if attempt is None or attempt.started_at is None or attempt.stop is not None:
        return timedelta(0)
    began_with = timedelta(seconds=job.progress.kept_seconds)
    return max(now - attempt.started_at - max(kept - began_with, timedelta(0)), timedelta(0))


def _by_estimate(job: Job, done: timedelta) -> Progress | None:
    estimate = job.definition.estimated_duration
    if estimate is None:
        return None
    return Progress(done, max(estimate - done, timedelta(0)))


def _by_steps(job: Job, newest: SavedCheckpoint | None, kept: timedelta) -> Progress | None:
    total, estimate = job.definition.total_steps, job.definition.estimated_duration
    step = (job.progress.first_step or 0) if newest is None else newest.step
    if total is None or step <= 0:
        return None
    # Of a retry that was launched by an earlier version it is not known which steps are its own.
    began_at = step if job.progress.first_step is None and job.resume_from else job.progress.first_step or 0
    own, left = step - began_at, max(total - step, 0)
    if kept and own > 0 and (own / total >= MEASURED_SHARE or estimate is None):
        return Progress(kept, kept * (left / own))
    return None if estimate is None else Progress(kept, estimate * (left / total))


def describe_lack_of_progress(job: Job) -> str:
    """Return that the latest attempts of an open job gained no step, and what follows; empty if they did."""
    count, limit = job.progress.attempts_without_progress, job.definition.retry.max_attempts_without_progress
    if not count or job.state.is_final:
        return ""
    which = "its last attempt" if count == 1 else f"its last {count} attempts"
    return f"{which} gained no step; after {limit} in a row the job fails"


def resumed_step(resume_uri: str | None) -> int:
    """Return the step of the checkpoint that an attempt resumes from, `…/step-0000200/`; 0 from the beginning."""
    step = (resume_uri or "").rstrip("/").rpartition("step-")[2]
    return int(step) if step.isdecimal() else 0


# The part of START_OVERHEAD in which a task loads data and compiles: taken for an attempt without two checkpoints.
_LOADING = timedelta(minutes=2)
SHORTEST_START, LONGEST_START = timedelta(minutes=2), timedelta(hours=1)


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
    attempt, before = job.attempt, job.measured
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
