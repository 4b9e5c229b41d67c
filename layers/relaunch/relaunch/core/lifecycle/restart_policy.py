"""The restart policy: whether a job ends or is launched again after a stop, and its time limits.

Machines that are paid for and never run a task of their job are bounded whatever the reason: they do not become ready,
the cluster places nothing on them, or a permission is missing once they are up. A few in a row follow one another at
once, then one is bought as a probe (core.lifecycle.refusal_waits); and whatever happens in between, a job gets no more
than MOST_IN_A_DAY in any 24 hours. What keeps the tasks of a revision from all machines holds for all jobs with it,
which buy probes together (core.machines.starts).

A job whose attempts gain no step ends: what each of them trained was lost, and the next one would lose it again.

An attempt says so if it outlived the time that one of the job takes until it has saved, whatever ended it: it is known
by what is in the bucket once it has stopped, before the next machine is bought. A shorter attempt, and one that was
cancelled or out of time, says nothing; one that gained a step, however short, says that the training goes on. One that
was moved to spot saved before it stopped, as any other.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from relaunch.core.definitions.durations import write_duration, write_minutes
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import Attempt, Stop, StopKind
from relaunch.core.jobs.effects import RememberCapacity
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.overheads import between_checkpoints
from relaunch.core.jobs.progress import SavedCheckpoint, resumed_step
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import LAUNCH_TIMEOUT, Decision, end, move, set_next_check
from relaunch.core.lifecycle.events import CheckpointsRead
from relaunch.core.lifecycle.long_waits import describe_end, wait_of
from relaunch.core.offerings.capacity_memory import placement_scope
from relaunch.core.records import dataclass
from relaunch.core.revisions.revision import STOP_TIMEOUT_SECONDS, find_stop_timeout
from relaunch.core.selection.expected_cost import CHECKPOINT_INTERVAL

EARLY = timedelta(minutes=10)
"""A program that fails within this time of its start, before its first checkpoint, fails early."""
FAILED_STARTS = 3
"""After failed starts on so many machines, for errors of machines, the job waits: what they have in common may heal."""
UNKNOWN_STARTS = 2
"""An error of a start that nobody knows is tried on so many machines."""

LONGEST_BACKOFF_SECONDS = 900
"""How long a failed job waits for its next launch at most: the maximum delay of an SQS message."""

_FAILURE_BACKOFF_SECONDS = 30

_FAILURES = frozenset(
    {
        StopKind.USER_ERROR,
        StopKind.SIDECAR,
        StopKind.OUT_OF_MEMORY,
        StopKind.IMAGE,
        StopKind.STARTS_NOWHERE,
        StopKind.UNKNOWN,
    }
)
_OF_THE_CONTAINERS = frozenset({StopKind.USER_ERROR, StopKind.OUT_OF_MEMORY, StopKind.SIDECAR})
_INTERRUPTIONS = frozenset({StopKind.INTERRUPTION, StopKind.HOST_LOST})
_ENDS = {
    StopKind.SUCCESS: JobState.SUCCEEDED,
    StopKind.CANCELLED: JobState.CANCELLED,
    StopKind.TIME_OUT: JobState.TIMED_OUT,
}


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The job ends in this state, for this reason."""

    state: JobState
    reason: str


@dataclass(frozen=True, slots=True)
class RestartAfter:
    """The job is launched again after a delay."""

    delay_seconds: int
    reason: str


@dataclass(frozen=True, slots=True)
class HoldBack:
    """The job waits for what somebody has to grant or mend before its task can start (core.lifecycle.refusal_waits)."""

    reason: str


def is_failure(kind: StopKind) -> bool:
    """Return whether a stop counts against `max_failures`."""
    return kind in _FAILURES


def is_interruption(kind: StopKind) -> bool:
    """Return whether a stop was caused by the instance; it counts against the interruption budget."""
    return kind in _INTERRUPTIONS


def is_early_failure(attempt: Attempt, stop: Stop) -> bool:
    """Return whether the program, or a container beside it, failed soon after its start, before any checkpoint.

    A job that resumes from a checkpoint has shown that it can train. What this attempt itself saved is not known here:
    it is to the next one.
    """
    is_soon = attempt.started_at is None or stop.at - attempt.started_at < EARLY
    return stop.kind in _OF_THE_CONTAINERS and is_soon and attempt.placement.resume_uri is None


def decide_restart(job: Job, stop: Stop, now: datetime) -> GiveUp | RestartAfter | HoldBack:
    """Decide what follows a stop, which is already counted in `job`.

    task stopped
      ├─ success, cancellation or time-out ──▶ the matching final state
      ├─ cancellation requested ──▶ CANCELLED
      ├─ starts nowhere ──▶ FAILED: another machine would not start it either
      ├─ failure ──▶ FAILED if there are more than max_failures, more than retry.max_early_failures soon after their
      │              starts, or the exit code is one of retry.never_on_exit_codes; else again after 30 s, 60 s, 120 s…
      ├─ out of time ──▶ FAILED or TIMED_OUT
      ├─ interruption, move or fault of the machine ──▶ again at once
      ├─ start refused, or not started on three machines ──▶ held back, and tried again by the rule of refusals
      ├─ not started ──▶ again on another instance, after 30 s, 60 s, 120 s…
      └─ no capacity ──▶ again at once, on another offering
    """
    detail = describe_stop(stop, job.definition.target)
    if stop.kind in _ENDS:
        return GiveUp(_ENDS[stop.kind], detail)
    if job.cancel_requested:
        return GiveUp(JobState.CANCELLED, f"{job.cancel_requested} ({detail})")
    if is_failure(stop.kind):
        return _after_failure(job, stop, detail)
    return out_of_time(job, now) or _after_stop(job, stop, detail)


def _after_stop(job: Job, stop: Stop, detail: str) -> RestartAfter | HoldBack:
    if stop.kind is StopKind.START_REFUSED:
        return HoldBack(detail)
    if stop.kind not in {StopKind.NOT_STARTED, StopKind.UNKNOWN_START}:
        return RestartAfter(0, detail)
    failed = {each.instance for each in job.faults.failed_starts}
    if len(failed) >= FAILED_STARTS:
        return HoldBack(f"{detail}; {len(failed)} machines in a row did not start it")
    # A registry or a secret store that is out of reach fails every instance alike: it gets time to recover.
    delay = _back_off_seconds(len(job.faults.failed_starts))
    return RestartAfter(delay, f"{detail}; again on another machine in {delay} s")


def _after_failure(job: Job, stop: Stop, detail: str) -> GiveUp | RestartAfter:
    allowed = job.definition.max_failures
    retry = job.definition.retry
    if stop.kind is StopKind.STARTS_NOWHERE:
        return GiveUp(JobState.FAILED, detail)
    if stop.exit_code in retry.never_on_exit_codes:
        return GiveUp(JobState.FAILED, f"{detail}; retry.never_on_exit_codes has {stop.exit_code}")
    is_early = is_early_failure(job.current_attempt, stop) and stop.exit_code not in retry.on_exit_codes
    early = (
        f"; early failure {job.faults.early_failures} (within {write_duration(EARLY)} of the start, before any "
        f"checkpoint): retry.max_early_failures allows {retry.max_early_failures}"
    )
    if is_early and job.faults.early_failures > retry.max_early_failures:
        return GiveUp(JobState.FAILED, f"{detail}{early}")
    counted = f"{detail}; failure {job.totals.failures}: max_failures allows {allowed}"
    if job.totals.failures > allowed:
        return GiveUp(JobState.FAILED, counted)
    delay = _back_off_seconds(job.totals.failures)
    return RestartAfter(delay, f"{counted}{early if is_early else ''}; again in {delay} s")


def _back_off_seconds(number: int) -> int:
    """Return the delay after the failure of this number, counted from 1."""
    return min(_FAILURE_BACKOFF_SECONDS << (number - 1), LONGEST_BACKOFF_SECONDS)


def out_of_time(job: Job, now: datetime) -> GiveUp | None:
    """Return the end of a job whose deadline, max_runtime or time without running is over; None for others."""
    definition = job.definition
    if definition.deadline is not None and now >= job.accepted_at + definition.deadline:
        return GiveUp(
            JobState.TIMED_OUT, f"the deadline of {write_duration(definition.deadline)} after acceptance has passed"
        )
    if job.run_time(now) >= definition.max_runtime:
        return GiveUp(
            JobState.TIMED_OUT, f"its tasks have run for max_runtime, {write_duration(definition.max_runtime)}"
        )
    wait = wait_of(job, now)
    # A place behind others that has come is taken: only what goes on waiting for it ends (core.lifecycle.launching).
    has_place = wait is not None and wait.is_queue and job.state is JobState.WAITING
    if wait is not None and wait.is_over and not has_place:
        return GiveUp(JobState.FAILED, describe_end(job, wait))
    return None


def next_time_limit(job: Job, now: datetime) -> datetime:
    """Return when a running job reaches its deadline or max_runtime, whichever is first."""
    runtime_ends_at = now + job.definition.max_runtime - job.run_time(now)
    if job.definition.deadline is None:
        return runtime_ends_at
    return min(runtime_ends_at, job.accepted_at + job.definition.deadline)


def describe_stop(stop: Stop, target: Target) -> str:
    """Return a description of how a task ended, with its exit code and the reason that the target gives."""
    # A pod is also evicted or deleted from a node that stays.
    taken = "the pod" if target.capabilities.runs_pods else "the machine"
    words = {
        StopKind.SUCCESS: "the program finished",
        StopKind.INTERRUPTION: f"{taken} was taken away",
        StopKind.MOVED: "it was moved to spot",
        StopKind.OVER_BUDGET: "it was stopped because its budget is used up",
        StopKind.HOST_LOST: "the machine was lost",
        StopKind.OUT_OF_MEMORY: "the container ran out of memory",
        StopKind.IMAGE: "the container image could not be used",
        StopKind.USER_ERROR: "the program failed",
        StopKind.SIDECAR: "the program did not end by itself: another essential container ended",
        StopKind.CANCELLED: "cancelled",
        StopKind.TIME_OUT: "out of time",
        StopKind.NO_CAPACITY: "no capacity",
        StopKind.NOT_STARTED: "the task had a machine and did not start on it",
        StopKind.STARTS_NOWHERE: "the task does not start on any machine",
        StopKind.START_REFUSED: "the task does not start before somebody grants what it needs",
        StopKind.UNKNOWN_START: "the task had a machine and did not start on it, for an error that Relaunch does not "
        "know",
        StopKind.MACHINE_FAULT: "the machine is at fault",
        StopKind.UNKNOWN: "the task stopped for a reason that the cluster does not tell",
    }[stop.kind]
    facts = [
        *([f"exit code {stop.exit_code}"] if stop.exit_code is not None else []),
        *([stop.stopped_reason] if stop.stopped_reason else []),
    ]
    return f"{words} ({'; '.join(facts)})" if facts else words


MOST_IN_A_DAY = 6
"""The machines of no use that a job gets in any 24 hours: three at once, and the probes of the first four hours."""
DAY = timedelta(hours=24)


def with_useless_machine(job: Job, now: datetime) -> Job:
    """Return the job with another machine that was of no use to it, which it lost just now."""
    return replace(job, machines=replace(job.machines, useless_at=(*job.machines.useless_at, now)[-MOST_IN_A_DAY:]))


def useless_for_all(job: Job, machine_id: str, reason: str, now: datetime) -> RememberCapacity:
    """Return the effect that tells all jobs of a machine that was of no use for tasks of the job's revision."""
    return RememberCapacity(placement_scope(job.revision.arn), reason, now, now, machine_id=machine_id)


def next_machine_at(job: Job, now: datetime) -> datetime:
    """Return from when on the job may get a new machine: now, unless it had too many of no use within a day."""
    lost_at = job.machines.useless_at
    return now if len(lost_at) < MOST_IN_A_DAY else max(lost_at[0] + DAY, now)


def describe_bound(job: Job) -> str:
    """Return why the job gets no new machine yet."""
    until = job.machines.useless_at[0] + DAY
    return (
        f"{MOST_IN_A_DAY} machines within 24 hours never ran its task; another one is requested after "
        f"{until:%Y-%m-%d %H:%M} UTC"
    )


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
    is_new = attempt.number > job.progress.judged_attempt
    return is_new and (job.progress.attempts_without_progress > 0 or _ran(attempt) >= between_checkpoints(0.0))


def judge_progress(job: Job, event: CheckpointsRead, now: datetime, _limits: StackLimits) -> Decision:
    """Count the attempt if it gained no step, and fail after too many in a row."""
    attempt = job.current_attempt
    newest = event.newest
    wake_at = now + LAUNCH_TIMEOUT
    progress = replace(job.progress, judged_attempt=attempt.number)
    if newest is not None and _has_gained(attempt, newest):
        seconds = _saving_seconds(job, newest) if newest.attempt == attempt.number else job.progress.saving_seconds
        progress = replace(progress, attempts_without_progress=0, saving_seconds=seconds)
        return set_next_check(replace(job, progress=progress), wake_at)
    least = time_to_save(job)
    is_on_purpose = attempt.stop is not None and attempt.stop.kind in _STOPPED_ON_PURPOSE
    if is_on_purpose or _ran(attempt) < least:
        return set_next_check(replace(job, progress=progress), wake_at)
    count = progress.attempts_without_progress + 1
    limit = job.definition.retry.max_attempts_without_progress
    judged = replace(job, progress=replace(progress, attempts_without_progress=count))
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
    return between_checkpoints(job.progress.saving_seconds) if job.progress.saving_seconds else CHECKPOINT_INTERVAL


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

    If it saved only because it was asked to stop, what was known before stays; if nothing was, it is how long the
    attempt ran until then, where that is more than CHECKPOINT_INTERVAL, and else 0.
    """
    attempt = job.current_attempt
    began = attempt.started_at or newest.saved_at
    told_at = _told_at(job, began + _ran(attempt))
    times = [at for at in (*(at for _, at in newest.earlier), newest.saved_at) if at <= told_at]
    if not times:
        least = min(told_at - began, _LONGEST_SAVING)
        return job.progress.saving_seconds or (least.total_seconds() if least > CHECKPOINT_INTERVAL else 0.0)
    between = max((later - sooner for sooner, later in pairwise(times)), default=timedelta(0))
    return max(min(times[0] - began, _LONGEST_SAVING), between).total_seconds()


def _told_at(job: Job, ended_at: datetime) -> datetime:
    """Return from when on the attempt may have saved because it was asked to stop; its end if nobody asked.

    A stop that took its machine away, and of which neither a warning nor an intent is noted, has no time: the task was
    stopped while its job could not be read, or EC2 shut the instance down. SIGKILL follows within the stop time-out.
    """
    attempt = job.current_attempt
    noted = [at for at in (attempt.warned_at, attempt.intent.at if attempt.intent is not None else None) if at]
    if not noted and attempt.stop is not None and is_interruption(attempt.stop.kind):
        timeout = find_stop_timeout(job.definition, job.revision)
        seconds = timeout.seconds if timeout is not None else STOP_TIMEOUT_SECONDS
        return (attempt.program_ended_at or ended_at) - timedelta(seconds=seconds)
    return min([*noted, ended_at])


def _ran(attempt: Attempt) -> timedelta:
    stop = attempt.stop
    began = attempt.started_at
    return stop.at - began if stop is not None and began is not None else timedelta(0)
