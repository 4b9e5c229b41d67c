"""The bundled list of ACS's drivers (package data)."""

import json
from datetime import date
from functools import cache
from pathlib import Path
from types import MappingProxyType

from relaunch.core.kubernetes.acs_drivers import AcsDrivers, ModelDrivers

_FILE = Path(__file__).with_name("data") / "acs_drivers.json"


@cache
def load_acs_drivers() -> AcsDrivers:
    """Return the bundled drivers by model, of the day that the list says; loaded once per process."""
    content = json.loads(_FILE.read_bytes())
    models: dict[str, ModelDrivers] = {}
    for row in content["models"]:
        default = row["default"]
        versions = tuple(sorted({default, *row["others"]} - {""}, key=_numbers, reverse=True))
        models |= dict.fromkeys(row["names"], ModelDrivers(versions, default, row.get("is_nvidia", True)))
    return AcsDrivers(date.fromisoformat(content["date"]), MappingProxyType(models))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.partition("-")[0].split(".")))
