"""A job, its attempts and their placements, as stored in the jobs table."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.attempt_key import AttemptKey
from relaunch.core.jobs.effects import Effect
from relaunch.core.jobs.state import HELD_BACK_BY, QUEUES, CostBasis, JobState, Refusal, RefusedCall, Waiting
from relaunch.core.jobs.trigger_facts import ResumePoint, TriggerFacts
from relaunch.core.offerings.offering import CapacityFailure, OfferingKey
from relaunch.core.revisions.revision import Revision

STACK_SLOT = "*"
"""The slot name of the limit of the stack; other slots have the name of a definition."""
MACHINES_SLOT = "#MACHINES"
"""The slot name of the stack's limits on machines of its own."""
CAPACITY = "#CAPACITY"
"""The name under which jobs that wait for capacity are found, like those that wait for a slot."""


class PlacementState(StrEnum):
    """The state of a placement."""

    PENDING = "PENDING"  # saved; the target may or may not have been asked to launch it
    PLACED = "PLACED"  # the target has its task
    CLOSED = "CLOSED"  # its task has stopped, or it will have none


@dataclass(frozen=True, slots=True)
class Placement:
    """One set of launch parameters, which may be sent to the target repeatedly.

    `placed_at` is when its task became known, which throttling may delay long after `requested_at`. `revision_arn` is
    the derived revision that it runs, None for the revision of the job. `neuron_devices` are the devices that the
    revision lists; `takes_all_neuron` requests all of them from ECS, as Managed Instances support.
    `gpu_partition_size` is that of the instance type, 1 for whole GPUs. `is_managed`: the capacity provider is one of
    ECS Managed Instances. `price_usd_per_hour` is what the selection expected, 0 if unknown: where the target chooses
    the zone, the highest of `usd_per_hour_by_zone`; core.jobs.cost has the price of the zone that the task is in.
    `is_price_limit`: it is an upper limit of a spot price. `limit_usd_per_hour` is that of a zone without a price, 0 if
    unknown. A placement of an earlier version has no prices by zone.
    `instance_id` and `machine_id` are those of the machine of our own that it must run on; empty for one by a capacity
    provider. `senders` is the number of functions that send it, 2 for two or more: a number is short, and an attempt
    costs one write unit as long as it has less than a KiB.
    """

    number: int
    offering: OfferingKey
    capacity_provider: str
    price_usd_per_hour: float
    requested_at: datetime
    state: PlacementState = PlacementState.PENDING
    task_id: str | None = None
    resume_uri: str | None = None
    outcome: str = ""
    is_lost: bool = False
    placed_at: datetime | None = None
    revision_arn: str | None = None
    neuron_devices: tuple[int, ...] = ()
    takes_all_neuron: bool = False
    gpu_partition_size: float = 1.0
    is_managed: bool = False
    is_price_limit: bool = False
    instance_id: str = ""
    machine_id: str = ""
    usd_per_hour_by_zone: Mapping[str, float] = field(default_factory=dict, hash=False)
    limit_usd_per_hour: float = 0.0
    senders: int = 1

    @property
    def cost_basis(self) -> CostBasis:
        """Return what the price rests on; what is reserved costs nothing more."""
        if self.offering.purchase is PurchaseOption.RESERVED:
            return CostBasis.PRICE
        if not self.price_usd_per_hour:
            return CostBasis.UNKNOWN
        return CostBasis.LIMIT if self.is_price_limit else CostBasis.PRICE

    @property
    def price_text(self) -> str:
        """Return the price in words, or that it is not known.

        `$0.4000/h`, `up to $1.0060/h`, and `$0.3000 to $0.4000/h, by zone` until the zone is known.
        """
        if self.offering.purchase is PurchaseOption.RESERVED:
            return "paid for with its reservation"
        if self.cost_basis is CostBasis.UNKNOWN:
            return "an unknown price"
        lowest = min(self.usd_per_hour_by_zone.values(), default=self.price_usd_per_hour)
        if lowest < self.price_usd_per_hour:
            return f"${lowest:.4f} to ${self.price_usd_per_hour:.4f}/h, by zone"
        return f"{'up to ' if self.is_price_limit else ''}${self.price_usd_per_hour:.4f}/h"


class IntentKind(StrEnum):
    """Why Relaunch stops a task."""

    INTERRUPTION = "interruption"
    MOVE = "move"  # its market policy leaves on-demand for spot
    CANCEL = "cancel"
    TIME_OUT = "time-out"
    PLACEMENT_WITHDRAWN = "placement-withdrawn"
    START_WITHDRAWN = "start-withdrawn"


@dataclass(frozen=True, slots=True)
class StopIntent:
    """The intent to stop a task, saved before the target is asked to stop it."""

    kind: IntentKind
    at: datetime
    detail: str


@dataclass(frozen=True, slots=True)
class Handover:
    """The task trains on, although it is to leave its machine, until the next machine is ready.

    `reason` is what EC2 said. `stop_by` is the last moment at which the task is stopped so that it can save before the
    interruption; None after a rebalance recommendation, which announces none. `is_move`: EC2 said nothing, the market
    policy of the job leaves on-demand for spot, for `reason`.
    """

    since: datetime
    reason: str
    stop_by: datetime | None = None
    is_move: bool = False


class StopKind(StrEnum):
    """The classification of a stop."""

    SUCCESS = "success"
    INTERRUPTION = "interruption"
    MOVED = "moved"
    HOST_LOST = "host-lost"
    OUT_OF_MEMORY = "out-of-memory"
    IMAGE = "image"
    USER_ERROR = "user-error"
    CANCELLED = "cancelled"
    TIME_OUT = "time-out"
    NO_CAPACITY = "no-capacity"
    NOT_STARTED = "not-started"
    SIDECAR = "sidecar"  # ECS stopped the task because another essential container had ended
    STARTS_NOWHERE = "starts-nowhere"  # no instance starts it: the error says so, or is the same on several
    START_REFUSED = "start-refused"  # no instance starts it before somebody grants something
    UNKNOWN_START = "unknown-start"  # it did not start, for an error that is not known
    MACHINE_FAULT = "machine-fault"  # a GPU failed, or the exit code is one of the machine by the definition
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Stop:
    """How a task ended: the classification, and what the target reported.

    `error` is the name of the error in the stopped reason (`CannotStartContainerError`…), empty if it has none.
    """

    kind: StopKind
    at: datetime
    stop_code: str = ""
    stopped_reason: str = ""
    exit_code: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class HeldStop:
    """A stop whose verdict waits for what EC2 may tell of the instance (core.lifecycle.verdicts).

    `program_ended_at` is when the containers had ended; `if_host_ended` and `if_warned` are what the stop means if EC2
    had ended the instance by then, or warned of that.
    """

    stop: Stop
    program_ended_at: datetime
    if_host_ended: StopKind
    if_warned: StopKind


@dataclass(frozen=True, slots=True)
class FailedStart:
    """A task that did not start on the instance it was placed on.

    `instance` is the EC2 instance ID, or the name of the node where that is all that is known. `error` is that of the
    stop; `is_unknown`: nobody knows whether the instance is at fault.
    """

    instance: str
    error: str
    is_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to run the job, numbered from 1.

    `closed_placements` are its latest earlier placements, newest last. `task_version` is the version of the last
    observation of its task; older ones are ignored. `node` is the name of its node in the target. `host_ended_at` is
    when EC2 reported that the instance shuts down; `missing` is when the target first and last did not know the
    task, if it did not know it at any look between them. `handover` is set if it trains on until the next machine is
    ready. `ended_first` is the essential container for whose end ECS stops the task, empty if that is not known.
    `held_since` is when its task was first seen as stopped, if the verdict waits for what EC2 may tell of the instance,
    and `held` that stop until there is a verdict.
    """

    number: int
    placement: Placement
    closed_placements: tuple[Placement, ...] = ()
    task_status: str = ""
    task_version: int = 0
    node: str | None = None
    instance_id: str | None = None
    zone: str | None = None
    started_at: datetime | None = None
    warned_at: datetime | None = None
    host_ended_at: datetime | None = None
    missing: tuple[datetime, datetime] | None = None
    handover: Handover | None = None
    ended_first: str = ""
    held_since: datetime | None = None
    held: HeldStop | None = None
    intent: StopIntent | None = None
    stop: Stop | None = None

    @property
    def task_id(self) -> str | None:
        """Return the name of the task of the current placement in the target."""
        return self.placement.task_id

    @property
    def is_number_used(self) -> bool:
        """Return whether the number is used up: the task started, or it is unknown whether it did."""
        return self.started_at is not None or self.placement.is_lost


@dataclass(frozen=True, slots=True)
class Job:
    """One accepted request to train.

    `definition` and `revision` are fixed when the job is accepted. `images` maps containers to the images, by digest,
    that replace those of the revision. `version` is the version of the item, on which every write is conditional.
    `wake_at` is set for every open job. `run_seconds` is the running time of the tasks of ended attempts, `cost_usd`
    their cost, in which an unknown price counts as 0 and an upper limit as the price (`cost_basis`). `has_slot`: the
    job counts against `max_running_jobs`. `interrupted_at` is the start of the current interruption: the time of the
    warning if there was one. `failed_starts` are those since a task of the job last ran. `own_failures` are the
    launches since then that found no capacity while the job was kept from instances, or ended with an error that
    nobody knows; no other job avoids their offerings.
    `held_back_seconds` is how long it has waited since it first ran for what is no capacity (`held_back_time`), in
    waits that are over, and `held_back_before_seconds` until then; `queued_seconds` and `queued_before_seconds` are the
    parts of both that it waited behind others. `machine_id` is the machine of our own that it claims for its next
    placement, and `machine_requests` how many were requested for it.
    `failed_machines` did not become ready since a task of the job last ran; `refused_since` is since when EC2 refuses
    its requests for a reason that other offerings would not change. `refusals` are the calls that were refused, since
    it last had a task, for what somebody has to grant or mend (core.lifecycle.refusal_waits). `useless_machines_at` is
    when it lost each of the latest machines that never ran a task of it, which bounds how many it gets in a day
    (core.lifecycle.restart_policy), and `useless_machines_usd` what those cost that were requested for it. `ran_on`
    is the machine of our own on which its last task ran that has stopped, empty for one of an earlier version.
    `resume_from` are the jobs that it retries, the latest first: it resumes from the first of them with a checkpoint,
    whose step is `first_step`, 0 if it began from the beginning, None before its first launch. `kept_seconds` is the
    running time, before the current attempt, whose work a checkpoint keeps (core.jobs.progress). `measured_starts` and
    `start_seconds` are what the attempts before the current one say of its overheads, and `checkpoint_seconds` what
    they and the looks at the current one do (core.jobs.progress); `asked_at` is since when it waited for the machine
    of its current placement, None if it did not. `market_reason` is why its market policy launched it where it is, or
    leaves it there, when it last looked; empty if none chose. `early_failures` are the latest failures in a row soon
    after a start. `faulty_machines` are the latest machines in a row that failed under it within an hour, by instance
    ID, or by the name of the node where that is all that is known (core.lifecycle.restart_policy). `judged_attempt` is
    the latest attempt of which it is known whether it gained a step, `attempts_without_progress` how many of the latest
    in a row did not, and `saving_seconds` how long one that did ran until it had saved, 0 if that is not known
    (core.lifecycle.restart_policy). `moved_at` is when its task was stopped for each of the latest moves to spot
    (core.lifecycle.moves). `wait_told_at` is when the last alert said that it waits for long
    (core.lifecycle.long_waits).
    """

    job_id: str
    definition: JobDefinition
    trigger: TriggerFacts
    revision: Revision
    accepted_at: datetime
    inputs: Mapping[str, str] = field(default_factory=dict)
    state: JobState = JobState.WAITING
    state_since: datetime | None = None
    reason: str = ""
    waiting: Waiting | None = None
    image: tuple[str, str] | None = None
    images: Mapping[str, str] = field(default_factory=dict)
    wake_at: datetime | None = None
    attempt: Attempt | None = None
    has_slot: bool = False
    failures: int = 0
    interruptions: int = 0
    first_started_at: datetime | None = None
    run_seconds: float = 0.0
    cost_usd: float = 0.0
    cost_basis: CostBasis = CostBasis.PRICE
    cancel_requested: str = ""
    pending: tuple[Effect, ...] = ()
    ended_at: datetime | None = None
    interrupted_at: datetime | None = None
    failed_starts: tuple[FailedStart, ...] = ()
    own_failures: tuple[CapacityFailure, ...] = ()
    held_back_seconds: float = 0.0
    held_back_before_seconds: float = 0.0
    queued_seconds: float = 0.0
    queued_before_seconds: float = 0.0
    machine_id: str = ""
    machine_requests: int = 0
    failed_machines: int = 0
    refused_since: datetime | None = None
    refusals: Mapping[RefusedCall, Refusal] = field(default_factory=dict, hash=False)
    useless_machines_at: tuple[datetime, ...] = ()
    useless_machines_usd: float = 0.0
    ran_on: str = ""
    resume_from: tuple[ResumePoint, ...] = ()
    first_step: int | None = None
    kept_seconds: float = 0.0
    measured_starts: int = 0
    start_seconds: float = 0.0
    checkpoint_seconds: float = 0.0
    asked_at: datetime | None = None
    market_reason: str = ""
    early_failures: int = 0
    faulty_machines: tuple[str, ...] = ()
    judged_attempt: int = 0
    attempts_without_progress: int = 0
    saving_seconds: float = 0.0
    moved_at: tuple[datetime, ...] = ()
    wait_told_at: datetime | None = None
    version: int = 0

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
    def avoided_instances(self) -> tuple[str, ...]:
        """Return the EC2 instances on which it did not start, or that failed under it; its launches exclude them."""
        avoided = (*(each.instance for each in self.failed_starts), *self.faulty_machines)
        return tuple(dict.fromkeys(each for each in avoided if each.startswith("i-")))

    def run_time(self, now: datetime) -> timedelta:
        """Return the running time of the tasks, including the current one."""
        ended = timedelta(seconds=self.run_seconds)
        attempt = self.attempt
        if attempt is None or attempt.started_at is None or attempt.stop is not None:
            return ended
        return ended + (now - attempt.started_at)

    def held_back_time(self, now: datetime) -> timedelta:
        """Return how long the job has waited, since it first ran, for what is no capacity.

        That is for what somebody has to grant or mend, for the slot that it had until then, or for a place within the
        stack's limit on machines of its own.
        """
        ended = timedelta(seconds=self.held_back_seconds)
        return ended if self.first_started_at is None else ended + self._waited_now(now, HELD_BACK_BY)

    def held_back_in_all(self, now: datetime) -> timedelta:
        """Return how long the job has waited, since it was accepted, for what is no capacity: for its image, too."""
        ended = timedelta(seconds=self.held_back_before_seconds + self.held_back_seconds)
        return ended + self._waited_now(now, HELD_BACK_BY)

    def queued_time(self, now: datetime) -> timedelta:
        """Return how long the job has waited behind others of the stack since it first ran; until then in all."""
        ended = self.queued_before_seconds if self.first_started_at is None else self.queued_seconds
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
