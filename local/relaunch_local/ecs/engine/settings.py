"""Settings of the simulated region: instance types, Auto Scaling groups, delays, prices."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from ipaddress import IPv4Network

from relaunch_local.ecs.engine.addresses import NETWORK

DEFAULT_IMAGE_ID = "ami-0abcdef1234567890"
"""The ECS-optimized AMI that instances are launched from by default."""


class Purchase(StrEnum):
    """The purchase option of an instance."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"


@dataclass(frozen=True, slots=True)
class InstanceShape:
    """The resources of an instance type."""

    vcpus: int
    memory_mib: int
    gpus: int = 0
    gpu_memory_mib: int = 0
    """Memory of one GPU."""
    neuron_devices: int = 0
    architecture: str = "x86_64"
    gpu_name: str = ""
    gpu_partition: float = 1.0
    """The part of a GPU that a fractional instance type has; its `gpus` is 1."""
    has_gpu_sharing: bool = True
    """Whether the agent of its AMI supports GPU sharing."""

    @property
    def can_share_gpus(self) -> bool:
        """Whether containers can share its GPUs; GPUs of fractional types cannot be shared."""
        return self.has_gpu_sharing and self.gpu_partition == 1

    @property
    def registered_gpu_memory_mib(self) -> int:
        """The memory that the agent registers of one GPU: 15,360 of a T4's 16,384 MiB."""
        return self.gpu_memory_mib * 15 // 16

    @property
    def registered_memory_mib(self) -> int:
        """The memory that the agent registers: the kernel and ECS reserve about 3 % and 64 MiB."""
        return self.memory_mib - self.memory_mib * 3 // 100 - 64


@dataclass(frozen=True, slots=True)
class Timing:
    """The delays of the simulated region, in seconds; the clock's speed divides all of them but the retentions."""

    scale_out: float = 60.0
    """From a task that cannot be placed to the launch of instances; also the interval of evaluations."""
    capacity_retry: float = 60.0
    """From a launch without capacity to the group's next attempt."""
    boot: float = 30.0
    """From an instance's `pending` to its `running`."""
    registration: float = 30.0
    """From an instance's `running` to its registration with the cluster."""
    bare_metal_start: float = 1_350.0
    """How much later that is on bare metal: EC2 documents 20 minutes from `running` until the network is there."""
    agent_reaction: float = 1.0
    """From placement to the start of the image pull, and from StopTask to the agent's SIGTERM."""
    container_report: float = 0.0
    """From the end of a container to ECS's knowledge of it, unless its task ends before; the agent takes up to 20."""
    pull: float = 20.0
    deprovisioning: float = 1.0
    """From the exit of the last container to STOPPED."""
    stop_timeout: float = 30.0
    """From SIGTERM to SIGKILL if the task definition has no `stopTimeout` (ECS_CONTAINER_STOP_TIMEOUT)."""
    stop_timeout_factor: float = 1.0
    """What a `stopTimeout` of the task definition is multiplied by; with the clock's speed it is undivided."""
    provisioning_timeout: float = 900.0
    """How long a task waits for capacity; AWS documents 10 to 30 minutes."""
    idle_scale_in: float = 900.0
    """How long an instance is idle before it is terminated (15 data points, one a minute)."""
    warning_lead: float = 120.0
    """From the Spot interruption warning to the end of the instance."""
    shutdown: float = 20.0
    """From an instance's `shutting-down` to its `terminated`."""
    instance_loss_report: float = 10.0
    """From an instance's `terminated` to the stop of its tasks in ECS."""
    deregistration_lag: float = 0.0
    """How long RunTask still accepts an INACTIVE revision; AWS documents up to ten minutes."""
    revision_creation: float = 0.0
    """How long RegisterTaskDefinition creates a revision; another one of its family is refused until then."""
    stopped_task_retention: float = 3_600.0
    """How long a stopped task can be described; not divided by the speed."""
    fleet_visibility: float = 2.0
    """From the launch of an instance by EC2 Fleet until other calls know it; up to a minute is reported."""
    fleet_shutdown: float = 65.0
    """From `shutting-down`, which ends billing, to `terminated` of an instance of EC2 Fleet; up to 5.5 minutes."""
    ghost_registration: float = 1_200.0
    """How long the registration outlives an instance of EC2 Fleet whose agent was disconnected before its end."""


@dataclass(frozen=True, slots=True)
class HostPlan:
    """What happens on an instance of EC2 Fleet; delays in seconds, None: that of Timing."""

    boot: float | None = None
    registration: float | None = None
    visibility: float | None = None
    shutdown: float | None = None
    pull: float | None = None
    """How long its user data pulls the image."""
    runs_user_data: bool = True
    """Whether cloud-init runs the user data; else there is neither an agent nor a watchdog."""
    joins: bool = True
    """Whether the agent registers."""
    gpus: int | None = None
    """The GPUs that the agent registers; None: all."""
    other_gpus_after: float | None = None
    """From the registration to the event with all GPUs; None: never."""
    has_device_attribute: bool = True
    """Whether the user data counts the Neuron devices."""
    addressed_after: float = 0.0
    """From the launch until DescribeInstances tells its private address, if that is later than `visibility`."""
    connects_after: float = 0.0
    """From the registration to the first connection of the agent."""
    disconnects_every: float | None = None
    """Time between a connection of the agent and its loss; None: it stays connected."""
    disconnected_for: float = 30.0


SOUND = HostPlan()
"""A host on which nothing goes wrong."""


@dataclass(frozen=True, slots=True)
class LaunchTemplateVersion:
    """A version of a launch template, as far as EC2 Fleet and the instance heed it."""

    image_id: str = DEFAULT_IMAGE_ID
    cluster: str = "default"
    """ECS_CLUSTER in its user data."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """ECS_INSTANCE_ATTRIBUTES in its user data."""
    has_user_data: bool = True
    """Whether it has Relaunch's user data; else the agent joins `default`, without attributes and watchdog."""
    reports_boot: bool = True
    """Whether Relaunch's user data reports the boot of the machine, as earlier versions of it do not."""
    instance_profile_arn: str = ""
    instance_role_arn: str = ""
    """The role of the instance profile, which the caller must be allowed to pass."""
    disk_key_arn: str = ""
    """The customer managed key of the root volume, which the caller must be allowed to use; empty for that of AWS."""
    tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Tags by resource type: `instance`, `volume`, `network-interface`, `spot-instances-request`."""
    http_tokens: str = "required"


@dataclass(frozen=True, slots=True)
class LaunchTemplate:
    """A launch template; versions are numbered from 1, and a new version does not change the default."""

    template_id: str
    name: str
    versions: tuple[LaunchTemplateVersion, ...]
    default_version: int = 1


@dataclass(frozen=True, slots=True)
class Watchdog:
    """When an instance shuts itself down, which terminates it; in seconds, None: never."""

    idle: float | None = 600.0
    """From the registration, or the end of the last task, if no other task comes."""
    unregistered: float | None = 600.0
    """From `running`, if the agent has not registered."""
    without_gpus: float | None = 300.0
    """From the registration of an instance that should have GPUs, if it has none."""


NO_WATCHDOG = Watchdog(None, None, None)
"""An instance that nobody terminates runs on."""


def all_sound(_instance_type: str, _zone: str, _purchase: Purchase) -> HostPlan:
    """Return the plan of a sound host."""
    return SOUND


@dataclass(frozen=True, slots=True)
class AutoScalingGroup:
    """An Auto Scaling group with its launch template; it has one instance type."""

    name: str
    instance_type: str
    purchase: Purchase
    zones: tuple[str, ...]
    min_size: int = 0
    max_size: int = 10
    image_id: str = DEFAULT_IMAGE_ID
    attributes: tuple[tuple[str, str], ...] = ()
    """Custom attributes of its container instances (ECS_INSTANCE_ATTRIBUTES)."""
    replaces_lost_instances: bool = True
    """Whether terminated instances are replaced, needed or not, as Auto Scaling groups do."""


PriceOf = Callable[[str, str, Purchase], float | None]
"""Returns the USD per hour of an instance type in a zone under a purchase option; None if unknown."""


def no_price(_instance_type: str, _zone: str, _purchase: Purchase) -> float | None:
    """Return None: no price is known."""
    return None


@dataclass(frozen=True, slots=True)
class SpotPrice:
    """A Spot price for Linux from a time on."""

    instance_type: str
    zone: str
    price_usd_per_hour: float
    since: datetime | None = None
    """None: before all others, told as an hour before the request."""


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """EC2 Fleet in the simulated region."""

    launch_templates: Sequence[LaunchTemplate] = ()
    subnets: Mapping[str, str] = field(default_factory=dict)
    """The zone of each subnet; empty: one subnet in each zone with offerings."""
    vcpu_quotas: Mapping[tuple[str, Purchase], int] = field(default_factory=dict)
    """vCPUs by family (`G and VT`, `P`, `Trn`, `Inf`, `Standard`) and purchase option; a missing one is unlimited."""
    token_lifetime: timedelta = timedelta(hours=24)
    """How long a client token is kept. AWS does not say."""
    raises_reservation_errors: bool = False
    """Whether a launch into a reservation that is refused fails the whole call. AWS does not say."""
    raises_throttling: bool = False
    """Whether a throttled launch fails the whole call, rather than being one of its errors."""
    choices_tried: int = 1
    """How many types, or zones, EC2 tries for a fleet that must be in one. AWS does not say that it tries another."""
    watchdog: Watchdog = Watchdog()
    plan_of: Callable[[str, str, Purchase], HostPlan] = all_sound
    """Returns the plan of a host by its instance type, zone and purchase option."""


@dataclass(frozen=True, slots=True)
class SimulatorSettings:
    """The settings of a simulated region."""

    instance_types: Mapping[str, InstanceShape]
    account: str = "111122223333"
    region: str = "us-east-1"
    timing: Timing = field(default_factory=Timing)
    throttling: bool = True
    seed: int = 0
    spot_prices: Sequence[SpotPrice] = ()
    offerings: Mapping[str, Iterable[str]] = field(default_factory=dict)
    """The instance types offered in each zone, for DescribeInstanceTypeOfferings."""
    price_of: PriceOf = no_price
    instance_resource_events: bool = True
    network: IPv4Network = NETWORK
    """Of which each subnet has a part, for the private addresses of its instances."""
    requests_kept: int = 100_000
    fleet: FleetSettings = field(default_factory=FleetSettings)
