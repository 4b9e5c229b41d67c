"""The machines of our own of a seed: whether there are any, of which types, where, and their limits."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.machines.limits import MachineLimits, TaskStop
from relaunch.core.machines.settings import LaunchTemplate, MachineSettings
from relaunch.core.offerings.instance_types import AmiKind
from relaunch_local.ecs.engine.instances import CapacityKey, subnet_of
from relaunch_local.ecs.engine.settings import NO_WATCHDOG, FleetSettings, LaunchTemplateVersion, Purchase, Watchdog
from relaunch_local.ecs.engine.settings import LaunchTemplate as SimulatedTemplate
from relaunch_local.simulation.aws.template import ACCOUNT, CLUSTER, STACK

MACHINES_QUEUE = "MachinesQueue"
_INSTANCES_OF_QUOTA = 30
_HIGH_QUOTA = 100_000
# Counting reads every other job and machine, which makes the steps of a seed several times as many.
_CLOSE_QUOTA_SHARE = 0.15
QUOTA_FAMILY = "G and VT"
# Of ten seeds.
_PROVIDERS_ONLY = 0.4
_MACHINES_ONLY = 0.3
INSTANCE_ROLE = f"arn:aws:iam::{ACCOUNT}:role/relaunch/machines"
"""The role of the instance profile that the launch templates name."""
# A stack update leaves the default version at 1, whose instances know nothing of the cluster.
_VERSIONS = (
    LaunchTemplateVersion(has_user_data=False),
    LaunchTemplateVersion(
        # As the launch templates of infrastructure/machines.yaml: EC2 reads it with the permissions of the caller.
        image_id="resolve:ssm:/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended/image_id",
        cluster=CLUSTER,
        attributes={"relaunch.machine": "true"},
        instance_profile_arn=f"arn:aws:iam::{ACCOUNT}:instance-profile/relaunch-machines",
        instance_role_arn=INSTANCE_ROLE,
    ),
)
_TEMPLATE_ID = "lt-0a1b2c3d4e5f60718"


@dataclass(frozen=True, slots=True)
class PlannedReservation:
    """A capacity reservation that the stack may use; seconds are those since the beginning of the run."""

    reservation_id: str
    instance_type: str
    zone: str
    total: int
    is_block: bool
    starts_at: float
    ends_at: float | None = None
    expires_late: float = 0.0
    shown_late: float = 0.0
    cancelled_at: float | None = None
    is_shared: bool = False
    """Whether others take some of its instances at times."""

    @property
    def lasts(self) -> bool:
        """Whether it is there as long as the run."""
        return self.ends_at is None and self.cancelled_at is None


@dataclass(frozen=True, slots=True)
class MachineScenario:
    """The machines of our own of one seed; without types there are none.

    `has_watchdog`: the user data of the launch template ends an instance that nobody uses.
    """

    types: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    limits: MachineLimits = field(default_factory=MachineLimits)
    has_watchdog: bool = True
    has_close_quota: bool = False
    """Whether the account's quota is so low that each launch counts the instances of other jobs."""
    ami: AmiKind = AmiKind.GPU
    reservations: tuple[PlannedReservation, ...] = ()
    raises_reservation_errors: bool = False
    """Whether a refused launch into a reservation fails the whole call."""
    group_faults: Mapping[str, float] = field(default_factory=dict)
    """How often what happens to machines that are launched together: `GROUP_FAULTS`, or nothing by default."""
    stock: Mapping[CapacityKey, int] = field(default_factory=dict)
    """How many machines the pools have at first; others are unlimited."""
    unreadable: tuple[tuple[float, float], ...] = ()
    """From when until when reservations cannot be read, in seconds since the beginning of the run."""

    @property
    def settings(self) -> MachineSettings:
        """What the stack is told."""
        if not self.types:
            return MachineSettings(STACK, MACHINES_QUEUE)
        return MachineSettings(
            STACK,
            MACHINES_QUEUE,
            subnets={zone: subnet_of(zone) for zone in self.zones},
            launch_templates={self.ami: LaunchTemplate(_TEMPLATE_ID, str(len(_VERSIONS)))},
            disk_gib=100,
            reservation_ids=tuple(each.reservation_id for each in self.reservations),
        )

    @property
    def vcpu_quota(self) -> int:
        """The account's quota of vCPUs, for spot as for on-demand; no seed reaches it."""
        if not self.has_close_quota:
            return _HIGH_QUOTA
        return _INSTANCES_OF_QUOTA * max((load_catalogue()[name].vcpus for name in self.types), default=0)

    @property
    def fleet(self) -> FleetSettings:
        """EC2 Fleet in the simulated region."""
        return FleetSettings(
            launch_templates=(SimulatedTemplate(_TEMPLATE_ID, "relaunch-gpu", _VERSIONS),),
            subnets={subnet_of(zone): zone for zone in self.zones},
            vcpu_quotas={(QUOTA_FAMILY, purchase): self.vcpu_quota for purchase in Purchase} if self.types else {},
            watchdog=Watchdog() if self.has_watchdog else NO_WATCHDOG,
            raises_reservation_errors=self.raises_reservation_errors,
        )

    def with_types(self, types: Sequence[str]) -> "MachineScenario":
        """Return the same with other types, and with money for some of them."""
        usd_per_hour = self.limits.max_usd_per_hour and 60.0
        return replace(self, types=tuple(types), limits=replace(self.limits, max_usd_per_hour=usd_per_hour))


def draw_machines(dice: random.Random, types: Sequence[str], zones: Sequence[str]) -> tuple[MachineScenario, bool]:
    """Draw the machines of a seed, and whether there are capacity providers beside them."""
    way = dice.random()
    drawn = MachineScenario(
        types=tuple(dice.sample(types, dice.randint(1, len(types)))),
        zones=tuple(dice.sample(zones, dice.randint(1, len(zones)))),
        limits=MachineLimits(
            max_machines=dice.choice((1, 2, 4, 20)),
            max_usd_per_hour=dice.choice((0.0, 0.0, 1.2, 3.0)),
            registration_deadline=timedelta(minutes=dice.choice((3, 5, 8))),
            warm_time=timedelta(minutes=dice.choice((0, 0, 3, 12))),
            starts_on_rebalance=dice.random() < 0.5,
        ),
        has_watchdog=dice.random() < 0.6,
        has_close_quota=dice.random() < _CLOSE_QUOTA_SHARE,
    )
    if way < _PROVIDERS_ONLY:
        return MachineScenario(), True
    return drawn, way >= _PROVIDERS_ONLY + _MACHINES_ONLY


def draw_any_machines(dice: random.Random, types: Sequence[str], zones: Sequence[str]) -> MachineScenario:
    """Draw machines of one or two types in one zone or two, with room for all jobs of a seed."""
    return MachineScenario(
        types=tuple(dice.sample(types, dice.randint(1, 2))),
        zones=tuple(dice.sample(zones, dice.randint(1, len(zones)))),
        limits=MachineLimits(
            registration_deadline=timedelta(minutes=dice.choice((3, 5, 8))),
            warm_time=timedelta(minutes=dice.choice((0, 0, 3))),
            starts_on_rebalance=dice.random() < 0.5,
            task_stop=dice.choice(tuple(TaskStop)),
        ),
    )
