"""How much work of a job is done, and how much is left: what a deadline is held against.

Work is measured in running time. What no complete checkpoint keeps is lost with the task; a definition without
checkpoints starts over. With `total_steps`, of the definition or else of the manifest, the newest checkpoint says
which share is done, and the running time that it took says how fast the job is; before a MEASURED_SHARE is done, and
without steps, `estimated_duration` is taken. A job that retries another one begins with the step of the checkpoint that
it resumes from: the steps before it took none of its own time.
"""

from datetime import datetime, timedelta

from relaunch.core.jobs.attempt import Attempt
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.reported import Reported
from relaunch.core.records import dataclass

# Before that, loading data and compiling are most of what a checkpoint says of the speed.
MEASURED_SHARE = 0.05
LONGEST_LEFT = timedelta(days=36_500)
"""What is left is not said to be more: a training names its steps, and may have named the first of a trillion."""


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """A complete checkpoint: its URI, the step it was saved after, the attempt that wrote it, and when it was done.

    `earlier` are the steps and times of the checkpoints of that attempt before it, as far as they are still there.
    `reported` is what its manifest says about the training. `retrained` are the steps and times of checkpoints below it
    that the newest attempt after it saved: it found this one damaged, or did not resume.
    """

    uri: str
    step: int
    attempt: int
    saved_at: datetime
    earlier: tuple[tuple[int, datetime], ...] = ()
    reported: Reported = Reported()
    retrained: tuple[tuple[int, datetime], ...] = ()


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
    before = timedelta(seconds=job.progress.kept_seconds)
    attempt = job.attempt
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


def total_steps(job: Job, newest: SavedCheckpoint | None) -> int | None:
    """Return of how many steps the training of a job is; None if neither its definition nor its training says so.

    A training that is further than it says to go is not believed.
    """
    if job.definition.total_steps is not None or newest is None:
        return job.definition.total_steps
    said = newest.reported.total_steps
    return said if said is not None and said >= newest.step else None


def share_left(job: Job) -> float:
    """Return the share of a job's work that is left after its newest checkpoint, as far as steps were noted; else 1."""
    noted = job.noted
    total = job.definition.total_steps or (noted.total_steps if noted is not None else None)
    done = (job.progress.first_step or 0) if noted is None else noted.step
    return 1.0 if total is None else max(total - done, 0) / total


def _by_steps(job: Job, newest: SavedCheckpoint | None, kept: timedelta) -> Progress | None:
    total = total_steps(job, newest)
    estimate = job.definition.estimated_duration
    step = (job.progress.first_step or 0) if newest is None else newest.step
    if total is None or step <= 0:
        return None
    # Of a retry that was launched by an earlier version it is not known which steps are its own.
    began_at = step if job.progress.first_step is None and job.resume_from else job.progress.first_step or 0
    own = step - began_at
    left = max(total - step, 0)
    if kept and own > 0 and (own / total >= MEASURED_SHARE or estimate is None):
        most = LONGEST_LEFT // kept + 1
        return Progress(kept, min(kept * (min(left, own * most) / own), LONGEST_LEFT))
    return None if estimate is None else Progress(kept, estimate * (left / total))


def work_at_risk(job: Job, now: datetime) -> timedelta | None:
    """Return the time whose work is lost if the machine of a task is taken away now; None of a job of which none runs.

    It is the time since its newest checkpoint at the last look, or since its start if it has saved none.
    """
    attempt = job.attempt
    noted = job.noted
    if attempt is None:
        return None
    return time_at_risk(attempt, noted.at if noted is not None and noted.attempt == attempt.number else None, now)


def time_at_risk(attempt: Attempt, saved_at: datetime | None, now: datetime) -> timedelta | None:
    """Return how long an attempt has run since it saved; None if it does not run. `saved_at` is None if it has not."""
    if attempt.started_at is None or attempt.stop is not None:
        return None
    since = max(saved_at or attempt.started_at, attempt.started_at)
    return max(min(now, attempt.program_ended_at or now) - since, timedelta(0))


def describe_lack_of_progress(job: Job) -> str:
    """Return that the latest attempts of an open job gained no step, and what follows; empty if they did."""
    count = job.progress.attempts_without_progress
    limit = job.definition.retry.max_attempts_without_progress
    if not count or job.state.is_final:
        return ""
    which = "its last attempt" if count == 1 else f"its last {count} attempts"
    return f"{which} gained no step; after {limit} in a row the job fails"


def resumed_step(resume_uri: str | None) -> int:
    """Return the step of the checkpoint that an attempt resumes from, `…/step-0000200/`; 0 from the beginning."""
    step = (resume_uri or "").rstrip("/").rpartition("step-")[2]
    return int(step) if step.isdecimal() else 0


SHORTEST_START = timedelta(minutes=2)
LONGEST_START = timedelta(hours=1)
