"""An attempt to run a job, the key from which a target knows whose task it has, its placements, and how it ended."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.state import CostBasis
from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.records import dataclass


class PlacementState(StrEnum):
    """The state of a placement."""

    PENDING = "PENDING"  # saved; the target may or may not have been asked to launch it
    PLACED = "PLACED"  # the target has its task
    CLOSED = "CLOSED"  # its task has stopped, or it will have none


@dataclass(frozen=True, slots=True)
class Rank:
    """One task of a job of several nodes: its machine of our own, and the task itself, empty until it is known."""

    machine_id: str
    instance_id: str
    task_id: str = ""


@dataclass(frozen=True, slots=True)
class Placement:
    """One set of launch parameters, which may be sent to the target repeatedly."""

    number: int
    offering: OfferingKey
    capacity_provider: str
    price_usd_per_hour: float
    """What the selection expected, 0 if unknown.

    Where the target chooses the zone it is the highest of `usd_per_hour_by_zone`; core.jobs.cost has the price of the
    zone that the task is in.
    """
    requested_at: datetime
    state: PlacementState = PlacementState.PENDING
    task_id: str | None = None
    resume_uri: str | None = None
    outcome: str = ""
    is_lost: bool = False
    """Nobody knows whether its task started."""
    placed_at: datetime | None = None
    """When the target had its task, or when that became known: throttling may delay it long after `requested_at`."""
    revision_arn: str | None = None
    """The derived revision that it runs; None for the revision of the job."""
    neuron_devices: tuple[int, ...] = ()
    """The devices that the revision lists."""
    takes_all_neuron: bool = False
    """All Neuron devices are requested from ECS, as Managed Instances support."""
    gpu_partition_size: float = 1.0
    """That of the instance type; 1 for whole GPUs."""
    is_managed: bool = False
    """The capacity provider is one of ECS Managed Instances."""
    is_price_limit: bool = False
    """The price is an upper limit of a spot price."""
    instance_id: str = ""
    """That of the machine of our own that it must run on; empty for one by a capacity provider."""
    machine_id: str = ""
    """That of the machine of our own that it must run on; empty for one by a capacity provider."""
    usd_per_hour_by_zone: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Empty in a placement of an earlier version."""
    limit_usd_per_hour: float = 0.0
    """The upper limit in a zone without a price; 0 if unknown."""
    senders: int = 1
    """The number of functions that send it, 2 for two or more.

    A number is short, and an attempt costs one write unit as long as it has less than a KiB.
    """
    followers: tuple[Rank, ...] = ()
    """The ranks from 1 on of a job of several nodes; rank 0 is what the placement itself says."""
    master_address: str = ""
    """The private IPv4 address at which the ranks of a job of several nodes meet: that of rank 0."""
    placed_ids: tuple[str, ...] = ()
    """The tasks of its first ranks that the target named while others were not placed yet."""

    @property
    def ranks(self) -> tuple[Rank, ...]:
        """Return all ranks; one of a job of a single node."""
        return (Rank(self.machine_id, self.instance_id, self.task_id or ""), *self.followers)

    @property
    def task_ids(self) -> tuple[str, ...]:
        """Return the names of all its tasks in the target, as far as they are known."""
        return tuple(each.task_id for each in self.ranks if each.task_id)

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
            fee = f", and ${self.price_usd_per_hour:.4f}/h for its management" if self.price_usd_per_hour else ""
            return f"paid for with its reservation{fee}"
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
    BUDGET = "budget"  # a budget has no room for another hour
    CANCEL = "cancel"
    TIME_OUT = "time-out"
    RANK_ENDED = "rank-ended"  # the others of its ranks cannot go on without it
    PLACEMENT_WITHDRAWN = "placement-withdrawn"
    START_WITHDRAWN = "start-withdrawn"
    START_REFUSED = "start-refused"  # the target does not start what it has taken before somebody grants something
    STARTS_NOWHERE = "starts-nowhere"  # the target will never start what it has taken


@dataclass(frozen=True, slots=True)
class StopIntent:
    """The intent to stop a task, saved before the target is asked to stop it."""

    kind: IntentKind
    at: datetime
    detail: str


@dataclass(frozen=True, slots=True)
class Handover:
    """The task trains on, although it is to leave its machine, until the next machine is ready."""

    since: datetime
    reason: str
    """What EC2 said, or why the market policy leaves on-demand for spot."""
    stop_by: datetime | None = None
    """The last moment at which the task is stopped so that it can save before the interruption.

    None after a rebalance recommendation, which announces none.
    """
    is_move: bool = False
    """EC2 said nothing: the market policy of the job leaves on-demand for spot."""


class StopKind(StrEnum):
    """The classification of a stop."""

    SUCCESS = "success"
    INTERRUPTION = "interruption"
    MOVED = "moved"
    OVER_BUDGET = "over-budget"
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
    """How a task ended: the classification, and what the target reported."""

    kind: StopKind
    at: datetime
    stop_code: str = ""
    stopped_reason: str = ""
    exit_code: int | None = None
    error: str = ""
    """The name of the error in the stopped reason (`CannotStartContainerError`…); empty if it has none."""
    was_refused: bool = False
    """Whether its start was refused until somebody grants something, also if it was to be stopped anyway."""


@dataclass(frozen=True, slots=True)
class HeldStop:
    """A stop whose verdict waits for what EC2 may tell of the instance (core.lifecycle.verdicts)."""

    stop: Stop
    program_ended_at: datetime
    """When the containers had ended."""
    if_host_ended: StopKind
    """What the stop means if EC2 had ended the instance by then."""
    if_warned: StopKind
    """What the stop means if EC2 had warned of that by then."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to run the job, numbered from 1."""

    number: int
    placement: Placement
    closed_placements: tuple[Placement, ...] = ()
    """Its latest earlier placements, newest last."""
    task_status: str = ""
    task_version: int = 0
    """The version of the last observation of its task; older ones are ignored."""
    node: str | None = None
    """The name of its node in the target."""
    instance_id: str | None = None
    zone: str | None = None
    started_at: datetime | None = None
    pulled: tuple[datetime, datetime] | None = None
    """When the pull of its images began and ended; None if the target does not tell it."""
    warned_at: datetime | None = None
    host_ended_at: datetime | None = None
    """When EC2 reported that the instance shuts down."""
    missing: tuple[datetime, datetime] | None = None
    """When the target first and last did not know the task, if it did not know it at any look between them."""
    missing_ranks: tuple[int, ...] = ()
    """Those of its ranks that the target did not know at any look between them; empty for one of a single node."""
    refused_since: datetime | None = None
    """Since when the target, which has taken the task, is known to refuse its start; None if it does not."""
    handover: Handover | None = None
    """Set if it trains on until the next machine is ready."""
    ended_first: str = ""
    """The essential container for whose end ECS stops the task; empty if that is not known."""
    held_since: datetime | None = None
    """When its task was first seen as stopped, if the verdict waits for what EC2 may tell of the instance."""
    held: HeldStop | None = None
    """That stop, until there is a verdict."""
    program_ended_at: datetime | None = None
    """When its containers had ended, if the target says so; its task is seen as stopped up to minutes later."""
    intent: StopIntent | None = None
    stop_sent_at: datetime | None = None
    """When the target first took the stop, if that was later than it was decided, or the stop was repeated."""
    stop: Stop | None = None
    suspended_since: datetime | None = None
    """Since when a queue of the cluster is known to hold its task back, which has never started; None if none does."""
    cluster: str = ""
    """What identifies the cluster that its task was seen in; empty where the names of tasks do (TaskTarget)."""
    live_ranks: tuple[int, ...] = ()
    """Those that had not stopped when its tasks were last seen; empty for one of a single node."""
    lost_instances: tuple[str, ...] = ()
    """Those of its ranks that EC2 has ended; empty for one of a single node."""
    last_host_ended_at: datetime | None = None
    """When EC2 ended the last of these; None for one of a single node."""
    leaves_survivors: bool = False
    """It is decided that those machines of its ranks that live are not kept (core.lifecycle.survivors)."""

    @property
    def task_id(self) -> str | None:
        """Return the name of the task of the current placement in the target; that of rank 0 of several."""
        return self.placement.task_id

    @property
    def task_ids(self) -> tuple[str, ...]:
        """Return the names of all tasks of the current placement in the target, in the order of their ranks."""
        return self.placement.task_ids

    def run_time(self, now: datetime) -> timedelta | None:
        """Return how long its program ran, or has run until `now`; None if it has not started, or nobody says that."""
        if self.started_at is None:
            return None
        ended_at = self.stop.at if self.stop is not None else self.program_ended_at
        # Its end is seen, and its verdict made, up to minutes after its program. ECS's clock may be ahead.
        return now - self.started_at if ended_at is None else max(ended_at - self.started_at, timedelta(0))

    @property
    def is_number_used(self) -> bool:
        """Return whether the number is used up: the task started, or it is unknown whether it did."""
        return self.started_at is not None or self.placement.is_lost


@dataclass(frozen=True, slots=True, order=True)
class AttemptKey:
    """A job and the number of one of its attempts; an attempt may have several tasks, one per placement."""

    job_id: str
    attempt_number: int

    def __str__(self) -> str:
        """Return `<job>/<attempt>`."""
        return f"{self.job_id}/{self.attempt_number}"
