"""The bundled catalogue, zones and on-demand prices: package data, made by catalogue/generate.py and kept by hand.

The prices are a fallback with a date: of 93 accelerated types in us-east-1 only 4 changed price in the four years
before it. There is no bundled table of spot prices, because those change every day.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from relaunch.core.offerings.instance_types import InstanceType, nearest_names
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, SnapshotPart

_DATA = Path(__file__).with_name("data")


@dataclass(frozen=True, slots=True)
class ReferencePrices:
    """On-demand prices in USD per hour for Linux: of one region, as of one day."""

    region: str
    at: datetime
    source: str
    usd_per_hour: Mapping[str, float]


@cache
def load_catalogue() -> Mapping[str, InstanceType]:
    """Load the bundled instance types by name, in order of family and size; read once per process."""
    content = json.loads((_DATA / "instance_types.json").read_bytes())
    return MappingProxyType({row.name: row for row in read_rows(content)})


def read_rows(content: Mapping[str, Any]) -> Iterator[InstanceType]:
    """Read instance types in their stored form: names of columns once, sources once, then one list per type."""
    columns, sources = content["columns"], content["sources"]
    for values in content["rows"]:
        row = dict(zip(columns, values, strict=True))
        capability = row["compute_capability"]
        row["compute_capability"] = None if capability is None else tuple(capability)
        row["usage_classes"] = tuple(row["usage_classes"])
        row["source"] = sources[row["source"]]
        yield InstanceType(**row)


@cache
def load_on_demand_prices() -> ReferencePrices:
    """Load the bundled on-demand prices; read once per process."""
    content = json.loads((_DATA / "on_demand_prices.json").read_bytes())
    at = datetime.fromisoformat(content["date"]).replace(tzinfo=UTC)
    return ReferencePrices(content["region"], at, content["source"], MappingProxyType(content["usd_per_hour"]))


@cache
def _load_zones() -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads((_DATA / "zones.json").read_bytes())
    return content


def known_regions() -> tuple[str, ...]:
    """Return the regions whose zones are bundled, sorted."""
    return tuple(sorted(_load_zones()["regions"]))


def check_region(region: str) -> None:
    """Refuse a region that nothing is bundled of.

    Raises:
        UnknownRegionError: it names the nearest ones.
    """
    if region not in known_regions():
        raise UnknownRegionError(region)


class UnknownRegionError(ValueError):
    """Nothing is known of this region; the message names the nearest ones."""

    def __init__(self, region: str) -> None:
        near = nearest_names(region, known_regions())
        hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known_regions())}"
        super().__init__(f"nothing is known of a region {region!r}; {hint}")


def bundled_snapshot(region: str) -> OfferingsSnapshot:
    """Return what is bundled of a region: zones, and on-demand prices, which are those of one region for all.

    Zones are named as in the account that the data was collected in: which data centre `a` is differs between accounts
    ("Availability Zone IDs for your AWS resources", AWS RAM), so that a type may be in other zones than these, and in
    as many. Of a region that nothing is known of there are prices only.
    """
    zones, prices = _load_zones(), load_on_demand_prices()
    collected = Origin(f"{zones['source']}, bundled", datetime.fromisoformat(zones["date"]).replace(tzinfo=UTC))
    priced = Origin(f"{prices.region}, bundled", prices.at)
    snapshot = OfferingsSnapshot(region).with_part(SnapshotPart.ON_DEMAND_PRICES, prices.usd_per_hour, priced)
    offered = zones["regions"].get(region)
    if offered is None:
        return snapshot
    named = {name: tuple(f"{region}{suffix}" for suffix in suffixes.split()) for name, suffixes in offered.items()}
    return snapshot.with_part(SnapshotPart.ZONES, named, collected)
