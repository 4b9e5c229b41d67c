"""The bundled catalogue, zones and on-demand prices (package data; the first two are made by catalogue/generate.py).

The prices are a dated fallback: of 93 accelerated types in us-east-1, only 4 changed price in the four years before.
Spot prices are not bundled, because they change daily.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from relaunch.core.offerings.instance_types import InstanceType, nearest_names
from relaunch.core.offerings.peaks import Peaks
from relaunch.core.offerings.snapshot import BUNDLED, OfferingsSnapshot, Origin, SnapshotPart
from relaunch.core.records import dataclass

_DATA = Path(__file__).with_name("data")


@dataclass(frozen=True, slots=True)
class ReferencePrices:
    """On-demand prices for Linux in USD per hour, of one region and one day."""

    region: str
    at: datetime
    source: str
    usd_per_hour: Mapping[str, float]


@cache
def load_catalogue() -> Mapping[str, InstanceType]:
    """Return the bundled instance types by name, ordered by family and size; loaded once per process."""
    content = json.loads((_DATA / "instance_types.json").read_bytes())
    return MappingProxyType({row.name: row for row in read_rows(content)})


def read_rows(content: Mapping[str, Any]) -> Iterator[InstanceType]:
    """Yield the instance types of the stored table: columns, sources, and one list per type."""
    columns = content["columns"]
    sources = content["sources"]
    for values in content["rows"]:
        row = dict(zip(columns, values, strict=True))
        capability = row["compute_capability"]
        row["compute_capability"] = None if capability is None else tuple(capability)
        row["usage_classes"] = tuple(row["usage_classes"])
        row["source"] = sources[row["source"]]
        yield InstanceType(**row)


def unknown_type(name: str) -> InstanceType:
    """Return a type that selection rejects by name, so that one wrong entry does not disable the others."""
    return InstanceType(name, 0, 0, "", "", "", source="unknown")


@cache
def load_on_demand_prices() -> ReferencePrices:
    """Return the bundled on-demand prices; loaded once per process."""
    content = json.loads((_DATA / "on_demand_prices.json").read_bytes())
    at = datetime.fromisoformat(content["date"]).replace(tzinfo=UTC)
    return ReferencePrices(content["region"], at, content["source"], MappingProxyType(content["usd_per_hour"]))


@cache
def load_peaks() -> Mapping[str, Peaks]:
    """Return the published peaks of accelerators by model, without those that nothing was found of."""
    table = json.loads((_DATA / "accelerator_peaks.json").read_bytes())
    return MappingProxyType(
        {
            model: Peaks(
                tensor and tuple(tensor), tuple(fp32), tuple(memory), model not in table["without_bf16"]["models"]
            )
            for model, (tensor, fp32, memory, *_) in table["models"].items()
        }
    )


@cache
def load_interruption_bands(region: str) -> Mapping[str, int]:
    """Return the bands of the EC2 Spot Instance Advisor by type, 0 to 4; empty if the region is not known.

    catalogue/spot_advisor.py makes them.
    """
    content = json.loads((_DATA / "interruption_bands.json").read_bytes())
    return MappingProxyType(content["regions"].get(region, {}))


@cache
def _load_zones() -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads((_DATA / "zones.json").read_bytes())
    return content


def known_regions() -> tuple[str, ...]:
    """Return the regions with bundled zones, sorted."""
    return tuple(sorted(_load_zones()["regions"]))


def check_region(region: str) -> None:
    """Check that there is bundled data for a region.

    Raises:
        UnknownRegionError: there is none.
    """
    if region not in known_regions():
        raise UnknownRegionError(region)


class UnknownRegionError(ValueError):
    """There is no data for the region; the message suggests similar names."""

    def __init__(self, region: str) -> None:
        near = nearest_names(region, known_regions())
        hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known_regions())}"
        super().__init__(f"nothing is known of a region {region!r}; {hint}")


def bundled_snapshot(region: str) -> OfferingsSnapshot:
    """Return the bundled zones of a region, and the bundled on-demand prices, which are those of one region.

    Zone names are those of the account in which the data was collected. Their mapping to physical zones differs between
    accounts ("Availability Zone IDs for your AWS resources", AWS RAM): in another account a type may be in the same
    number of other zones. For an unknown region there are only prices.
    """
    zones = _load_zones()
    prices = load_on_demand_prices()
    collected = Origin(f"{zones['source']}{BUNDLED}", datetime.fromisoformat(zones["date"]).replace(tzinfo=UTC))
    priced = Origin(f"{prices.region}{BUNDLED}", prices.at)
    snapshot = OfferingsSnapshot(region).with_part(SnapshotPart.ON_DEMAND_PRICES, prices.usd_per_hour, priced)
    offered = zones["regions"].get(region)
    if offered is None:
        return snapshot
    named = {name: tuple(f"{region}{suffix}" for suffix in suffixes.split()) for name, suffixes in offered.items()}
    return snapshot.with_part(SnapshotPart.ZONES, named, collected)


def has_prices_of_another_region(snapshot: OfferingsSnapshot) -> bool:
    """Return whether on-demand prices are the bundled ones, and those of another region than that of the snapshot.

    They are good enough to choose by, and not to say what spot saves: regions differ by half and more.
    """
    origin = snapshot.origins.get(SnapshotPart.ON_DEMAND_PRICES)
    return origin is not None and origin.is_bundled and snapshot.region != load_on_demand_prices().region
