"""The restart policy: whether a job ends or is launched again after a stop, and its time limits."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from relaunch.core.definitions.durations import write_duration
from relaunch.core.jobs.job import Attempt, Job, Stop, StopKind
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.long_waits import describe_end, wait_of

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
    detail = describe_stop(stop)
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
    failed = {each.instance for each in job.failed_starts}
    if len(failed) >= FAILED_STARTS:
        return HoldBack(f"{detail}; {len(failed)} machines in a row did not start it")
    # A registry or a secret store that is out of reach fails every instance alike: it gets time to recover.
    delay = _back_off_seconds(len(job.failed_starts))
    return RestartAfter(delay, f"{detail}; again on another machine in {delay} s")


def _after_failure(job: Job, stop: Stop, detail: str) -> GiveUp | RestartAfter:
    allowed, retry = job.definition.max_failures, job.definition.retry
    if stop.kind is StopKind.STARTS_NOWHERE:
        return GiveUp(JobState.FAILED, detail)
    if stop.exit_code in retry.never_on_exit_codes:
        return GiveUp(JobState.FAILED, f"{detail}; retry.never_on_exit_codes has {stop.exit_code}")
    is_early = is_early_failure(job.current_attempt, stop) and stop.exit_code not in retry.on_exit_codes
    if is_early and job.early_failures > retry.max_early_failures:
        early = f"failure {job.early_failures} in a row within {write_duration(EARLY)} of the start"
        limit = f"before any checkpoint, and retry.max_early_failures is {retry.max_early_failures}"
        return GiveUp(JobState.FAILED, f"{detail}; {early}, {limit}")
    if job.failures > allowed:
        return GiveUp(JobState.FAILED, f"{detail}; failure {job.failures}, and max_failures is {allowed}")
    delay = _back_off_seconds(job.failures)
    return RestartAfter(delay, f"{detail}; failure {job.failures} of {allowed} allowed, again in {delay} s")


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
    if wait is not None and wait.is_over and not wait.is_queue:
        return GiveUp(JobState.FAILED, describe_end(job, wait))
    return None


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
