"""What can be launched, at which price."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.snapshot import OfferingsSnapshot, PriceOrigin


@dataclass(frozen=True, slots=True)
class CapacityProviderOffer:
    """A capacity provider of the stack's settings: `name=instance-type/purchase`.

    `is_managed`: ECS Managed Instances are behind it (`/managed-instances`), not an Auto Scaling group. `disk_gib` is
    the size of its machines' root volume (`/200GiB`), None where the settings do not say it.
    """

    name: str
    instance_type: str
    purchase: PurchaseOption
    is_managed: bool = False
    disk_gib: int | None = None


class OfferingSource(Protocol):
    """What can be launched at all."""

    def offerings(self, now: datetime) -> tuple[Offering, ...]:
        """Return every offering with its present price; falls back to reference prices when prices cannot be had."""
        ...

    def catalogue(self) -> Mapping[str, InstanceType]:
        """Return the instance types known, by name."""
        ...

    def price_origins(self, now: datetime) -> tuple[PriceOrigin, ...]:
        """Return where the prices, odds and quotas are from that there are at this time, and of when."""
        ...

    def snapshot(self, now: datetime) -> OfferingsSnapshot:
        """Return what was refreshed last of the region, without the parts that are too old to count."""
        ...
