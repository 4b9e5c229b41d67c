"""A selection as two tables: what would be taken, best first, and what was rejected, by filter and reason."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from relaunch_cli.screen import plain_table
from relaunch_cli.words import write_price, write_share

Row = Mapping[str, object]
_NAMED = 6  # offerings named per reason; the rest is counted


def render_selection(
    rows: Sequence[Row], filter_counts: Iterable[tuple[str, int, int]], width: int, *, is_full: bool = False
) -> RenderableType:
    """Return a selection from its rows; `is_full` names every rejected offering."""
    kept = [row for row in rows if row["verdict"] == "kept"]
    rejected = [row for row in rows if row["verdict"] != "kept"]
    parts: list[RenderableType] = [_kept_table(kept, is_wide=width >= 100)] if kept else []
    if rejected:
        parts += [Text(), Text(f"Rejected: {len(rejected)} of {len(rows)} offerings", style="bold")] if parts else []
        parts.append(_rejected_table(rejected, filter_counts, is_full=is_full))
    return Group(*parts)


def _kept_table(rows: Iterable[Row], *, is_wide: bool) -> Table:
    accelerator = ("ACCELERATOR",) if is_wide else ()
    table = plain_table("#", "TYPE", *accelerator, "PURCHASE", "ZONE", "$/H", "SAVES", "CAPACITY PROVIDER")
    for heading in ("#", "$/H", "SAVES"):
        next(column for column in table.columns if column.header == heading).justify = "right"
    for column in table.columns[:-1]:
        column.no_wrap = True
    for row in rows:
        cells = (str(row["rank"]), str(row["instance_type"]), *((_accelerator(row),) if is_wide else ()))
        provider = str(row["capacity_provider"] or "")
        table.add_row(*cells, str(row["purchase"]), _zone(row), _price(row), write_share(row["saving"]), provider)
    return table


def _accelerator(row: Row) -> str:
    memory = row.get("accelerator_memory_mib")
    shown = f" {memory / 1024:.0f}GiB" if isinstance(memory, int) and memory else ""
    return f"{row['accelerator_count']}x {row['accelerator']}{shown}"


def _zone(row: Row) -> str:
    zones = row.get("zones")
    if row["zone"] or not isinstance(zones, list) or not zones:
        return str(row["zone"] or "any")
    return str(zones[0]) if len(zones) == 1 else f"{len(zones)} zones"


def _price(row: Row) -> str:
    """Return the known price, else the on-demand price that spot will not exceed."""
    if row["price_usd_per_hour"] is not None:
        return write_price(row["price_usd_per_hour"])
    return f"<={write_price(row['expected_usd_per_hour'])}" if row["expected_usd_per_hour"] is not None else "?"


def _rejected_table(rows: Iterable[Row], filter_counts: Iterable[tuple[str, int, int]], *, is_full: bool) -> Table:
    by_filter: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        zone = f" {row['zone']}" if row["zone"] else ""
        name = f"{row['instance_type']} {row['purchase']}{zone}"
        by_filter[str(row["filter"])][str(row["reason"])].append(name)
    table = plain_table("FILTER", "LEFT", "REASON")
    table.columns[0].no_wrap = True
    table.columns[1].no_wrap = True
    for filter_name, before, after in filter_counts:
        first = (filter_name, f"{before} → {after}")
        for reason, names in by_filter.get(filter_name, {}).items():
            table.add_row(*first, Text(f"{_join(names, is_full=is_full)}: ").append(reason, style="dim"))
            first = ("", "")
    return table


def _join(names: Sequence[str], *, is_full: bool) -> str:
    shown = list(names) if is_full or len(names) <= _NAMED + 1 else [*names[:_NAMED], f"{len(names) - _NAMED} more"]
    return ", ".join(shown)
