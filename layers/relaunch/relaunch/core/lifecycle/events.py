"""What can happen to a job: the events the transition table is written in."""

from dataclasses import dataclass, field
from datetime import datetime

from relaunch.core.launches.derived_revision import PreparedRevision
from relaunch.core.launches.launch import ContainerInstance, LaunchOutcome, TaskObservation
from relaunch.core.offerings.offering import Offering
from relaunch.core.revisions.images import FoundImage
from relaunch.core.selection.selection import Selection


@dataclass(frozen=True, slots=True)
class ImageArrived:
    """The image the job waits for is in its repository."""

    repository: str
    tag: str
    found: FoundImage


@dataclass(frozen=True, slots=True)
class OfferingChosen:
    """Selection kept at least one offering; the first one is to be tried.

    `resume_uri` is the newest complete checkpoint of the job, None when there is none. `prepared` says which revision
    is to run there.
    """

    offering: Offering
    selection: Selection
    resume_uri: str | None
    prepared: PreparedRevision = field(default_factory=PreparedRevision)


@dataclass(frozen=True, slots=True)
class NothingKept:
    """Selection kept nothing; `message` says which filter removed the last offering."""

    selection: Selection
    message: str
    is_permanent: bool
    is_price: bool
    retry_at: datetime | None


@dataclass(frozen=True, slots=True)
class LaunchImpossible:
    """An offering was chosen, but what is to run there cannot be made; trying again cannot help."""

    reason: str


@dataclass(frozen=True, slots=True)
class SlotDenied:
    """A cap on running jobs is reached; `slot` is the definition's name, or STACK_SLOT."""

    slot: str
    limit: int


@dataclass(frozen=True, slots=True)
class LaunchAnswered:
    """RunTask was sent for a frozen placement try of an attempt; this came of it."""

    attempt_number: int
    placement_number: int
    outcome: LaunchOutcome


@dataclass(frozen=True, slots=True)
class PlacementExpired:
    """A frozen try is too old to be sent, or was never sent and the job is cancelled; ECS knows no task of it.

    Or it can be sent no more, and `reason` says why.
    """

    attempt_number: int
    placement_number: int
    reason: str = "never sent"


@dataclass(frozen=True, slots=True)
class TaskSeen:
    """ECS says this of a task of the job; `instance` is set when its machine was looked up."""

    observation: TaskObservation
    instance: ContainerInstance | None = None


@dataclass(frozen=True, slots=True)
class TaskMissing:
    """ECS does not know the task: gone for more than an hour, or not visible yet."""

    task_arn: str


@dataclass(frozen=True, slots=True)
class HostWarned:
    """EC2 says that the machine will be taken away in about two minutes.

    `task_arn` is set when ECS itself said which task is on the machine, not our own note of it.
    """

    instance_id: str
    at: datetime
    task_arn: str | None = None


@dataclass(frozen=True, slots=True)
class HostEnded:
    """EC2 says that the machine shuts down or is gone."""

    instance_id: str
    instance_state: str
    at: datetime


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """Somebody wants the job to end."""

    reason: str


@dataclass(frozen=True, slots=True)
class TimePassed:
    """The job's `wake_at` is reached."""


JobEvent = (
    ImageArrived
    | OfferingChosen
    | NothingKept
    | LaunchImpossible
    | SlotDenied
    | LaunchAnswered
    | PlacementExpired
    | TaskSeen
    | TaskMissing
    | HostWarned
    | HostEnded
    | CancelAsked
    | TimePassed
)
