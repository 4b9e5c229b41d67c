"""The restart policy: whether a job ends or is launched again after a stop, and its time limits."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from relaunch.core.definitions.durations import write_duration
from relaunch.core.jobs.job import Job, Stop, StopKind
from relaunch.core.jobs.state import JobState

# A job without a deadline fails when it has not run for this time in all since it first ran. Interruptions are limited
# by time, not by number: on the traces of "Can't Be Late" (NSDI 2024) a limit of three interruptions loses most of the
# savings of spot.
INTERRUPTION_BUDGET = timedelta(hours=24)

_FAILURE_BACKOFF_SECONDS = 30
# The maximum delay of an SQS message.
_LONGEST_DELAY_SECONDS = 900

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


def is_failure(kind: StopKind) -> bool:
    """Return whether a stop counts against `max_failures`."""
    return kind in _FAILURES


def is_interruption(kind: StopKind) -> bool:
    """Return whether a stop was caused by the instance; it counts against the interruption budget."""
    return kind in _INTERRUPTIONS


def decide_restart(job: Job, stop: Stop, now: datetime) -> GiveUp | RestartAfter:
    """Decide what follows a stop, which is already counted in `job`.

    task stopped
      ├─ success, cancellation or time-out ──▶ the matching final state
      ├─ cancellation requested ──▶ CANCELLED
      ├─ failure ──▶ FAILED if there are more than max_failures; else again after 30 s, 60 s, 120 s…
      ├─ out of time ──▶ FAILED or TIMED_OUT
      ├─ interruption or move ──▶ again at once
      ├─ not started ──▶ again on another instance, after 30 s, 60 s, 120 s…
      └─ no capacity ──▶ again at once, on another offering
    """
    detail = describe_stop(stop)
    if stop.kind in _ENDS:
        return GiveUp(_ENDS[stop.kind], detail)
    if job.cancel_requested:
        return GiveUp(JobState.CANCELLED, f"{job.cancel_requested} ({detail})")
    if is_failure(stop.kind):
        return _after_failure(job, detail)
    return out_of_time(job, now) or _after_stop(job, stop, detail)


def _after_stop(job: Job, stop: Stop, detail: str) -> RestartAfter:
    if stop.kind is not StopKind.NOT_STARTED:
        return RestartAfter(0, detail)
    # A registry or a secret store that is out of reach fails every instance alike: it gets time to recover.
    delay = _back_off_seconds(len(job.failed_starts))
    return RestartAfter(delay, f"{detail}; again on another machine in {delay} s")


def _after_failure(job: Job, detail: str) -> GiveUp | RestartAfter:
    allowed = job.definition.max_failures
    if job.failures > allowed:
        return GiveUp(JobState.FAILED, f"{detail}; failure {job.failures}, and max_failures is {allowed}")
    delay = _back_off_seconds(job.failures)
    return RestartAfter(delay, f"{detail}; failure {job.failures} of {allowed} allowed, again in {delay} s")


def _back_off_seconds(number: int) -> int:
    """Return the delay after the failure of this number, counted from 1."""
    return min(_FAILURE_BACKOFF_SECONDS << (number - 1), _LONGEST_DELAY_SECONDS)


def out_of_time(job: Job, now: datetime) -> GiveUp | None:
    """Return the end of a job whose deadline, max_runtime or interruption budget is exceeded; None for others."""
    definition = job.definition
    if definition.deadline is not None and now >= job.accepted_at + definition.deadline:
        return GiveUp(
            JobState.TIMED_OUT, f"the deadline of {write_duration(definition.deadline)} after acceptance has passed"
        )
    if job.run_time(now) >= definition.max_runtime:
        return GiveUp(
            JobState.TIMED_OUT, f"its tasks have run for max_runtime, {write_duration(definition.max_runtime)}"
        )
    budget = INTERRUPTION_BUDGET + (definition.patience or timedelta(0))
    if definition.deadline is None and job.interruptions and idle_time(job, now) >= budget:
        return GiveUp(
            JobState.FAILED,
            f"interrupted {job.interruptions} times and not running for {write_duration(budget)} in all: "
            "allow on-demand, more instance types, or set a deadline",
        )
    return None


def idle_time(job: Job, now: datetime) -> timedelta:
    """Return how long the job has not been running since it first ran.

    Waits for unreadable checkpoints do not count, nor do those for the slot that was released meanwhile, or for the
    stack's limit on machines: none of them says that there is no capacity.
    """
    if job.first_started_at is None:
        return timedelta(0)
    return max(now - job.first_started_at - job.run_time(now) - job.held_back_time(now), timedelta(0))


def next_time_limit(job: Job, now: datetime) -> datetime:
    """Return when a running job reaches its deadline or max_runtime, whichever is first."""
    runtime_ends_at = now + job.definition.max_runtime - job.run_time(now)
    if job.definition.deadline is None:
        return runtime_ends_at
    return min(runtime_ends_at, job.accepted_at + job.definition.deadline)


def describe_stop(stop: Stop) -> str:
    """Return a description of how a task ended, with its exit code and the reason that the target gives."""
    words = {
        StopKind.SUCCESS: "the program finished",
        StopKind.INTERRUPTION: "the machine was taken away",
        StopKind.MOVED: "it was moved to spot",
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
        StopKind.UNKNOWN: "the task stopped for a reason that the cluster does not tell",
    }[stop.kind]
    facts = [
        *([f"exit code {stop.exit_code}"] if stop.exit_code is not None else []),
        *([stop.stopped_reason] if stop.stopped_reason else []),
    ]
    return f"{words} ({'; '.join(facts)})" if facts else words
