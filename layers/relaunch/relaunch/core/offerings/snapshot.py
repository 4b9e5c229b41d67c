"""What is known of one region's offerings at a time: types, zones, prices, odds, quotas, each as of its own time.

A snapshot is refreshed part by part, each as often as it changes: a part that cannot be had keeps its old content and
its old age.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from relaunch.core.offerings.instance_types import InstanceType

STALE_AFTER = timedelta(days=3)
"""Prices older than this are said to be stale: they are refreshed daily."""


class SnapshotPart(StrEnum):
    """The parts of a snapshot; the values are the names of its fields."""

    INSTANCE_TYPES = "instance_types"
    ZONES = "zones"
    ON_DEMAND_PRICES = "on_demand_usd_per_hour"
    SPOT_PRICES = "spot_usd_per_hour"
    DISK_PRICE = "gp3_usd_per_gib_month"
    QUOTAS = "vcpus_by_quota"
    PLACEMENT_SCORES = "placement_scores"

    @property
    def label(self) -> str:
        """Return its name for people."""
        return _LABELS[self]


_LABELS = {
    SnapshotPart.INSTANCE_TYPES: "instance types",
    SnapshotPart.ZONES: "zones",
    SnapshotPart.ON_DEMAND_PRICES: "on-demand prices",
    SnapshotPart.SPOT_PRICES: "spot prices",
    SnapshotPart.DISK_PRICE: "disk price",
    SnapshotPart.QUOTAS: "quotas",
    SnapshotPart.PLACEMENT_SCORES: "placement scores",
}
# Types, zones and prices are better old than not at all. These are not: an old quota would refuse for good what AWS
# has granted meanwhile, and odds are those of the moment.
_COUNTS_FOR = {SnapshotPart.QUOTAS: timedelta(days=1), SnapshotPart.PLACEMENT_SCORES: timedelta(hours=6)}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a part is from (`EC2`, `AWS Price List`, a package), and of when."""

    source: str
    at: datetime

    def is_stale(self, now: datetime) -> bool:
        """Tell whether it is older than three days."""
        return now - self.at > STALE_AFTER


@dataclass(frozen=True, slots=True)
class PriceOrigin:
    """Where the prices of one kind are from."""

    part: SnapshotPart
    origin: Origin


@dataclass(frozen=True, slots=True)
class OfferingsSnapshot:
    """One region's offerings.

    `instance_types` are those that the bundled catalogue does not know. `zones` are by type, and have only types that
    the region offers. Prices are for Linux, in USD: on-demand by type, spot by type and zone, gp3 volumes per GiB and
    month. `vcpus_by_quota` are the account's quotas by code, `placement_scores` EC2's odds by type, of the stack's spot
    types alone (core.offerings.placement_score). A part without an origin is not known.
    """

    region: str
    instance_types: Mapping[str, InstanceType] = field(default_factory=dict)
    zones: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    on_demand_usd_per_hour: Mapping[str, float] = field(default_factory=dict)
    spot_usd_per_hour: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    gp3_usd_per_gib_month: float | None = None
    vcpus_by_quota: Mapping[str, float] = field(default_factory=dict)
    placement_scores: Mapping[str, int] = field(default_factory=dict)
    origins: Mapping[SnapshotPart, Origin] = field(default_factory=dict)

    def with_part(self, part: SnapshotPart, content: Any, origin: Origin) -> "OfferingsSnapshot":
        """Return it with one part replaced."""
        changes: dict[str, Any] = {part.value: content, "origins": {**self.origins, part: origin}}
        return replace(self, **changes)

    def as_of(self, now: datetime) -> "OfferingsSnapshot":
        """Return it without the parts that are too old to count: quotas of a day, odds of six hours."""
        old = {
            part for part, limit in _COUNTS_FOR.items() if part in self.origins and now - self.origins[part].at > limit
        }
        if not old:
            return self
        emptied: dict[str, Any] = {part.value: {} for part in old}
        left = {part: origin for part, origin in self.origins.items() if part not in old}
        return replace(self, **emptied, origins=left)

    def filled_from(self, other: "OfferingsSnapshot") -> "OfferingsSnapshot":
        """Return it with the parts that it does not know taken from another one."""
        filled = self
        for part in other.origins.keys() - self.origins.keys():
            filled = filled.with_part(part, getattr(other, part.value), other.origins[part])
        return filled


def unknown_types(
    described: Mapping[str, InstanceType], catalogue: Mapping[str, InstanceType]
) -> dict[str, InstanceType]:
    """Return the types that the catalogue does not have, with what it knows of their accelerator's model.

    Rows of the catalogue stay as they are: they are corrected by hand where EC2 is wrong.
    """
    capabilities = {row.accelerator_model: row.compute_capability for row in catalogue.values()}
    return {
        name: replace(row, compute_capability=capabilities.get(row.accelerator_model))
        for name, row in described.items()
        if name not in catalogue
    }


def offered_types(snapshot: OfferingsSnapshot, catalogue: Collection[str]) -> list[str]:
    """Return the names of the types that the region offers; all that are known where its zones are not."""
    return sorted(snapshot.zones or {*catalogue, *snapshot.instance_types})
