"""The state of the simulated region: Auto Scaling groups, instances, clusters, tasks, containers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from relaunch_local.ecs.clock import Timer
from relaunch_local.ecs.engine.settings import SOUND, AutoScalingGroup, HostPlan, InstanceShape, Purchase
from relaunch_local.ecs.processes.port import ProcessHandle
from relaunch_local.ecs.rules.gpu_requests import GpuRequest
from relaunch_local.ecs.rules.placement import Placement
from relaunch_local.ecs.rules.requirements import Requirement

JsonObject = dict[str, Any]


class LastStatus(StrEnum):
    """The last status of a task ("Amazon ECS task lifecycle")."""

    PROVISIONING = "PROVISIONING"
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    DEPROVISIONING = "DEPROVISIONING"
    STOPPED = "STOPPED"


class StopCode(StrEnum):
    """Why a task stopped (botocore's TaskStopCode)."""

    TASK_FAILED_TO_START = "TaskFailedToStart"
    ESSENTIAL_CONTAINER_EXITED = "EssentialContainerExited"
    USER_INITIATED = "UserInitiated"
    TERMINATION_NOTICE = "TerminationNotice"


class InstanceState(StrEnum):
    """EC2's instance states that the simulator uses."""

    PENDING = "pending"
    RUNNING = "running"
    SHUTTING_DOWN = "shutting-down"
    TERMINATED = "terminated"


class StateReason(StrEnum):
    """Why an instance ended (botocore's StateReason)."""

    USER_INITIATED = "Client.UserInitiatedShutdown"
    INSTANCE_INITIATED = "Client.InstanceInitiatedShutdown"
    SPOT_TERMINATION = "Server.SpotInstanceTermination"
    LAUNCH_ERROR = "Client.InternalError"
    SCHEDULED_STOP = "Server.ScheduledStop"


class ContainerInstanceStatus(StrEnum):
    """The status of a container instance."""

    ACTIVE = "ACTIVE"
    DRAINING = "DRAINING"
    INACTIVE = "INACTIVE"


@dataclass(slots=True, eq=False)
class Container:
    """A container of a task."""

    arn: str
    name: str
    definition: JsonObject
    essential: bool
    last_status: str = "PENDING"
    started_at: datetime | None = None
    ended_at: datetime | None = None
    """When its process ended, which ECS hears of once the agent is connected."""
    exit_code: int | None = None
    reason: str | None = None
    runtime_id: str | None = None
    gpu_ids: tuple[str, ...] = ()
    gpu_request: GpuRequest | None = None
    network_bindings: list[JsonObject] = field(default_factory=list)
    handle: ProcessHandle | None = None
    kill_timer: Timer | None = None

    @property
    def is_over(self) -> bool:
        """Whether the container has stopped."""
        return self.last_status == "STOPPED"


@dataclass(slots=True, eq=False)
class Task:
    """A task that RunTask has accepted."""

    arn: str
    task_id: str
    cluster: "Cluster"
    definition: JsonObject
    overrides: JsonObject
    requirement: Requirement
    placement: Placement
    containers: list[Container]
    group: str
    created_at: datetime
    launch_type: str = "EC2"
    provider: "CapacityProvider | None" = None
    started_by: str | None = None
    tags: list[JsonObject] = field(default_factory=list)
    network: JsonObject | None = None
    enable_execute_command: bool = False
    client_token: tuple[str, str] | None = None
    instance: "Instance | None" = None
    last_status: LastStatus = LastStatus.PROVISIONING
    desired_status: str = "RUNNING"
    listed_as: str = "RUNNING"
    """The desired status that ECS knows: what the agent has not reported yet changes nothing in a list."""
    version: int = 0
    stop_code: StopCode | None = None
    stopped_reason: str | None = None
    connectivity_at: datetime | None = None
    was_connected: bool | None = None
    """Whether the agent was connected when the task stopped; None before."""
    pull_started_at: datetime | None = None
    pull_stopped_at: datetime | None = None
    started_at: datetime | None = None
    stopping_at: datetime | None = None
    execution_stopped_at: datetime | None = None
    stopped_at: datetime | None = None
    provisioning_timer: Timer | None = None
    step_timer: Timer | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether the task has stopped."""
        return self.last_status is LastStatus.STOPPED

    @property
    def is_stopping(self) -> bool:
        """Whether the task is to stop or has stopped."""
        return self.desired_status == "STOPPED"


@dataclass(frozen=True, slots=True)
class FleetMember:
    """What an instance has of the fleet, or of the RunInstances, that launched it."""

    fleet_id: str
    """Empty for RunInstances."""
    client_token: str
    """EC2's own, of the fleet's RunInstances, not that of the caller of CreateFleet; or that of a RunInstances."""
    instance_profile_arn: str
    has_watchdog: bool


@dataclass(slots=True, eq=False)
class Instance:
    """An EC2 instance and, once registered, its container instance."""

    instance_id: str
    instance_type: str
    shape: InstanceShape
    purchase: Purchase
    zone: str
    image_id: str
    cluster: "Cluster"
    subnet_id: str
    launched_at: datetime
    attributes: dict[str, str]
    cpu: int
    """Free CPU units."""
    memory_mib: int
    """Free memory."""
    gpu_ids: tuple[str, ...]
    free_gpu_ids: list[str]
    gpu_shares: dict[str, dict[str, tuple[int, ...]]] = field(default_factory=dict)
    """The MiB of each container's share, by GPU id and task id."""
    group: "AutoScalingGroupState | None" = None
    provider: "CapacityProvider | None" = None
    fleet: FleetMember | None = None
    reservation_id: str = ""
    """The capacity reservation that it was launched into."""
    tags: dict[str, str] = field(default_factory=dict)
    private_address: str = ""
    """Its private IPv4 address, from its launch until it is terminated."""
    addressed_at: datetime | None = None
    """From when DescribeInstances tells the address; None: from its launch."""
    launched_with: str = ""
    """The first instance of its launch, whose `ReservationId` it has; empty: its own."""
    host: HostPlan = SOUND
    pulled_image: str = ""
    """The image that its user data pulls; it is there at `pulled_at`."""
    pulled_at: datetime | None = None
    visible_at: datetime | None = None
    """From when other calls know the instance; None: from its launch."""
    state: InstanceState = InstanceState.PENDING
    state_reason: StateReason | None = None
    ended_at: datetime | None = None
    """When it began to shut down."""
    warned_at: datetime | None = None
    """When EC2 first announced its interruption."""
    status: ContainerInstanceStatus | None = None
    arn: str = ""
    agent_connected: bool = False
    is_cut_off: bool = False
    """Whether its agent never connects again."""
    is_impaired: bool = False
    """Whether EC2's status check of the instance fails."""
    start_error: str = ""
    """The error with which every task fails to start here, empty for a sound instance."""
    booted_at: datetime | None = None
    registered_at: datetime | None = None
    terminated_at: datetime | None = None
    was_connected: bool = False
    """Whether the agent was connected when the instance began to shut down."""
    version: int = 0
    tcp_ports: set[int] = field(default_factory=set)
    udp_ports: set[int] = field(default_factory=set)
    next_dynamic_port: int = 32_768
    tasks: dict[str, Task] = field(default_factory=dict)
    idle_timer: Timer | None = None
    interruption_timer: Timer | None = None
    backlog: list[Callable[[], None]] = field(default_factory=list)
    """Reports of the agent while it was disconnected."""

    @property
    def is_registered(self) -> bool:
        """Whether the instance is registered with its cluster."""
        return self.status in (ContainerInstanceStatus.ACTIVE, ContainerInstanceStatus.DRAINING)

    @property
    def is_alive(self) -> bool:
        """Whether the instance is pending or running."""
        return self.state in (InstanceState.PENDING, InstanceState.RUNNING)


@dataclass(slots=True, eq=False)
class AutoScalingGroupState:
    """The desired capacity and the instances of an Auto Scaling group."""

    arn: str
    spec: AutoScalingGroup
    desired_capacity: int = 0
    instances: dict[str, Instance] = field(default_factory=dict)
    launch_timer: Timer | None = None


@dataclass(slots=True, eq=False)
class CapacityProvider:
    """A capacity provider of an Auto Scaling group.

    `is_active` is false while it is made or deleted. `refusal` is what EC2 says while it launches no instance, in
    the place of ECS's own reason for a task that got none.
    """

    arn: str
    name: str
    group: AutoScalingGroupState
    settings: JsonObject
    tags: list[JsonObject]
    is_active: bool = True
    refusal: str = ""
    cluster: "Cluster | None" = None
    waiting: dict[str, Task] = field(default_factory=dict)
    """Its PROVISIONING tasks, oldest first."""
    scale_out_timer: Timer | None = None

    @property
    def is_managed(self) -> bool:
        """Whether managed scaling is enabled."""
        return bool(self.settings.get("managedScaling", {}).get("status", "ENABLED") == "ENABLED")


@dataclass(slots=True, eq=False)
class Cluster:
    """A cluster with its running and recently stopped tasks."""

    arn: str
    name: str
    tags: list[JsonObject] = field(default_factory=list)
    settings: list[JsonObject] = field(default_factory=list)
    providers: dict[str, CapacityProvider] = field(default_factory=dict)
    default_strategy: list[JsonObject] = field(default_factory=list)
    container_instances: dict[str, Instance] = field(default_factory=dict)
    """Registered container instances by the last part of their ARN."""
    tasks: dict[str, Task] = field(default_factory=dict)
    """Tasks that have not stopped, by id."""
    stopped: dict[str, Task] = field(default_factory=dict)
    """Stopped tasks that can still be described, oldest first."""
    by_started_by: dict[str, dict[str, Task]] = field(default_factory=dict)
    daemons: dict[str, str] = field(default_factory=dict)
    """The task definitions of DAEMON services, by service."""
    provisioning_count: int = 0


_LEAST_BILLED_SECONDS = 60.0


@dataclass(slots=True)
class BillLine:
    """The cost of an instance."""

    instance_id: str
    instance_type: str
    purchase: Purchase
    zone: str
    launched_at: datetime
    price_usd_per_hour: float | None
    terminated_at: datetime | None = None
    billing_ended_at: datetime | None = None
    """When an instance of EC2 Fleet began to shut down; None for others, which are billed until `terminated`."""
    is_reserved: bool = False
    """Whether it was launched into a capacity reservation, which is paid for whether it is used or not."""
    reserved_until: datetime | None = None
    """From when the on-demand price is paid for it, as its reservation was over; None: never."""
    is_free: bool = False
    """Whether EC2 interrupted a spot instance within its first hour ("Billing for interrupted Spot Instances")."""

    def billed_seconds(self, now: datetime) -> float:
        """Return the seconds from launch to the end of billing or `now`, a minute at least; 0 if it is free.

        What is reserved costs nothing more, until its reservation is over. "Billed on one second increments, with a
        minimum of 60 seconds" (Amazon EC2 per-second billing, October 2017).
        """
        since = self.reserved_until if self.is_reserved else self.launched_at
        if self.is_free or since is None:
            return 0.0
        until = self.billing_ended_at or self.terminated_at or now
        return max((until - since).total_seconds(), 0.0 if self.is_reserved else _LEAST_BILLED_SECONDS)

    def cost_usd(self, now: datetime) -> float:
        """Return the USD of what is billed until `now`; 0 if the price is unknown."""
        return (self.price_usd_per_hour or 0.0) * self.billed_seconds(now) / 3_600
