"""Offerings: instance types, purchase options and prices."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.records import dataclass

if TYPE_CHECKING:
    from relaunch.core.offerings.instance_types import InstanceType
    from relaunch.core.offerings.offering import Offering
    from relaunch.core.offerings.peaks import Peaks
    from relaunch.core.offerings.snapshot import OfferingsSnapshot, PriceOrigin


ANY_OPTION: frozenset[PurchaseOption] = frozenset(PurchaseOption)
"""All purchase options."""


@dataclass(frozen=True, slots=True)
class CapacityProviderOffer:
    """A capacity provider of the settings: `name=instance-type/purchase`.

    `is_managed`: it has ECS Managed Instances (`/managed-instances`), not an Auto Scaling group. `disk_gib` is the size
    of the root volume of its instances (`/200GiB`), None if the settings do not have it. `zones` are the ends of the
    names of its group's zones (`@a+b` for us-east-1a and us-east-1b), empty if the settings do not have them. `until`
    is when what it has reserved ends (`/until-2026-12-05T11:30Z`), None if the settings do not say.
    """

    name: str
    instance_type: str
    purchase: PurchaseOption
    is_managed: bool = False
    disk_gib: int | None = None
    zones: tuple[str, ...] = ()
    until: datetime | None = None

    @property
    def entry(self) -> str:
        """Return the text of the settings that reads as this."""
        managed = "/managed-instances" if self.is_managed else ""
        disk = f"/{self.disk_gib}GiB" if self.disk_gib else ""
        zones = f"@{'+'.join(self.zones)}" if self.zones else ""
        until = f"/until-{self.until:%Y-%m-%dT%H:%MZ}" if self.until else ""
        return f"{self.name}={self.instance_type}/{self.purchase}{managed}{disk}{until}{zones}"


class OfferingSource(Protocol):
    """Offerings that can be launched."""

    def offerings(self, now: datetime, options: Collection[PurchaseOption] = ANY_OPTION) -> tuple[Offering, ...]:
        """Return every offering with its current price, or its reference price if that is unavailable.

        Those of other purchase options than `options` may be left out.
        """

    def catalogue(self) -> Mapping[str, InstanceType]:
        """Return the known instance types by name."""

    def peaks(self) -> Mapping[str, Peaks]:
        """Return the published peaks of accelerators by model."""

    def price_origins(self, now: datetime) -> tuple[PriceOrigin, ...]:
        """Return the source and time of the current prices, spot placement scores and quotas."""

    def snapshot(self, now: datetime) -> OfferingsSnapshot:
        """Return the last snapshot of the region, without expired parts."""
