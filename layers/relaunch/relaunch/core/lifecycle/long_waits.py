"""Bounds of waits for which nothing is refused: for a slot, a place within the limits on machines, or for capacity.

job waits
  ├─ for a slot or the stack's limit on machines: behind jobs of the stack's own, as long as those run
  │    └─ for QUEUE_LIMIT in all ──▶ FAILED
  ├─ in a queue of its cluster, with a task that is suspended ──▶ the same
  ├─ for its budget, which has room again when a month begins, for BUDGET_LIMIT ──▶ FAILED
  └─ for a machine: its capacity, price, market, start
       ├─ for its first one, which must be reserved, for RESERVATION_LIMIT ──▶ FAILED
       └─ for START_LIMIT and its patience in all, before its first run or since then ──▶ FAILED

What it waits for an image, or for what somebody has to grant, has bounds of its own (core.lifecycle.refusal_waits). A
job with a deadline waits until then. An alert comes at half of the bound, and once a day from then on: the job is due
then, whatever lets it try again before.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchasePolicy
from relaunch.core.definitions.durations import write_duration
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import QUEUES, REFUSED_WAITS, JobState, WaitReason
from relaunch.core.launches.launch_plan import job_checkpoint_uri
from relaunch.core.lifecycle.decision import Decision, move
from relaunch.core.records import dataclass

START_LIMIT = timedelta(hours=24)
"""How long a job has not been running in all, before its first run or since then, until it fails.

Interruptions are limited by time, not by number: on the traces of "Can't Be Late" (NSDI 2024) a limit of three
interruptions loses most of the savings of spot.
"""
QUEUE_LIMIT = timedelta(days=14)
"""How long a job waits behind others of its stack in all, before its first run or since then, until it fails."""
BUDGET_LIMIT = timedelta(days=35)
"""How long a job waits for a budget: a month, and four days in which somebody may raise the next one."""
RESERVATION_LIMIT = timedelta(weeks=9)
"""How long a job that takes reserved machines alone waits for its first one.

A Capacity Block starts up to eight weeks after it was bought ("Capacity Blocks for ML", EC2 User Guide).
"""
TOLD_EVERY = timedelta(hours=24)
"""How often an alert names a job that has waited for half of its bound."""
UNREADABLE_LIMIT = timedelta(minutes=10)
"""How long a job waits for reservations that cannot be read before it takes something else that it may use."""
WAITS_LONG = "waits for long"
"""The timeline event of a job whose wait causes an alert."""

_BOUND_ELSEWHERE = frozenset({WaitReason.IMAGE, *REFUSED_WAITS})


@dataclass(frozen=True, slots=True)
class LongWait:
    """How long a job has waited for what it waits for now, in all, and the bound of that."""

    waited: timedelta
    limit: timedelta
    is_queue: bool = False

    @property
    def is_over(self) -> bool:
        """Return whether the bound is reached."""
        return self.waited >= self.limit


def wait_of(job: Job, now: datetime) -> LongWait | None:
    """Return the wait of a job without a task that runs; None if it has another bound, or a deadline."""
    reason = job.waiting.reason if job.waiting is not None else None
    if job.definition.deadline is not None or reason in _BOUND_ELSEWHERE or _runs(job):
        return None
    attempt = job.attempt
    if attempt is not None and attempt.suspended_since is not None and job.state is not JobState.WAITING:
        return LongWait(job.queued_time(now) + (now - attempt.suspended_since), QUEUE_LIMIT, is_queue=True)
    if reason is WaitReason.BUDGET and job.waiting is not None:
        return LongWait(now - job.waiting.since, BUDGET_LIMIT, is_queue=True)
    if reason in QUEUES:
        return LongWait(job.queued_time(now), QUEUE_LIMIT, is_queue=True)
    is_reserved = job.definition.purchase is PurchasePolicy.RESERVED and job.totals.first_started_at is None
    limit = RESERVATION_LIMIT if is_reserved else START_LIMIT + (job.definition.patience or timedelta(0))
    return LongWait(idle_time(job, now), limit)


def _runs(job: Job) -> bool:
    """Return whether its task runs, as far as is known: it has what it waited for."""
    return job.state is JobState.RUNNING and job.attempt is not None and job.attempt.stop is None


def idle_time(job: Job, now: datetime) -> timedelta:
    """Return how long the job has not been running, since it first ran, or since it was accepted if it never did.

    Waits for unreadable checkpoints do not count, nor do those for an image, for a slot, or for the stack's limit on
    machines: none of them says that there is no capacity.
    """
    if job.totals.first_started_at is None:
        return max(now - job.accepted_at - job.held_back_in_all(now), timedelta(0))
    return max(now - job.totals.first_started_at - job.run_time(now) - job.held_back_time(now), timedelta(0))


def goes_without_reserved(job: Job, now: datetime) -> bool:
    """Return whether a job takes something else while reservations cannot be read: it may, and has waited for them."""
    has_others = job.definition.purchase is not PurchasePolicy.RESERVED
    return has_others and job.state is JobState.WAITING and idle_time(job, now) >= UNREADABLE_LIMIT


def describe_end(job: Job, wait: LongWait) -> str:
    """Return why a job ends whose wait is over, what would have helped, and where its checkpoints are."""
    limit = write_duration(wait.limit)
    if wait.is_queue:
        why = f"it waited for {limit} in all: {job.reason}"
    elif job.totals.interruptions:
        times = "once" if job.totals.interruptions == 1 else f"{job.totals.interruptions} times"
        why = f"interrupted {times} and not running for {limit} in all: {_WIDER}"
    elif job.totals.first_started_at is not None:
        why = f"not running for {limit} in all since it first ran: {_WIDER}"
    else:
        why = f"not running within {limit}, not counting its waits for others: {_WIDER}"
    last = f"; last: {job.reason}" if job.reason and not wait.is_queue else ""
    return f"{why}{last}{where_it_resumes(job)}"


_WIDER = "allow on-demand, more instance types, or set a deadline"


def where_it_resumes(job: Job) -> str:
    """Return from which checkpoints `retry` resumes a job that has trained; empty if it has none."""
    if job.totals.first_started_at is None or job.definition.checkpoint_uri is None:
        return ""
    return f"; `relaunch retry {job.job_id}` resumes from the newest checkpoint below {job_checkpoint_uri(job)}"


def describe_bound(job: Job, now: datetime) -> str:
    """Return when the wait of a job fails it, in words; empty if nothing but its deadline does."""
    wait = wait_of(job, now)
    if wait is None:
        return ""
    ends_at = max(now, now + wait.limit - wait.waited)
    return f"; it fails if it waits until {ends_at:%Y-%m-%d %H:%M} UTC"


def look_or_tell(job: Job, now: datetime, decision: Decision) -> Decision:
    """Return the decision to look again, with a timeline entry if an alert is to say how long the job waits."""
    wait = wait_of(job, now)
    is_known = job.waits.told_at is not None and now - job.waits.told_at < TOLD_EVERY
    if wait is None or wait.waited * 2 < wait.limit or is_known:
        return decision
    after = replace(decision.job, waits=replace(decision.job.waits, told_at=now))
    hours = f"{wait.waited // timedelta(hours=1)} of at most {wait.limit // timedelta(hours=1)} hours"
    detail = f"{hours}: {job.reason}"
    return move(after, after.state, now, event=WAITS_LONG, detail=detail, wake_at=after.wake_at, effects=after.pending)


def with_bound(_before: Job, _event: object, decision: Decision, now: datetime) -> Decision:
    """Return the decision; a job that waits is due when its wait is over or an alert is due, at the latest.

    Each job that ends and each machine that is gone lets the oldest jobs try again, which puts their next wake off.
    """
    job = decision.job
    if job.state is not JobState.WAITING or job.wake_at is None or (wait := wait_of(job, now)) is None:
        return decision
    began_at = now - wait.waited
    told_at = began_at + wait.limit / 2
    if job.waits.told_at is not None:
        told_at = max(told_at, job.waits.told_at + TOLD_EVERY)
    wake_at = min(job.wake_at, max(min(told_at, began_at + wait.limit), now))
    return replace(decision, job=replace(job, wake_at=wake_at))
