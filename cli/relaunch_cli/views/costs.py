"""What jobs cost: a table, and the same as comma-separated values."""

import csv
import sys
from collections.abc import Iterable, Sequence
from datetime import date

from relaunch.core.jobs.cost_report import CostRow
from relaunch_cli.terminal import one_line
from relaunch_cli.views.formatting import format_cost, format_percentage
from relaunch_cli.views.table import PlainTable

UNKNOWN = {"repository": "no repository", "type": "unknown", "purchase": "unknown", "caller": "unknown"}
"""What a group is called that has no name."""


def render_costs(rows: Iterable[CostRow], total: CostRow, groups: Sequence[str]) -> PlainTable:
    """Return the table of costs, with their sum below."""
    table = PlainTable(
        *(each.upper() for each in groups),
        *("HOURS", "COST", "ON DEMAND", "SAVED"),
        right=("HOURS", "COST", "ON DEMAND", "SAVED"),
        optional=("ON DEMAND", "SAVED", "HOURS"),
    )
    for row in rows:
        names = (value or UNKNOWN[group] for value, group in zip(row.group, groups, strict=True))
        table.add_row(*names, *_amounts(row))
    table.add_row(*("total", *[""] * len(groups))[: len(groups)], *_amounts(total))
    return table


def _amounts(row: CostRow) -> tuple[str, ...]:
    return (
        f"{row.hours:,.2f}",
        format_cost(row.usd),
        format_cost(row.on_demand_usd),
        format_percentage(row.saving) or "-",
    )


def describe_costs(total: CostRow, first: date, last: date) -> str:
    """Return the days that costs are from, which part runs still, and which hours have no known price."""
    parts = [f"{first} to {last} (UTC)"]
    if total.running_usd:
        parts.append(f"{format_cost(total.running_usd)} of it by what is not over, which is charged once it is")
    if total.unpriced_hours:
        parts.append(f"{total.unpriced_hours:,.2f} hours of an unknown price count as 0")
    return "; ".join(parts)


def print_csv(rows: Iterable[CostRow], groups: Sequence[str]) -> None:
    """Print costs as comma-separated values, with a line of names."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*groups, "hours", "unpriced_hours", "usd", "on_demand_usd", "running_usd"])
    for row in rows:
        amounts = (row.hours, row.unpriced_hours, row.usd, row.on_demand_usd, row.running_usd)
        writer.writerow([*map(_as_cell, row.group), *(f"{each:.6f}" for each in amounts)])


def _as_cell(value: str) -> str:
    """Return a value that controls no terminal, and is no formula to a spreadsheet ("CSV Injection", OWASP)."""
    value = one_line(value)
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
