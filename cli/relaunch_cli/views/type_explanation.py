"""Explanation of one instance type: the filters that its offerings pass, and the first one that they fail."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.selection.selection import FILTER_NAMES
from relaunch_cli.views.formatting import format_price, join_zones
from relaunch_cli.views.selection import Row, format_cost_range
from relaunch_cli.views.table import key_values


@dataclass(frozen=True, slots=True)
class Verdict:
    """Offerings of a type with the same outcome; `failed` is the filter that rejected them, empty if none did."""

    rows: tuple[Row, ...]
    passed: tuple[str, ...]
    failed: str
    reason: str

    @property
    def label(self) -> str:
        """Return which offerings these are: `spot, on-demand in us-east-1a b and on g5-spot`."""
        zones = [str(row["zone"]) for row in self.rows if row["zone"]]
        purchases = ", ".join(dict.fromkeys(str(row["purchase"]) for row in self.rows))
        providers = ", ".join(dict.fromkeys(str(row["capacity_provider"]) for row in self.rows if not row["zone"]))
        places = [f"in {join_zones(list(dict.fromkeys(zones)))}"] if zones else []
        places += [f"on {providers}"] if providers else []
        return f"{purchases} {' and '.join(places)}"


def explain_type(rows: Sequence[Row], instance_type: str) -> list[Verdict]:
    """Return the verdicts on the offerings of a type; empty if there are none."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["instance_type"] == instance_type:
            found.setdefault((str(row["filter"] or ""), str(row["reason"])), []).append(row)
    return [
        Verdict(tuple(each), FILTER_NAMES[: FILTER_NAMES.index(name)] if name else FILTER_NAMES, name, reason)
        for (name, reason), each in found.items()
    ]


def render_type(machine: InstanceType, rows: Sequence[Row], absence: str) -> RenderableType:
    """Return the explanation of one type; `absence` is what to print if it has no offering."""
    verdicts = explain_type(rows, machine.name)
    kept = [row for row in rows if row["verdict"] == "kept"]
    is_chosen = bool(kept) and kept[0]["instance_type"] == machine.name
    verdict = "is chosen" if is_chosen else "is not chosen"
    size = f"{machine.vcpus} vCPU, {machine.memory_mib / 1024:g} GiB" if machine.is_listed else "not listed by EC2 yet"
    hardware = f"  {machine.accelerator_count}x {machine.accelerator_model}, {size}"
    title = Text(machine.name, style="bold").append(f" {verdict}").append(hardware, style="dim")
    if not verdicts:
        return Group(title, Text(absence))
    return Group(title, *(_verdict(each, kept) for each in verdicts))


def _verdict(verdict: Verdict, kept: Sequence[Row]) -> RenderableType:
    table = key_values()
    table.add_row("  passes", "every filter" if not verdict.failed else ", ".join(verdict.passed) or "none")
    if verdict.failed:
        table.add_row("  fails", Text(f"{verdict.failed}: {verdict.reason}"))
    else:
        table.add_row("  ranks", Text(_rank(verdict, kept)))
    return Group(Text(verdict.label), table)


def _rank(verdict: Verdict, kept: Sequence[Row]) -> str:
    first = verdict.rows[0]
    best = kept[0]
    if first is best:
        return f"first of {len(kept)} offerings"
    return f"{first['rank']} of {len(kept)} offerings, at {_cost(first)}; the first is {_name(best)}, at {_cost(best)}"


def _name(row: Row) -> str:
    return f"{row['instance_type']} {row['purchase']}" + (f" {row['zone']}" if row["zone"] else "")


def _cost(row: Row) -> str:
    price = row["price_usd_per_hour"]
    expected = row["expected_usd_per_hour"]
    if expected is None:
        return "an unknown price"
    limit = "up to " if price is None else ""
    hourly = f"{limit}${format_price(expected)}/h"
    cost = format_cost_range(row)
    return f"{hourly} and {limit}{cost} to finish" if cost else hourly
