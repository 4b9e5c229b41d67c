"""What the caller says the simulated region is like: machines, groups, delays, prices."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

DEFAULT_IMAGE_ID = "ami-0abcdef1234567890"
"""The ECS-optimized image machines start from unless told otherwise."""


class Purchase(StrEnum):
    """How an instance is bought."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"


@dataclass(frozen=True, slots=True)
class InstanceShape:
    """What an instance type has."""

    vcpus: int
    memory_mib: int
    gpus: int = 0
    gpu_memory_mib: int = 0
    """Memory of one card."""
    neuron_devices: int = 0
    architecture: str = "x86_64"
    gpu_name: str = ""
    gpu_partition: float = 1.0
    """The part of a GPU that a fractional type has; its `gpus` is 1."""
    has_gpu_sharing: bool = True
    """Whether the agent of its image can share GPUs."""

    @property
    def can_share_gpus(self) -> bool:
        """Whether several containers can have one of its GPUs; those of fractional types they cannot."""
        return self.has_gpu_sharing and self.gpu_partition == 1

    @property
    def registered_gpu_memory_mib(self) -> int:
        """What the agent registers of a card: a T4 of 16,384 MiB shows 15,360."""
        return self.gpu_memory_mib * 15 // 16

    @property
    def registered_memory_mib(self) -> int:
        """What the agent registers: the kernel and ECS keep about 3 % and 64 MiB."""
        return self.memory_mib - self.memory_mib * 3 // 100 - 64


@dataclass(frozen=True, slots=True)
class Timing:
    """The delays of the simulated region, in seconds; the clock's speed divides all of them but the retentions."""

    scale_out: float = 60.0
    """From a task that cannot be placed to the launch of machines; also the pause between two looks."""
    capacity_retry: float = 60.0
    """From a launch that found no capacity to the next try of the group."""
    boot: float = 30.0
    """From an instance's `pending` to its `running`."""
    registration: float = 30.0
    """From an instance's `running` to its registration with the cluster."""
    agent_reaction: float = 1.0
    """From placement to the start of the image pull, and from StopTask to the agent's SIGTERM."""
    pull: float = 20.0
    deprovisioning: float = 1.0
    """From the last container's exit to STOPPED."""
    stop_timeout: float = 30.0
    """From SIGTERM to SIGKILL where the definition says nothing (ECS_CONTAINER_STOP_TIMEOUT)."""
    provisioning_timeout: float = 900.0
    """How long a task waits for capacity; AWS documents 10 to 30 minutes."""
    idle_scale_in: float = 900.0
    """How long an instance stands idle before its group ends it (15 data points, one a minute)."""
    warning_lead: float = 120.0
    """From the Spot interruption warning to the end of the instance."""
    shutdown: float = 20.0
    """From an instance's `shutting-down` to its `terminated`."""
    instance_loss_report: float = 10.0
    """From an instance's `terminated` to ECS noticing that its tasks are gone."""
    deregistration_lag: float = 0.0
    """How long an INACTIVE revision still runs new tasks; AWS documents up to ten minutes."""
    stopped_task_retention: float = 3_600.0
    """How long a stopped task can be described; not divided by the speed."""


@dataclass(frozen=True, slots=True)
class AutoScalingGroup:
    """An Auto Scaling group of one instance type, as the launch template and the group describe it."""

    name: str
    instance_type: str
    purchase: Purchase
    zones: tuple[str, ...]
    min_size: int = 0
    max_size: int = 10
    image_id: str = DEFAULT_IMAGE_ID
    attributes: tuple[tuple[str, str], ...] = ()
    """Custom attributes its instances register with (ECS_INSTANCE_ATTRIBUTES)."""
    replaces_lost_instances: bool = True
    """A group keeps its desired size: it replaces what was interrupted, needed or not."""


PriceOf = Callable[[str, str, Purchase], float | None]
"""Dollars per hour of an instance type in a zone, bought like this; None where unknown."""


def no_price(_instance_type: str, _zone: str, _purchase: Purchase) -> float | None:
    """Know no price at all."""
    return None


@dataclass(frozen=True, slots=True)
class SpotPrice:
    """A Spot price of Linux from a moment on."""

    instance_type: str
    zone: str
    price_usd_per_hour: float
    since: datetime | None = None
    """None: since an hour before whenever it is asked for."""


@dataclass(frozen=True, slots=True)
class SimulatorSettings:
    """What a simulated region is like; everything has a default but the instance types."""

    instance_types: Mapping[str, InstanceShape]
    account: str = "111122223333"
    region: str = "us-east-1"
    timing: Timing = field(default_factory=Timing)
    throttling: bool = True
    seed: int = 0
    extra_environment: Mapping[str, str] = field(default_factory=dict)
    """Variables every container gets, unless its definition says otherwise."""
    spot_prices: Sequence[SpotPrice] = ()
    offerings: Mapping[str, Iterable[str]] = field(default_factory=dict)
    """Zone to the instance types offered there, for DescribeInstanceTypeOfferings."""
    price_of: PriceOf = no_price
    instance_resource_events: bool = True
    requests_kept: int = 100_000
