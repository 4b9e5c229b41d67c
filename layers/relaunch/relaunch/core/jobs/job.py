"""A job, its attempts and their placement tries: the state the jobs table holds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.revisions.revision import Revision


class JobState(StrEnum):
    """Where a job stands; the last four are final."""

    WAITING = "WAITING"
    LAUNCHING = "LAUNCHING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMED_OUT = "TIMED_OUT"

    @property
    def is_final(self) -> bool:
        """Tell whether the job is over."""
        return self in FINAL_STATES


FINAL_STATES = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.TIMED_OUT})


class WaitReason(StrEnum):
    """What a WAITING job waits for."""

    LAUNCH = "launch"  # its message is in the attempts queue
    IMAGE = "image"
    SLOT = "slot"  # max_running_jobs of its definition, or of the stack
    CAPACITY = "capacity"  # every offering that satisfies it failed lately
    PRICE = "price"  # every offering that satisfies it is too dear right now
    BACKOFF = "backoff"  # a pause after a failure of the program


STACK_SLOT = "*"
"""The slot of the stack's own cap; every other slot has a definition's name."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a job waits for, since when, at most until when, in words for the user.

    `slot` says whose slot is waited for when the reason is SLOT: the definition's name, or STACK_SLOT.
    """

    reason: WaitReason
    since: datetime
    detail: str
    until: datetime | None = None
    slot: str = ""


class PlacementState(StrEnum):
    """How far a placement try came."""

    PENDING = "FROZEN"  # written down; RunTask may or may not have been sent
    PLACED = "PLACED"  # RunTask answered with a task
    CLOSED = "CLOSED"  # it will never have a task of its own that counts


@dataclass(frozen=True, slots=True)
class Placement:
    """One frozen set of launch parameters; sending it again with its client token is harmless.

    `placed_at` is when we heard of its task, which throttling can put off for long after `requested_at`.
    `revision_arn` is the derived revision it runs, None for the job's own. `neuron_devices` are the devices that this
    one lists; `takes_all_neuron` asks ECS itself for all of them, which Managed Instances know.
    `gpu_partition_size` is that of the chosen type, 1 for whole GPUs: a share is asked for accordingly.
    """

    number: int
    offering: OfferingKey
    capacity_provider: str
    price_usd_per_hour: float
    requested_at: datetime
    state: PlacementState = PlacementState.PENDING
    task_arn: str | None = None
    resume_uri: str | None = None
    outcome: str = ""
    is_lost: bool = False
    placed_at: datetime | None = None
    revision_arn: str | None = None
    neuron_devices: tuple[int, ...] = ()
    takes_all_neuron: bool = False
    gpu_partition_size: float = 1.0


class IntentKind(StrEnum):
    """Why we stopped a task: written down before StopTask, so that the stop is understood."""

    INTERRUPTION = "interruption"
    CANCEL = "cancel"
    TIME_OUT = "time-out"
    PLACEMENT_WITHDRAWN = "placement-withdrawn"
    START_WITHDRAWN = "start-withdrawn"


@dataclass(frozen=True, slots=True)
class StopIntent:
    """Our own intent to stop a task."""

    kind: IntentKind
    at: datetime
    detail: str


class StopKind(StrEnum):
    """What a stop was, as classified; every stop has exactly one."""

    SUCCESS = "success"
    INTERRUPTION = "interruption"
    HOST_LOST = "host-lost"
    OUT_OF_MEMORY = "out-of-memory"
    IMAGE = "image"
    USER_ERROR = "user-error"
    CANCELLED = "cancelled"
    TIME_OUT = "time-out"
    NO_CAPACITY = "no-capacity"
    NOT_STARTED = "not-started"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Stop:
    """How a task ended: ECS's own words beside our classification."""

    kind: StopKind
    at: datetime
    stop_code: str = ""
    stopped_reason: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a job that has its own task; numbered from 1.

    `closed_placements` keeps the latest earlier placement tries of this attempt, newest last.
    `task_version` is ECS's `detail.version`: older news about the task is ignored.
    `host_ended_at` is when EC2 said that the machine shuts down; `missing_since` when ECS first did not know the task.
    """

    number: int
    placement: Placement
    closed_placements: tuple[Placement, ...] = ()
    task_status: str = ""
    task_version: int = 0
    container_instance_arn: str | None = None
    instance_id: str | None = None
    zone: str | None = None
    started_at: datetime | None = None
    warned_at: datetime | None = None
    host_ended_at: datetime | None = None
    missing_since: datetime | None = None
    intent: StopIntent | None = None
    stop: Stop | None = None

    @property
    def task_arn(self) -> str | None:
        """Return the ARN of the task of the current placement try."""
        return self.placement.task_arn

    @property
    def is_spent(self) -> bool:
        """Tell whether its number is used up: by a task that started, or of which nobody knows whether it did."""
        return self.started_at is not None or self.placement.is_lost


@dataclass(frozen=True, slots=True)
class StopTask:
    """Stop a task; ECS shows `reason` as its `stoppedReason`."""

    task_arn: str
    reason: str
    kind: Literal["stop-task"] = "stop-task"


@dataclass(frozen=True, slots=True)
class RequestLaunch:
    """Send the job's id to the attempts queue, delayed by 0 to 900 seconds."""

    delay_seconds: int = 0
    kind: Literal["request-launch"] = "request-launch"


@dataclass(frozen=True, slots=True)
class RememberCapacity:
    """Let every job avoid an offering until then."""

    offering: OfferingKey
    reason: str
    until: datetime
    kind: Literal["remember-capacity"] = "remember-capacity"


@dataclass(frozen=True, slots=True)
class AdmitWaiting:
    """Request the launch of the job that has waited longest for a slot of the definition, and of the stack."""

    kind: Literal["admit-waiting"] = "admit-waiting"


Effect = StopTask | RequestLaunch | RememberCapacity | AdmitWaiting
"""What is still to be done after a save; each is harmless when done twice. `kind` tells them apart where stored."""


@dataclass(frozen=True, slots=True)
class TriggerFacts:
    """What started the job, for people and for the training's environment."""

    source: str
    identity: str
    summary: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Job:
    """One accepted request to train.

    `definition` and `revision` are frozen when the job is accepted. `images` maps containers to the images, named by
    digest, that they run instead of the revision's. `version` is the item's own version: every write is
    conditional on it. `wake_at` is set for every job that is not over. `run_seconds` sums the time tasks ran in ended
    attempts. `has_slot` tells whether the job counts against `max_running_jobs`. `interrupted_at` is since when it does
    not run because of an interruption, from the warning on if there was one.
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
    cancel_requested: str = ""
    pending: tuple[Effect, ...] = ()
    ended_at: datetime | None = None
    interrupted_at: datetime | None = None
    version: int = 0

    @property
    def current_attempt(self) -> Attempt:
        """Return the current attempt.

        Raises:
            LookupError: nothing was launched yet; the transition table lets no such job get here.
        """
        if self.attempt is None:
            raise LookupError(f"job {self.job_id} has no attempt yet")
        return self.attempt

    @property
    def started_by(self) -> str:
        """Return the `startedBy` of the current attempt's tasks: `<job>/<attempt>`."""
        return f"{self.job_id}/{self.attempt.number if self.attempt else 1}"

    def run_time(self, now: datetime) -> timedelta:
        """Return how long the job's tasks have run, the current one included."""
        ended = timedelta(seconds=self.run_seconds)
        attempt = self.attempt
        if attempt is None or attempt.started_at is None or attempt.stop is not None:
            return ended
        return ended + (now - attempt.started_at)


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One line of a job's timeline: a transition, or something worth knowing within a state."""

    at: datetime
    state: JobState
    event: str
    detail: str = ""
    attempt_number: int | None = None


@dataclass(frozen=True, slots=True)
class JobSummary:
    """What `relaunch ps` shows of a job."""

    job_id: str
    definition: str
    state: JobState
    accepted_at: datetime
    reason: str = ""
    waiting: Waiting | None = None
    attempt_number: int = 0
    offering: OfferingKey | None = None
    interruptions: int = 0
    failures: int = 0
    run_seconds: float = 0.0
    cost_usd: float = 0.0
    trigger: str = ""
    ended_at: datetime | None = None
