"""The events of the transition table of machines."""

from datetime import datetime
from enum import StrEnum

from relaunch.core.machines.machine import Claim, Consequence, Resources
from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.records import dataclass


class RefusalKind(StrEnum):
    """What an error of CreateFleet or RunInstances means; the adapter maps EC2's codes to it."""

    NO_CAPACITY = "no-capacity"  # none of the type in the zone now, with this purchase option
    UNSUPPORTED = "unsupported"  # the type is not offered in the zone now
    PRICE = "price"  # a price limit, or a full reservation
    SUBNET_FULL = "subnet-full"  # the subnet has no free address
    QUOTA = "quota"  # the vCPU quota of the family and purchase option
    ACCOUNT_LIMIT = "account-limit"  # another limit, or an account that is blocked or not verified
    CONFIGURATION = "configuration"  # the request, the launch template, or the image is wrong
    NOT_PERMITTED = "not-permitted"  # an IAM permission is missing
    NO_SPOT_ROLE = "no-spot-role"  # the service-linked role of EC2 Spot is missing
    THROTTLED = "throttled"  # too many requests
    UNKNOWN = "unknown"  # a code that is not documented


@dataclass(frozen=True, slots=True)
class Refusal:
    """One error of CreateFleet or RunInstances; `offering` is the override it is about, None if EC2 did not echo it."""

    kind: RefusalKind
    code: str
    message: str = ""
    offering: OfferingKey | None = None


@dataclass(frozen=True, slots=True)
class InstanceLaunched:
    """EC2 launched the instance; other overrides may have been refused on the way.

    `at` is when, by EC2's word; None: just now. `others` are the other instances of a request for several. `is_part`:
    it launched fewer than the request is for, of which none is used.
    """

    instance_id: str
    offering: OfferingKey
    refusals: tuple[Refusal, ...] = ()
    at: datetime | None = None
    others: tuple[str, ...] = ()
    is_part: bool = False


@dataclass(frozen=True, slots=True)
class FleetRefused:
    """EC2 launched nothing, and will not for this client token.

    `is_raised`: the call failed as a whole, which says nothing about an earlier one with the token.
    """

    refusals: tuple[Refusal, ...]
    is_raised: bool = False


@dataclass(frozen=True, slots=True)
class FleetDeferred:
    """EC2 throttled the request as a whole: nothing was launched, and the same request is sent again later."""

    reason: str


@dataclass(frozen=True, slots=True)
class FleetUncertain:
    """A time-out, a server error, an answer without content, or another request with the same client token.

    An instance may have been launched: it is looked for by its tags, and the same request is sent again.
    """

    reason: str


FleetAnswer = InstanceLaunched | FleetRefused | FleetDeferred | FleetUncertain


@dataclass(frozen=True, slots=True)
class FleetAsked:
    """EC2 is about to be asked for the machine, by CreateFleet or RunInstances."""


@dataclass(frozen=True, slots=True)
class FleetAnswered:
    """EC2 was asked for the machine, or its instance was found by its tags; `answer` is the result."""

    answer: FleetAnswer


@dataclass(frozen=True, slots=True)
class RequestExpired:
    """The request is not sent any more, and no instance has the tag of the machine; `reason` says why.

    `consequence` is what its jobs do if the machine was not of no use: None counts as a machine that failed.
    """

    reason: str
    consequence: Consequence | None = None


class InstanceState(StrEnum):
    """EC2's states of an instance ("Amazon EC2 instance state changes", EC2 User Guide)."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    SHUTTING_DOWN = "shutting-down"
    TERMINATED = "terminated"

    @property
    def is_alive(self) -> bool:
        """Return whether the instance may run tasks."""
        return self in (InstanceState.PENDING, InstanceState.RUNNING)


@dataclass(frozen=True, slots=True)
class InstanceObservation:
    """An instance as EC2 describes it; `machine_id` is that of its tag, empty without one."""

    instance_id: str
    state: InstanceState
    machine_id: str = ""
    offering: OfferingKey | None = None
    launched_at: datetime | None = None
    state_reason: str = ""


@dataclass(frozen=True, slots=True)
class InstanceSeen:
    """EC2 described the instance, or sent its state change; `at` is when."""

    observation: InstanceObservation
    at: datetime


@dataclass(frozen=True, slots=True)
class InstanceMissing:
    """EC2 does not know the instance: it ended over an hour ago, or is not visible yet."""


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """The cluster shows the machine as a node with these registered resources.

    `is_active`: it takes tasks. `is_connected`: its agent is connected, without which no task is placed there.
    `is_draining`: it has registered, and takes no tasks any more. `boot` is what it reports of its boot.
    """

    node: str
    registered: Resources
    is_active: bool
    at: datetime
    is_connected: bool = True
    is_draining: bool = False
    boot: str = ""


class AgentState(StrEnum):
    """Whether an ECS agent is connected, and what it means that it is not."""

    CONNECTED = "connected"
    AWAY = "away"
    AWAY_WITH_MOST = "away with most"
    """So are most agents of the cluster, but those are so few that their hosts may hang."""
    OUTAGE = "outage"
    """So are most agents of the cluster, which says nothing of their hosts."""


@dataclass(frozen=True, slots=True)
class AgentSeen:
    """The cluster was looked at: whether the ECS agent of the machine is connected.

    `is_impaired`: EC2's status checks of the instance fail. `saved_at` is when a task of the machine last finished a
    checkpoint. Both are looked up once the agent has been away for as long as they matter.
    """

    agent: AgentState
    is_impaired: bool = False
    saved_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MachineWarned:
    """EC2 will interrupt the machine in about two minutes; `is_rebalance`: it may, and the stack does not wait.

    `cause` is why it ends if that is no interruption: EC2 bills the time until then, also in the first hour.
    """

    at: datetime
    is_rebalance: bool = False
    cause: str = ""


@dataclass(frozen=True, slots=True)
class ClaimAsked:
    """A job asks for room on the machine."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class ClaimReleased:
    """A job does not need the machine any more; `is_unusable`: its task could not start there.

    `is_unused`: no task of the job was placed there.
    """

    job_id: str
    detail: str = ""
    is_unusable: bool = False
    is_unused: bool = False


@dataclass(frozen=True, slots=True)
class MachineAbandoned:
    """The task of a job lives on on the machine, which does not confirm its stop; `detail` says so."""

    job_id: str
    detail: str


@dataclass(frozen=True, slots=True)
class MachineDue:
    """The `wake_at` of the machine is reached."""


MachineEvent = (
    FleetAsked
    | FleetAnswered
    | RequestExpired
    | InstanceSeen
    | InstanceMissing
    | NodeSeen
    | AgentSeen
    | MachineWarned
    | ClaimAsked
    | ClaimReleased
    | MachineAbandoned
    | MachineDue
)
