"""Why one instance type was not chosen: every filter that it passes, and the first that it fails."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.selection.selection import FILTER_NAMES
from relaunch_cli.views.formats import write_price
from relaunch_cli.views.selection import join_zones

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of some offerings of a type, all alike; `failed` is empty where they satisfy the job."""

    rows: tuple[Row, ...]
    passed: tuple[str, ...]
    failed: str
    reason: str

    @property
    def place(self) -> str:
        """Say which offerings these are: `spot, on-demand in us-east-1a b`."""
        zones = [str(row["zone"]) for row in self.rows if row["zone"]]
        purchases = ", ".join(dict.fromkeys(str(row["purchase"]) for row in self.rows))
        providers = ", ".join(dict.fromkeys(str(row["capacity_provider"]) for row in self.rows if not row["zone"]))
        return f"{purchases} in {join_zones(zones)}" if zones else f"{purchases} on {providers}"


def explain_type(rows: Sequence[Row], instance_type: str) -> list[Verdict]:
    """Return what became of a type's offerings, those of one verdict together; empty when none is on offer."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["instance_type"] == instance_type:
            found.setdefault((str(row["filter"] or ""), str(row["reason"])), []).append(row)
    return [
        Verdict(tuple(each), FILTER_NAMES[: FILTER_NAMES.index(name)] if name else FILTER_NAMES, name, reason)
        for (name, reason), each in found.items()
    ]


def render_type(machine: InstanceType, rows: Sequence[Row], absence: str) -> RenderableType:
    """Return the explanation of one type; `absence` says so where it has no offering."""
    verdicts = explain_type(rows, machine.name)
    kept = [row for row in rows if row["verdict"] == "kept"]
    is_chosen = bool(kept) and kept[0]["instance_type"] == machine.name
    verdict = "is chosen" if is_chosen else "is not chosen"
    what = f"{machine.accelerator_count}x {machine.accelerator_model}, {machine.vcpus} vCPU, "
    title = (
        Text(machine.name, style="bold")
        .append(f" {verdict}")
        .append(f"  {what}{machine.memory_mib / 1024:g} GiB", style="dim")
    )
    if not verdicts:
        return Group(title, Text(absence))
    return Group(title, *(_verdict(each, kept) for each in verdicts))


def _verdict(verdict: Verdict, kept: Sequence[Row]) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_row("  passes", "every filter" if not verdict.failed else ", ".join(verdict.passed) or "none")
    if verdict.failed:
        table.add_row("  fails", Text(f"{verdict.failed}: {verdict.reason}"))
    else:
        table.add_row("  ranks", Text(_standing(verdict, kept)))
    return Group(Text(verdict.place), table)


def _standing(verdict: Verdict, kept: Sequence[Row]) -> str:
    first, best = verdict.rows[0], kept[0]
    if first is best:
        return f"first of {len(kept)} offerings"
    return (
        f"{first['rank']} of {len(kept)} offerings, at {_costs(first)}; the first is {_name(best)}, at {_costs(best)}"
    )


def _name(row: Row) -> str:
    return f"{row['instance_type']} {row['purchase']}" + (f" {row['zone']}" if row["zone"] else "")


def _costs(row: Row) -> str:
    hourly = f"${write_price(row['expected_usd_per_hour'])}/h"
    cost = row["expected_cost_usd"]
    return f"{hourly} and ${cost:,.2f} to finish" if isinstance(cost, int | float) else hourly


def type_shape(rows: Sequence[Row], instance_type: str) -> dict[str, object]:
    """Return the explanation as a JSON-ready mapping."""
    return {
        "instance_type": instance_type,
        "offerings": [
            {
                "purchase": row["purchase"],
                "zone": row["zone"],
                "capacity_provider": row["capacity_provider"],
                "rank": row["rank"],
                "passed": list(verdict.passed),
                "failed": verdict.failed or None,
                "reason": verdict.reason,
            }
            for verdict in explain_type(rows, instance_type)
            for row in verdict.rows
        ],
    }
