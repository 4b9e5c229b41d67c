"""The bundled catalogue and on-demand prices: package data, made by catalogue/generate.py and kept by hand.

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

from relaunch.core.catalogue import InstanceType

_DATA = Path(__file__).with_name("catalogue_data")


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
