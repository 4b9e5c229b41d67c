"""What jobs cost by day: an item per month and key, to which the transaction adds that saves why it was paid."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from relaunch.adapters.aws.dynamodb.table import Action, Item, JobsTable, count_in, epoch, key, text
from relaunch.core.jobs.cost import CostEntry, CostKey
from relaunch.core.jobs.cost_report import KEPT, months_between
from relaunch.core.machines.charges import DayCost

# What is summed up of a day, and the letter with which its attributes begin: `u07` are the USD of the seventh.
_SUMS = {"usd": "u", "on_demand_usd": "o", "hours": "h", "unpriced_hours": "n"}
_PARTS = ("definition", "repository", "caller", "instance_type", "purchase")
# Numbers of DynamoDB have 38 digits: sums of these are exact.
_LEAST = Decimal("0.000000001")


def add_costs(entries: Iterable[CostEntry]) -> list[Action]:
    """Return the actions that add costs to the sums, one for each item."""
    added: dict[tuple[str, CostKey], dict[str, Decimal]] = defaultdict(dict)
    for entry in entries:
        for day in entry.days:
            sums = added[f"{day.day:%Y-%m}", entry.key]
            for name, letter in _SUMS.items():
                if value := Decimal(getattr(day, name)).quantize(_LEAST):
                    attribute = f"{letter}{day.day:%d}"
                    sums[attribute] = sums.get(attribute, Decimal(0)) + value
    return [_add(month, cost_key, sums) for (month, cost_key), sums in added.items() if sums]


def _add(month: str, cost_key: CostKey, sums: Mapping[str, Decimal]) -> Action:
    values: dict[str, dict[str, Any]] = {f":{name}": {"N": f"{value:f}"} for name, value in sums.items()}
    last = datetime.fromisoformat(f"{month}-01T00:00:00+00:00") + timedelta(days=31)
    return count_in(
        key(f"COSTS#{month}", json.dumps([getattr(cost_key, name) for name in _PARTS])),
        f"ADD {', '.join(f'{name} :{name}' for name in sums)} SET expires_at = :expires_at",
        values | {":expires_at": epoch(last + KEPT)},
    )


def load_costs(table: JobsTable, first: date, last: date) -> list[CostEntry]:
    """Return what was paid on the days from `first` to `last`, one entry per key and month."""
    found = (
        _read(month, item).within(first, last)
        for month in months_between(first, last)
        for item in table.query("pk = :pk", {":pk": text(f"COSTS#{month}")})
    )
    return [each for each in found if each.days]


def _read(month: str, item: Item) -> CostEntry:
    of_day: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(_SUMS, 0.0))
    for name, letter in _SUMS.items():
        for attribute, value in item.items():
            if attribute[0] == letter and attribute[1:].isdigit():
                of_day[attribute[1:]][name] = float(value["N"])
    days = (DayCost(date.fromisoformat(f"{month}-{number}"), **sums) for number, sums in sorted(of_day.items()))
    return CostEntry(CostKey(**dict(zip(_PARTS, json.loads(item["sk"]["S"]), strict=True))), tuple(days))
