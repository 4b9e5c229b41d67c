"""Offerings: instance types with zone, purchase option and price."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.interruption_rate import estimated_interruptions_per_hour
from relaunch.core.offerings.placement_score import interruption_rate_factor
from relaunch.core.offerings.reservations import Reservation


@dataclass(frozen=True, slots=True)
class Offering:
    """An instance type in a zone with a purchase option, at a price in USD per hour.

    `zone` is None for capacity providers, whose Auto Scaling group chooses the zone; `usd_per_hour_by_zone` has then
    the prices that are known, of which the price is the highest; `offered_zones` are the zones that EC2 offers the type
    in, of which the group uses some or all. `price_usd_per_hour` is None if unknown; `price_at` is the
    time of the price. `on_demand_usd_per_hour` is the on-demand price of the same type. `is_managed` is whether the
    capacity provider is one of ECS Managed Instances. `is_own_machine`: Relaunch itself requests the instance from EC2
    Fleet, in `zone`. `disk_gib` is the size of the root volume, None if unknown.
    `interruptions_per_hour` is the expected rate for spot; None means the usual rate of the type, which is less with a
    better spot placement score. `placement_score` is EC2's, from 1 (very unlikely) to 10 (very likely): without a zone,
    and for a machine of our own, that of the type's family in the region (core.offerings.placement_score), else that of
    the spot types in the zone.
    What is reserved has price 0, because it is paid for anyway: `reservation` is what a machine of our own is launched
    into, None for other purchase options, and for a capacity provider, whose reservations only ECS or its group knows.
    """

    instance_type: InstanceType
    purchase: PurchaseOption
    zone: str | None = None
    price_usd_per_hour: float | None = None
    price_at: datetime | None = None
    on_demand_usd_per_hour: float | None = None
    capacity_provider: str | None = None
    usd_per_hour_by_zone: Mapping[str, float] = field(default_factory=dict, hash=False)
    offered_zones: tuple[str, ...] = ()
    interruptions_per_hour: float | None = None
    placement_score: int | None = None
    is_managed: bool = False
    disk_gib: int | None = None
    is_own_machine: bool = False
    reservation: Reservation | None = None

    @property
    def key(self) -> "OfferingKey":
        """Return the key of this offering."""
        return OfferingKey(self.instance_type.name, self.zone, self.purchase)

    @property
    def zones(self) -> tuple[str, ...]:
        """Return the zones whose prices are known, of an offering without a zone."""
        return tuple(sorted(self.usd_per_hour_by_zone))

    @property
    def expected_usd_per_hour(self) -> float | None:
        """Return the known price, else the on-demand price, else None.

        A spot price is never above the on-demand price.
        """
        if self.price_usd_per_hour is not None:
            return self.price_usd_per_hour
        return self.on_demand_usd_per_hour

    @property
    def interruption_rate(self) -> float:
        """Return the expected interruptions per hour, 0 for other than spot."""
        if self.purchase is not PurchaseOption.SPOT:
            return 0.0
        if self.interruptions_per_hour is not None:
            return self.interruptions_per_hour
        usual = estimated_interruptions_per_hour(self.instance_type.name)
        # The score of a zone is that of all requested types together, which says nothing about a scarce one among them.
        is_of_family = self.zone is None or self.is_own_machine
        return usual * interruption_rate_factor(self.placement_score) if is_of_family else usual

    @property
    def saving(self) -> float | None:
        """Return the saving as a fraction of the on-demand price.

        None if either price is unknown, and for what is reserved, whose price is paid elsewhere.
        """
        is_reserved = self.purchase is PurchaseOption.RESERVED
        if is_reserved or self.price_usd_per_hour is None or not self.on_demand_usd_per_hour:
            return None
        return 1 - self.price_usd_per_hour / self.on_demand_usd_per_hour

    @property
    def spot_ratio(self) -> float | None:
        """Return the spot price as a fraction of the on-demand price; None for others or if a price is unknown."""
        if self.purchase is not PurchaseOption.SPOT or (saving := self.saving) is None:
            return None
        return 1 - saving


@dataclass(frozen=True, slots=True, order=True)
class OfferingKey:
    """The key of an offering: instance type, zone (None: any zone) and purchase option.

    In the capacity memory a key may stand for several offerings (core.offerings.capacity_scopes).
    """

    instance_type: str
    zone: str | None
    purchase: PurchaseOption

    def __str__(self) -> str:
        """Return `g5.xlarge spot us-east-1a`, or `g5.xlarge spot` without a zone."""
        return f"{self.instance_type} {self.purchase}" + (f" {self.zone}" if self.zone else "")


@dataclass(frozen=True, slots=True)
class CapacityFailure:
    """A recent launch that found no capacity for an offering, which is avoided until `until`.

    All jobs avoid it, or only the job that keeps the failure as its own.

    Each of `consecutive_failures` extends the time (core.offerings.capacity_memory). An instance of `capacity_provider`
    that registers later, with the `gpu_count` whole GPUs that the launch needed, ends it: `is_refuted`. Instance types
    with fewer than `vcpus` are not avoided: a quota without room for a large instance may have some for a small one.
    `is_shortage`: EC2 itself answered that it has no capacity, which holds for whoever asks for the same. `is_unready`:
    EC2 launched a machine, which is paid for, and it did not become ready.
    `is_queue`: the capacity provider has machines, and other tasks of the stack run on them. That says nothing of EC2's
    capacity, as a group at its maximum size asks EC2 for nothing, and ends when one of them is free. `machine_id` is
    the machine of our own that was of no use, where each counts once.
    """

    offering: OfferingKey
    reason: str
    at: datetime
    until: datetime
    consecutive_failures: int = 1
    capacity_provider: str = ""
    gpu_count: int = 0
    is_refuted: bool = False
    vcpus: int = 0
    is_shortage: bool = False
    is_queue: bool = False
    is_unready: bool = False
    machine_id: str = ""

    @property
    def key(self) -> OfferingKey:
        """Return the key under which the failure is remembered."""
        return remembered_key(self.offering, self.capacity_provider)


def remembered_key(offering: OfferingKey, capacity_provider: str) -> OfferingKey:
    """Return the key of an offering in the capacity memory: `g5.xlarge@name` if it is that of a capacity provider.

    Two providers of one type and purchase option are two offerings: their groups may be in other zones, and of another
    maximum size.
    """
    if not capacity_provider:
        return offering
    return replace(offering, instance_type=f"{offering.instance_type}@{capacity_provider}")


CapacityMemory = Mapping[OfferingKey, CapacityFailure]
