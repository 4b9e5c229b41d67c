"""A job, the records that it consists of, and the keys with which stores find it.

The jobs table stores the fields of the records in one body, without the records.
"""

from collections.abc import Collection, Mapping
from dataclasses import field
from datetime import datetime, timedelta

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.attempt import Attempt, AttemptKey, PlacementState
from relaunch.core.jobs.changes import Outbox
from relaunch.core.jobs.charges import Charges
from relaunch.core.jobs.effects import Effect
from relaunch.core.jobs.groups import GroupPlace
from relaunch.core.jobs.state import (
    HELD_BACK_BY,
    QUEUES,
    CostBasis,
    JobState,
    NotedProgress,
    Refusal,
    RefusedCall,
    Reserved,
    Waiting,
    WaitReason,
)
from relaunch.core.jobs.trigger_facts import ResumePoint, TriggerFacts
from relaunch.core.offerings.offering import CapacityFailure
from relaunch.core.records import dataclass
from relaunch.core.revisions.revision import Revision

STACK_SLOT = "*"
"""The slot name of the limit of the stack; other slots have the name of a definition."""
MACHINES_SLOT = "#MACHINES"
"""The slot name of the stack's limits on machines of its own."""
CAPACITY = "#CAPACITY"
"""The name under which jobs that wait for capacity are found, like those that wait for a slot."""


@dataclass(frozen=True, slots=True)
class FailedStart:
    """A task that did not start on the instance it was placed on."""

    instance: str
    """The EC2 instance ID, or the name of the node where that is all that is known."""
    error: str
    """That of the stop."""
    is_unknown: bool = False
    """Nobody knows whether the instance is at fault."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What a job has had until now. Times and costs are those of ended attempts."""

    failures: int = 0
    interruptions: int = 0
    first_started_at: datetime | None = None
    run_seconds: float = 0.0
    """The running time of its tasks."""
    cost_usd: float = 0.0
    """What its tasks cost; an unknown price counts as 0, and an upper limit as the price."""
    cost_basis: CostBasis = CostBasis.PRICE


@dataclass(frozen=True, slots=True)
class WaitTimes:
    """How long a job has waited for what is no capacity, in waits that are over, and when somebody was told.

    `Job.held_back_time` and `Job.queued_time` add the current wait.
    """

    held_back_seconds: float = 0.0
    """Since it first ran."""
    held_back_before_seconds: float = 0.0
    """Until it first ran."""
    queued_seconds: float = 0.0
    """The part of `held_back_seconds` that it waited behind others."""
    queued_before_seconds: float = 0.0
    """The part of `held_back_before_seconds` that it waited behind others."""
    told_at: datetime | None = None
    """When the last alert said that it waits for long (core.lifecycle.long_waits)."""


@dataclass(frozen=True, slots=True)
class MachineUse:
    """What came of the machines of our own that were requested for a job."""

    requested: int = 0
    """How many were requested for it."""
    failed: int = 0
    """How many did not become ready since a task of the job last ran."""
    refused_since: datetime | None = None
    """Since when EC2 refuses its requests for a reason that other offerings would not change."""
    useless_at: tuple[datetime, ...] = ()
    """When it lost each of the latest machines that never ran a task of it.

    That bounds how many it gets in a day (core.lifecycle.restart_policy).
    """
    useless_usd: float = 0.0
    """What those cost that were requested for it and never ran a task of it, if an earlier release ended them."""
    asked_at: datetime | None = None
    """Since when it waited for the machine of its current placement; None if it did not."""
    ran_on: str = ""
    """The machine on which its last task ran that has stopped; empty for one of an earlier version."""


@dataclass(frozen=True, slots=True)
class Faults:
    """What went wrong with the latest tasks of a job, and with its latest launches."""

    failed_starts: tuple[FailedStart, ...] = ()
    """Those since a task of the job last ran."""
    own_failures: tuple[CapacityFailure, ...] = ()
    """The launches since then that failed for this job alone: no other job avoids their offerings.

    They found no capacity while the job was kept from instances, or ended with an error that nobody knows.
    """
    early_failures: int = 0
    """The latest failures in a row soon after a start."""
    faulty_machines: tuple[str, ...] = ()
    """The latest machines in a row that failed under it within an hour (core.lifecycle.restart_policy).

    By EC2 instance ID, or by the name of the node where that is all that is known.
    """

    @property
    def avoided_instances(self) -> tuple[str, ...]:
        """Return the EC2 instances on which it did not start, or that failed under it; its launches exclude them."""
        avoided = (*(each.instance for each in self.failed_starts), *self.faulty_machines)
        return tuple(dict.fromkeys(each for each in avoided if each.startswith("i-")))


@dataclass(frozen=True, slots=True)
class SavedProgress:
    """What the checkpoints of a job keep, and whether its attempts add to them."""

    first_step: int | None = None
    """The step of the checkpoint of another job from which it resumed.

    0 if it began from the beginning, None before its first launch.
    """
    kept_seconds: float = 0.0
    """The running time, before the current attempt, whose work a checkpoint keeps (core.jobs.progress)."""
    judged_attempt: int = 0
    """The latest attempt of which it is known whether it gained a step."""
    attempts_without_progress: int = 0
    """How many of the latest in a row gained no step (core.lifecycle.restart_policy)."""
    saving_seconds: float = 0.0
    """How long one that gained a step ran until it had saved; 0 if that is not known."""
    accelerators: str = ""
    """What the task of the current attempt computes on, as `4x A10G`; in it, it would cost a write unit more.

    Empty if its steps do not say how fast that is, or an earlier version launched it.
    """


@dataclass(frozen=True, slots=True)
class MeasuredTimes:
    """What the attempts of a job say of its overheads (core.jobs.progress)."""

    starts: int = 0
    """The starts that were measured."""
    start_seconds: float = 0.0
    """Their time in all."""
    checkpoint_seconds: float = 0.0
    """The longest time between two checkpoints; 0 if that is not known."""


@dataclass(frozen=True, slots=True)
class MarketHistory:
    """What the market policy of a job decided."""

    reason: str = ""
    """Why it launched the job where it is, or leaves it there, when it last looked; empty if none chose."""
    moved_at: tuple[datetime, ...] = ()
    """When the task was stopped for each of the latest moves to spot (core.lifecycle.moves)."""


@dataclass(frozen=True, slots=True)
class Job:
    """One accepted request to train."""

    job_id: str
    definition: JobDefinition
    """As it was when the job was accepted."""
    trigger: TriggerFacts
    revision: Revision
    """As it was when the job was accepted."""
    accepted_at: datetime
    inputs: Mapping[str, str] = field(default_factory=dict)
    state: JobState = JobState.WAITING
    state_since: datetime | None = None
    reason: str = ""
    waiting: Waiting | None = None
    image: tuple[str, str] | None = None
    images: Mapping[str, str] = field(default_factory=dict)
    """Containers, and the images, by digest, that replace those of the revision."""
    wake_at: datetime | None = None
    """Set for every open job."""
    attempt: Attempt | None = None
    has_slot: bool = False
    """The job counts against `max_running_jobs`."""
    totals: Totals = Totals()
    cancel_requested: str = ""
    pending: tuple[Effect, ...] = ()
    ended_at: datetime | None = None
    interrupted_at: datetime | None = None
    """The start of the current interruption: the time of the warning if there was one."""
    faults: Faults = Faults()
    waits: WaitTimes = WaitTimes()
    machine_id: str = ""
    """The machine of our own that it claims for its next placement; that of rank 0 if it has several nodes."""
    follower_ids: tuple[str, ...] = ()
    """The machines that a job of several nodes claims for its ranks from 1 on, in the order of the ranks.

    They mean nothing while it claims no machine for rank 0.
    """
    machines: MachineUse = MachineUse()
    charges: Charges = Charges()
    reserved: Reserved = field(default_factory=Reserved)
    refusals: Mapping[RefusedCall, Refusal] = field(default_factory=dict, hash=False)
    """The calls that were refused, since it last had a task, for what somebody has to grant or mend.

    See core.lifecycle.refusal_waits.
    """
    resume_from: tuple[ResumePoint, ...] = ()
    """The jobs that it retries, the latest first: it resumes from the first of them with a checkpoint."""
    progress: SavedProgress = SavedProgress()
    measured: MeasuredTimes = MeasuredTimes()
    noted: NotedProgress | None = None
    """How far its training was at the last look (core.jobs.training); None if no checkpoint was seen."""
    market: MarketHistory = MarketHistory()
    group: GroupPlace = field(default_factory=GroupPlace)
    outbox: Outbox = field(default_factory=Outbox)
    """Its latest changes, as far as EventBridge does not have them."""
    version: int = 0
    """The version of the item, on which every write is conditional."""

    @property
    def current_attempt(self) -> Attempt:
        """Return the current attempt.

        Raises:
            LookupError: nothing was launched yet; the transition table excludes this.
        """
        if self.attempt is None:
            raise LookupError(f"job {self.job_id} has no attempt yet")
        return self.attempt

    @property
    def attempt_key(self) -> AttemptKey:
        """Return the key of the current attempt, which finds its tasks; of the first if there is none yet."""
        return AttemptKey(self.job_id, self.attempt.number if self.attempt else 1)

    @property
    def next_machines(self) -> tuple[str, ...]:
        """Return the machines of our own that it claims for its next placement, in the order of its ranks."""
        return (self.machine_id, *self.follower_ids) if self.machine_id else ()

    def run_time(self, now: datetime) -> timedelta:
        """Return the running time of the tasks, including the current one."""
        ended = timedelta(seconds=self.totals.run_seconds)
        attempt = self.attempt
        running = None if attempt is None or attempt.stop is not None else attempt.run_time(now)
        return ended if running is None else ended + running

    def held_back_time(self, now: datetime) -> timedelta:
        """Return how long the job has waited, since it first ran, for what is no capacity.

        That is for what somebody has to grant or mend, for the slot that it had until then, or for a place within the
        stack's limit on machines of its own.
        """
        ended = timedelta(seconds=self.waits.held_back_seconds)
        return ended if self.totals.first_started_at is None else ended + self._waited_now(now, HELD_BACK_BY)

    def held_back_in_all(self, now: datetime) -> timedelta:
        """Return how long the job has waited, since it was accepted, for what is no capacity: for its image, too."""
        ended = timedelta(seconds=self.waits.held_back_before_seconds + self.waits.held_back_seconds)
        return ended + self._waited_now(now, HELD_BACK_BY)

    def queued_time(self, now: datetime) -> timedelta:
        """Return how long the job has waited behind others of the stack since it first ran; until then in all."""
        ended = self.waits.queued_before_seconds if self.totals.first_started_at is None else self.waits.queued_seconds
        return timedelta(seconds=ended) + self._waited_now(now, QUEUES)

    def _waited_now(self, now: datetime, reasons: Collection[str]) -> timedelta:
        waiting = self.waiting
        if waiting is None or waiting.reason not in reasons:
            return timedelta(0)
        return max(now - waiting.since, timedelta(0))


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One entry of the timeline of a job: a transition, or an event within a state."""

    at: datetime
    state: JobState
    event: str
    detail: str = ""
    attempt_number: int | None = None


def is_over(job: Job) -> bool:
    """Return whether nothing of the job is left to do but to send its changes."""
    return job.state.is_final and not job.pending


def due_at(job: Job) -> datetime | None:
    """Return when the job is to be checked again, None if never.

    A finished job is due while effects are pending; loading it for the next event repeats them. Every job is due when
    EventBridge is to be sent its changes again.

    Raises:
        ValueError: the job is open and has no `wake_at`.
    """
    resend_at = job.outbox.resend_at
    if is_over(job):
        return resend_at
    wake_at = (job.wake_at or job.ended_at or job.accepted_at) if job.state.is_final else job.wake_at
    if wake_at is None:
        raise ValueError(f"job {job.job_id} is {job.state} and has no wake_at")
    return min(wake_at, resend_at or wake_at)


def waited_slot(job: Job) -> str | None:
    """Return the slot that the job waits for: the name of a definition, `*`, or CAPACITY; None if it waits for none."""
    if job.state.is_final or job.waiting is None:
        return None
    if job.waiting.reason is WaitReason.CAPACITY:
        return CAPACITY
    if job.waiting.reason is WaitReason.MACHINE_LIMIT:
        return MACHINES_SLOT
    return job.waiting.slot or job.definition.name if job.waiting.reason is WaitReason.SLOT else None


def may_have_instance(job: Job) -> bool:
    """Return whether the job has a slot and may use an instance: while it waits for capacity it has only the slot."""
    return job.has_slot and waited_slot(job) is None


def selected_placement(job: Job, *, is_placed: bool) -> tuple[int, int]:
    """Return the (attempt, placement) of a selection saved with the job.

    `is_placed`: the selection kept an offering, so that it belongs to the pending placement; else to the next one.
    """
    attempt = job.attempt
    if attempt is None:
        return 1, 1
    if is_placed and attempt.placement.state is PlacementState.PENDING:
        return attempt.number, attempt.placement.number
    if attempt.is_number_used:
        return attempt.number + 1, 1
    return attempt.number, attempt.placement.number + 1


def claimed_machines(job: Job) -> frozenset[str]:
    """Return the IDs of the machines that the job needs: of its task, and for its next placement."""
    if job.state.is_final:
        return frozenset()
    needed = set(job.next_machines)
    attempt = job.attempt
    if attempt is not None and attempt.stop is None and attempt.placement.state is not PlacementState.CLOSED:
        needed.update(each.machine_id for each in attempt.placement.ranks)
    return frozenset(needed - {""})


INVOKE = "invoke"
"""The caller of every direct Invoke of `job_api`: Lambda does not tell a function who invokes it."""


def keyed_identity(caller: str, key: str) -> str:
    """Return the identity of a request with an idempotency key: each caller has keys of its own.

    An ARN has no space. The keys of INVOKE are those of earlier versions, which had only this caller.
    """
    return f"api:key:{key}" if caller == INVOKE else f"api:caller:{caller} {key}"


def is_own(job: Job, caller: str) -> bool:
    """Return whether a caller may see and cancel a job: one that it asked for.

    Jobs that nobody asked for (those of events) and those of versions that stored no caller are INVOKE's.
    """
    return job.trigger.caller == caller or (caller == INVOKE and not job.trigger.caller)
