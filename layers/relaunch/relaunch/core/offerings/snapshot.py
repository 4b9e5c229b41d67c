"""A snapshot of a region's offerings: instance types, zones, prices, placement scores and quotas.

Each part has its own time and is refreshed separately; a part whose refresh fails keeps its content and its time.
"""

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.records import dataclass

BUNDLED = ", bundled"
STALE_AFTER = timedelta(days=3)
"""Prices are refreshed daily; older ones than this are reported as stale."""


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
        """Return the name to display: `on-demand prices`."""
        return self.name.lower().replace("_", " ").replace("on demand", "on-demand")


# Parts that are dropped when older than this: an old quota would permanently reject what AWS has granted since, and
# placement scores change with the market. Old types, zones and prices are better than none.
_MAX_AGES = {SnapshotPart.QUOTAS: timedelta(days=1), SnapshotPart.PLACEMENT_SCORES: timedelta(hours=6)}


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a part (`EC2`, `AWS Price List`, a package; bundled ones end in BUNDLED) and its time."""

    source: str
    at: datetime

    @property
    def is_bundled(self) -> bool:
        """Return whether it came with Relaunch, and was not refreshed."""
        return self.source.endswith(BUNDLED)

    def is_stale(self, now: datetime) -> bool:
        """Return whether it is older than STALE_AFTER."""
        return now - self.at > STALE_AFTER


@dataclass(frozen=True, slots=True)
class PriceOrigin:
    """The origin of a part."""

    part: SnapshotPart
    origin: Origin


@dataclass(frozen=True, slots=True)
class OfferingsSnapshot:
    """The offerings of one region.

    `instance_types` are those that are missing in the bundled catalogue. `zones` maps the types that the region offers
    to their zones. Prices are for Linux, in USD: on-demand by type, spot by type and zone, gp3 per GiB and month.
    `vcpus_by_quota` are the account's quotas by code, `placement_scores` the spot placement scores of the stack's spot
    types (core.offerings.offering). A part without an origin is unknown.
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
        """Return a copy with one part replaced."""
        changes: dict[str, Any] = {part.value: content, "origins": {**self.origins, part: origin}}
        return replace(self, **changes)

    def as_of(self, now: datetime) -> "OfferingsSnapshot":
        """Return a copy without outdated parts: quotas older than a day, placement scores older than six hours."""
        old = {
            part for part, limit in _MAX_AGES.items() if part in self.origins and now - self.origins[part].at > limit
        }
        if not old:
            return self
        emptied: dict[str, Any] = {part.value: {} for part in old}
        left = {part: origin for part, origin in self.origins.items() if part not in old}
        return replace(self, **emptied, origins=left)

    def filled_from(self, other: "OfferingsSnapshot") -> "OfferingsSnapshot":
        """Return a copy with unknown parts taken from another snapshot."""
        filled = self
        for part in other.origins.keys() - self.origins.keys():
            filled = filled.with_part(part, getattr(other, part.value), other.origins[part])
        return filled


def unknown_types(
    described: Mapping[str, InstanceType], catalogue: Mapping[str, InstanceType]
) -> dict[str, InstanceType]:
    """Return the types that the catalogue lacks, or has with other usage classes than EC2 describes now.

    A new size of a family has the model of the others, which EC2 may write otherwise than NVIDIA does, and the compute
    capability of its model. Of other types in the catalogue all else stays as it is, because it corrects errors in
    EC2's answers, except of those that EC2 did not list when it was made.
    """
    listed = {name: row for name, row in catalogue.items() if row.is_listed}
    models = {_family(name): row.accelerator_model for name, row in listed.items()}
    capabilities = {row.accelerator_model: row.compute_capability for row in catalogue.values()}
    found: dict[str, InstanceType] = {}
    for name, row in described.items():
        if name not in listed:
            model = models.get(_family(name), row.accelerator_model)
            found[name] = replace(row, accelerator_model=model, compute_capability=capabilities.get(model))
        elif row.usage_classes and set(row.usage_classes) != set(listed[name].usage_classes):
            found[name] = replace(listed[name], usage_classes=row.usage_classes)
    return found


def _family(name: str) -> str:
    return name.partition(".")[0]


def offered_types(snapshot: OfferingsSnapshot, catalogue: Collection[str]) -> list[str]:
    """Return the names of the types that the region offers, or all known types if its zones are unknown."""
    return sorted(snapshot.zones or {*catalogue, *snapshot.instance_types})
