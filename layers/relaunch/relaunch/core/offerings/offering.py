"""Offerings: what can be launched, where, how bought, and at which price."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.interruption_rate import usual_interruptions_per_hour
from relaunch.core.offerings.placement_score import share_of_usual_interruptions


@dataclass(frozen=True, slots=True)
class Offering:
    """An instance type in a zone by a purchase option, at a price in USD per hour.

    `zone` is None where the way to the machine does not choose one (capacity providers); `zones` then names those the
    price was taken from, and the price is their highest: what it can cost.
    `price_usd_per_hour` is None when no price is known; `price_at` says from when the price is.
    `on_demand_usd_per_hour` is the same type's on-demand price, for the saving.
    `is_managed` tells that the capacity provider is one of ECS Managed Instances; `disk_gib` is the size of its
    machines' root volume, None where nobody says it.
    `interruptions_per_hour` is how often a spot machine is taken away, None: as usual for its type, and less often the
    better its spot placement score. `placement_score` is EC2's, from 1 (hardly) to 10 (very likely): where there is no
    zone, of the type's family in the region (core.offerings.placement_score), else of the spot types of the zone.
    """

    instance_type: InstanceType
    purchase: PurchaseOption
    zone: str | None = None
    price_usd_per_hour: float | None = None
    price_at: datetime | None = None
    on_demand_usd_per_hour: float | None = None
    capacity_provider: str | None = None
    zones: tuple[str, ...] = ()
    interruptions_per_hour: float | None = None
    placement_score: int | None = None
    is_managed: bool = False
    disk_gib: int | None = None

    @property
    def key(self) -> "OfferingKey":
        """Return what identifies this offering in the capacity memory."""
        return OfferingKey(self.instance_type.name, self.zone, self.purchase)

    @property
    def expected_usd_per_hour(self) -> float | None:
        """Return the price to reckon with: the known one, else the on-demand price; None when neither is known.

        Spot without a known price is taken to cost what on-demand costs: it does not cost more.
        """
        if self.price_usd_per_hour is not None:
            return self.price_usd_per_hour
        return self.on_demand_usd_per_hour

    @property
    def interruption_rate(self) -> float:
        """Return the interruptions per hour to reckon with; on-demand has none."""
        if self.purchase is PurchaseOption.ON_DEMAND:
            return 0.0
        if self.interruptions_per_hour is not None:
            return self.interruptions_per_hour
        usual = usual_interruptions_per_hour(self.instance_type.name)
        # A zone's score is that of all types asked about together: it would make a scarce one look as safe as they are.
        return usual if self.zone else usual * share_of_usual_interruptions(self.placement_score)

    @property
    def saving(self) -> float | None:
        """Return the share of the on-demand price that is saved, None when either price is unknown."""
        if self.price_usd_per_hour is None or not self.on_demand_usd_per_hour:
            return None
        return 1 - self.price_usd_per_hour / self.on_demand_usd_per_hour

    @property
    def spot_ratio(self) -> float | None:
        """Return the spot price's share of the on-demand price; None for on-demand, and where a price is unknown."""
        if self.purchase is PurchaseOption.ON_DEMAND or (saving := self.saving) is None:
            return None
        return 1 - saving


@dataclass(frozen=True, slots=True, order=True)
class OfferingKey:
    """Identity of an offering: type, zone (None: any), purchase option."""

    instance_type: str
    zone: str | None
    purchase: PurchaseOption

    def __str__(self) -> str:
        """Write `g5.xlarge spot us-east-1a`, without the zone where there is none."""
        return f"{self.instance_type} {self.purchase}" + (f" {self.zone}" if self.zone else "")


@dataclass(frozen=True, slots=True)
class CapacityFailure:
    """An offering that failed or was interrupted lately; every job avoids it until `until`.

    `consecutive_failures` lengthen the avoidance each time (core.offerings.capacity_memory).
    """

    offering: OfferingKey
    reason: str
    at: datetime
    until: datetime
    consecutive_failures: int = 1


CapacityMemory = Mapping[OfferingKey, CapacityFailure]
