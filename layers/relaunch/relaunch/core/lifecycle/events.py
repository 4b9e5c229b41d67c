"""The events of the transition table."""

from dataclasses import field
from datetime import datetime

from relaunch.core.jobs.budgets import Budget
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.core.jobs.state import NotedProgress, WaitReason
from relaunch.core.launches.derived_revision import PreparedRevision
from relaunch.core.launches.launch import HostObservation, LaunchOutcome, Node, TaskObservation
from relaunch.core.machines.charges import Charge, DayCost
from relaunch.core.machines.decision import MachineDecision
from relaunch.core.machines.machine import Consequence, Machine
from relaunch.core.offerings.offering import Offering, OfferingKey
from relaunch.core.records import dataclass
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
    """Selection kept at least one offering; `offering` is the first.

    `resume_uri` is the newest complete checkpoint of the job, None if there is none. `prepared` is the revision to run.
    `machine` is the machine of our own to run it on, which is ready; the selection was saved when it was claimed.
    `newest` is the checkpoint of the job itself, which says what its last attempt kept. `unusable` are newer ones that
    were passed over, each with the reason. `budgets` are those of which an hour is reserved; none with a `machine`,
    whose claim did.
    """

    offering: Offering
    selection: Selection | None
    resume_uri: str | None
    prepared: PreparedRevision = field(default_factory=PreparedRevision)
    machine: Machine | None = None
    newest: SavedCheckpoint | None = None
    unusable: tuple[str, ...] = ()
    budgets: tuple[Budget, ...] = ()
    followers: tuple[Machine, ...] = ()
    """The machines of the ranks from 1 on of a job of several nodes."""
    master_address: str = ""
    """The private IPv4 address at which those ranks meet."""


@dataclass(frozen=True, slots=True)
class NothingKept:
    """Selection kept no offering; `message` names the filter that removed the last one.

    `waits_for` is None if nothing will ever satisfy the job. MARKET: its market policy waits, for the reason `message`.
    REFUSED: machines are launched, and do not become ready. `retry_at` is when that may be over, if it is known.
    """

    selection: Selection
    message: str
    waits_for: WaitReason | None
    retry_at: datetime | None


@dataclass(frozen=True, slots=True)
class LaunchImpossible:
    """The revision to run on the selected offering cannot be made; the error is permanent."""

    reason: str
    machines: tuple[Machine, ...] = ()
    """Those that the job gives up: it pays for each from its launch on. So with the events that have this field."""


@dataclass(frozen=True, slots=True)
class LaunchNotGranted:
    """What the launch needs is refused until somebody grants or mends something: the revision cannot be registered."""

    reason: str
    machines: tuple[Machine, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckpointsUnreadable:
    """The checkpoints of the job cannot be read, or could not be if there were any; the error is permanent."""

    reason: str
    machines: tuple[Machine, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckpointsRead:
    """It was read what is saved after an attempt that may have gained no step; `newest` is the newest checkpoint."""

    newest: SavedCheckpoint | None


@dataclass(frozen=True, slots=True)
class ProgressNoted:
    """The newest checkpoint of a running job was looked for, and says how far its training is."""

    noted: NotedProgress


@dataclass(frozen=True, slots=True)
class MachineClaimed:
    """A machine of our own was chosen for the next placement; `is_new`: it is requested for the job.

    `decision` is saved with the job. `detail` says which machine, in words. `budgets` are those of the job, of which an
    hour is reserved.
    """

    decision: MachineDecision
    detail: str
    selection: Selection | None = None
    is_new: bool = False
    budgets: tuple[Budget, ...] = ()
    others: tuple[MachineDecision, ...] = ()
    """The machines of the ranks from 1 on of a job of several nodes, saved with the first one."""
    ranks: tuple[str, ...] = ()
    """The machines of all ranks, if it has some of them already; else they are those that are saved."""

    @property
    def decisions(self) -> tuple[MachineDecision, ...]:
        """Return what is saved of all machines, in the order of the ranks."""
        return (self.decision, *self.others)


@dataclass(frozen=True, slots=True)
class MachineAwaited:
    """The machine that the job claims, or one of several, is not ready yet; `detail` says how far it is.

    `machines` are what they are then: the job pays for each from its launch on. `until` is when some of them are not
    kept for the others any longer; None if all were requested together.
    """

    detail: str
    machines: tuple[Machine, ...] = ()
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class MachineLost:
    """The machine that the job claims will not be ready.

    `refusal` is set if EC2 refused the request; else there was an instance, or may have been. `machines` are what those
    of the job are then, if that is known: what they have cost stays with the job until it is charged.
    """

    machine_id: str
    refusal: Consequence | None
    reason: str
    machines: tuple[Machine, ...] = ()
    offerings: tuple[OfferingKey, ...] = ()
    """Those that the job alone avoids for some minutes: EC2 did not have as many at once as it needs."""


@dataclass(frozen=True, slots=True)
class SurvivorsLeft:
    """Those machines of a job of several nodes that live are given back with those that are lost, for `reason`."""

    reason: str


@dataclass(frozen=True, slots=True)
class NextMachineReady:
    """The machine for the next placement is ready, while the task trains on on the one that it is to leave."""

    machine_id: str


@dataclass(frozen=True, slots=True)
class MoveDeclined:
    """The market policy leaves the task on on-demand, for `reason`; it decides anew at `until`, if that is known.

    `checkpoint_seconds` is the longest time between two of its checkpoints that is known by now, 0 if none was looked
    for.
    """

    reason: str
    until: datetime | None
    checkpoint_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class MachineLimitReached:
    """A limit of the stack on machines of its own is reached: `machines`, `usd_per_hour`, or `starting`.

    `detail` says of `starting` which machines start (core.machines.starts).
    """

    limit: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class MachineCharged:
    """A machine of our own is gone, and this is what the job pays of it: in all, and on each day.

    `offering` is what EC2 launched, None if nobody knows.
    """

    charge: Charge
    days: tuple[DayCost, ...] = ()
    offering: OfferingKey | None = None


@dataclass(frozen=True, slots=True)
class MachineLeft:
    """The job has left a machine, which has cost it something else by then than it knew."""

    machine: Machine


@dataclass(frozen=True, slots=True)
class SlotDenied:
    """A limit on running jobs is reached; `slot` is the definition's name, or STACK_SLOT.

    With a `holder` it is the name of a concurrency group, which this job holds.
    """

    slot: str
    limit: int
    holder: str = ""
    machines: tuple[Machine, ...] = ()


@dataclass(frozen=True, slots=True)
class BudgetDenied:
    """A budget has no room for an hour of what was selected."""

    reason: str


@dataclass(frozen=True, slots=True)
class BudgetsRead:
    """These are the budgets of a running job whose lease is to be renewed.

    `machines` are those that it has: its share of one that others have left is larger than when it claimed that.
    """

    budgets: tuple[Budget, ...]
    machines: tuple[Machine, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchRepeated:
    """Another function than the one that chose a placement is about to send it."""

    attempt_number: int
    placement_number: int


@dataclass(frozen=True, slots=True)
class LaunchAnswered:
    """The target was asked to launch a placement; `outcome` is its answer.

    `is_unused`: its machine was requested for a task of the family, and has had none.
    """

    attempt_number: int
    placement_number: int
    outcome: LaunchOutcome
    is_unused: bool = False


@dataclass(frozen=True, slots=True)
class PlacementExpired:
    """A pending placement has no task, and must not be launched any more; `reason` says why.

    `keeps_machine`: that says nothing of its machine of our own, on which the next placement may be.
    """

    attempt_number: int
    placement_number: int
    reason: str = "never sent"
    keeps_machine: bool = False


@dataclass(frozen=True, slots=True)
class TaskSeen:
    """The target reported a task of the job; `node` is set if its node was looked up.

    `host` is what EC2 said of its instance, None if it was not asked, or did not answer.
    """

    observation: TaskObservation
    node: Node | None = None
    host: HostObservation | None = None


@dataclass(frozen=True, slots=True)
class TaskMissing:
    """The target does not know the task: it stopped more than an hour ago, or is not visible yet.

    `cluster` is what was asked (TaskTarget.identify). `others` are those tasks of several that it knows, as one, if
    they tell how all of them ended, `ranks` those that it does not. `is_part_live`: one that it knows
    has not stopped.
    """

    task_id: str
    cluster: str = ""
    others: TaskObservation | None = None
    ranks: tuple[int, ...] = ()
    is_part_live: bool = False


@dataclass(frozen=True, slots=True)
class HostWarned:
    """EC2 will interrupt the instance: in about two minutes, or with its Capacity Block, from `ends_at` on.

    `task_id` is set if the task was found by the target, not by the stored link from the instance. `is_rebalance`: EC2
    recommended to rebalance, and the stack takes that for a warning. `cause` is why the instance ends if that is
    neither the spot market nor a Capacity Block: Relaunch itself ends it, or AWS retires it.
    """

    instance_id: str
    at: datetime
    task_id: str | None = None
    is_rebalance: bool = False
    ends_at: datetime | None = None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class HostEnded:
    """The instance is shutting down, stopped or terminated."""

    instance_id: str
    instance_state: str
    at: datetime


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """Cancellation of the job was requested."""

    reason: str


@dataclass(frozen=True, slots=True)
class TaskGivenUp:
    """Somebody says that the task, whose stop nothing confirms, is to be taken for lost; `reason` names who."""

    reason: str


@dataclass(frozen=True, slots=True)
class TimePassed:
    """The job's `wake_at` is reached.

    `is_described`: the target was asked just now and described the task, which had not stopped. `host` is what is known
    about the instance of a task whose verdict waits; None if that was not looked up. `is_partial`: it said that the
    task holds nodes for some of its pods and finds none for others.
    """

    is_described: bool = False
    host: HostObservation | None = None
    is_partial: bool = False


JobEvent = (
    ImageArrived
    | OfferingChosen
    | NothingKept
    | LaunchImpossible
    | LaunchNotGranted
    | CheckpointsUnreadable
    | CheckpointsRead
    | ProgressNoted
    | MachineClaimed
    | MachineAwaited
    | MachineLost
    | SurvivorsLeft
    | NextMachineReady
    | MoveDeclined
    | MachineLimitReached
    | MachineCharged
    | MachineLeft
    | SlotDenied
    | BudgetDenied
    | BudgetsRead
    | LaunchRepeated
    | LaunchAnswered
    | PlacementExpired
    | TaskSeen
    | TaskMissing
    | HostWarned
    | HostEnded
    | CancelAsked
    | TaskGivenUp
    | TimePassed
)
