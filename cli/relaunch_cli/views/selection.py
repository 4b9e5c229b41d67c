"""Tables of a selection: the offerings that were kept, best first, and the rejected ones by filter and reason."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from rich.console import Group, RenderableType
from rich.text import Text

from relaunch.core.offerings.offering import has_purchase_options
from relaunch.core.selection.instance_type_filters import format_gpu_memory
from relaunch.core.selection.speeds import SpeedBasis
from relaunch_cli.views.formatting import format_count, format_percentage, format_price, join_zones
from relaunch_cli.views.table import PlainTable

Row = Mapping[str, object]
_OTHER_REGION = "~"
_MAX_NAMES = 6  # offerings named per reason; the others are counted
_MAX_REASONS = 4  # reasons given per filter; the others are counted


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """How a selection is shown: `limit` is the number of lines of kept offerings (0: all).

    `has_rejected`: with the filters that rejected others, and why; `is_full`: with the name of each of these.
    `full_option` is the command's option for that.
    """

    limit: int = 0
    has_rejected: bool = False
    is_full: bool = False
    full_option: str = "--all"


def render_selection(
    rows: Sequence[Row], filter_counts: Sequence[tuple[str, int, int]], options: SelectionOptions
) -> RenderableType:
    """Return the tables of a selection's rows; of one that kept nothing, always why."""
    kept = [row for row in rows if row["verdict"] == "kept"]
    rejected = len(rows) - len(kept)
    parts: list[RenderableType] = _kept_parts(kept, limit=options.limit) if kept else []
    if rejected and (options.has_rejected or not kept):
        parts += [Text(), Text(f"Rejected: {rejected} of {len(rows)} offerings", style="bold")] if parts else []
        parts.append(_rejected_table(rows, filter_counts, options))
    elif rejected:
        by_filter = _by_filter(filter_counts)
        parts.append(Text(f"left out: {rejected} of {len(rows)} offerings, by {by_filter} (--rejected)", style="dim"))
    return Group(*parts)


def shows_other_region(rows: Iterable[Row], options: SelectionOptions) -> bool:
    """Return whether a price that is shown has the sign of another region's."""
    lines = kept_lines([row for row in rows if row["verdict"] == "kept"], limit=options.limit)
    return any(_price(line[0]).startswith(_OTHER_REGION) for line in lines)


def _by_filter(filter_counts: Iterable[tuple[str, int, int]]) -> str:
    return ", ".join(f"{name} {before - after}" for name, before, after in filter_counts if before > after)


def describe_choice(rows: Sequence[Row]) -> str:
    """Return the choice in one sentence; empty if nothing was kept."""
    chosen = next((row for row in rows if row["verdict"] == "kept"), None)
    if chosen is None:
        return ""
    where = f" in {chosen['zone']}" if chosen["zone"] else ""
    through = f" by {chosen['capacity_provider']}" if chosen["capacity_provider"] else ""
    machine = f"{chosen['instance_type']} ({_accelerator(chosen)})"
    return f"{machine}{_bought(chosen)}{where}{through} {_describe_cost(chosen)}"


def _bought(row: Row) -> str:
    """Return ` spot`, or nothing where a job chooses no purchase option."""
    return f" {row['purchase']}" if has_purchase_options(str(row["instance_type"])) else ""


def _describe_cost(row: Row) -> str:
    expected = row["expected_usd_per_hour"]
    cost = format_cost_range(row)
    if expected is None:
        return "at an unknown price"
    if region := row.get("price_region"):
        finish = f", about {cost} to finish" if cost else ""
        return f"at the price of {region}, ${format_price(expected)}/h{finish}"
    limit = "" if row["price_usd_per_hour"] is not None else "at most "
    finish = f", {limit or 'about '}{cost} to finish" if cost else ""
    return f"{'at ' if not limit else 'for '}{limit}${format_price(expected)}/h{finish}"


def format_cost_range(row: Row) -> str:
    """Return the expected cost to finish: `$5.43`, or `$1.39-5.43` where the speed is bounded; empty if not known."""
    least = row.get("least_cost_usd")
    cost = row.get("expected_cost_usd")
    if not isinstance(cost, int | float):
        return ""
    most = f"{cost:,.2f}"
    shown = f"{least:,.2f}" if isinstance(least, int | float) else most
    return f"${most}" if shown == most else f"${shown}-{most}"


Line = Sequence[Row]
"""Offerings that differ only in their zone, shown in one line."""


def _kept_parts(kept: Sequence[Row], *, limit: int) -> list[RenderableType]:
    lines = kept_lines(kept)
    shown = kept_lines(kept, limit=limit)
    parts: list[RenderableType] = [_kept_table(shown, kept_columns(kept))]
    if speeds := _describe_speeds(row for line in shown for row in line):
        parts.append(Text(speeds, style="dim"))
    if len(shown) < len(lines):
        left = sum(len(line) for line in lines[len(shown) :])
        parts.append(Text(f"and {format_count(left, 'offering')} more: see --limit", style="dim"))
    return parts


def kept_lines(kept: Iterable[Row], *, limit: int = 0) -> Sequence[Line]:
    """Return the lines of kept offerings, the first `limit` of them (0: all); zones of one price share a line."""
    lines = [list(rows) for _, rows in groupby(kept, _group_key)]
    return lines[:limit] if limit else lines


def _group_key(row: Row) -> tuple[object, ...]:
    keys = ("price_usd_per_hour", "expected_usd_per_hour", "placement_score", "expected_cost_usd")
    provider = row["capacity_provider"] if row["zone"] else id(row)  # without a zone every offering has its own line
    return (row["instance_type"], row["purchase"], provider, _reservation(row), *(row.get(key) for key in keys))


def kept_columns(kept: Sequence[Row]) -> dict[str, Callable[[Line], str]]:
    """Return the cell of each column by heading; without columns that would be empty for every offering."""
    has_work = any(row.get("expected_cost_usd") is not None for row in kept)
    columns: dict[str, tuple[bool, Callable[[Line], str]]] = {
        "TYPE": (True, lambda line: str(line[0]["instance_type"])),
        "ACCELERATOR": (True, lambda line: _accelerator(line[0])),
        "PURCHASE": (any(map(_bought, kept)), lambda line: _bought(line[0]).strip()),
        "ZONE": (True, _zones),
        "$/H": (True, lambda line: _price(line[0])),
        "SAVES": (any(row["saving"] for row in kept), lambda line: format_percentage(line[0]["saving"])),
        "SCORE": (any(row.get("placement_score") is not None for row in kept), lambda line: _score(line[0])),
        "TO FINISH": (has_work, lambda line: _cost(line[0])),
        "RESERVATION": (any(row.get("reservation") for row in kept), lambda line: _reservation(line[0])),
        "CAPACITY PROVIDER": (
            any(row["capacity_provider"] for row in kept),
            lambda line: str(line[0]["capacity_provider"] or ("own machine" if line[0].get("is_own_machine") else "")),
        ),
    }
    return {heading: cell for heading, (is_known, cell) in columns.items() if is_known}


def _kept_table(lines: Iterable[Line], columns: Mapping[str, Callable[[Line], str]]) -> PlainTable:
    table = PlainTable(
        *("#", *columns),
        right=("#", "$/H", "SAVES", "SCORE", "TO FINISH"),
        optional=("RESERVATION", "ACCELERATOR", "SCORE", "CAPACITY PROVIDER", "SAVES", "ZONE", "TO FINISH"),
    )
    for number, line in enumerate(lines, start=1):
        table.add_row(str(number), *(cell(line) for cell in columns.values()))
    return table


def _accelerator(row: Row) -> str:
    memory = row.get("accelerator_memory_mib")
    shown = f" {format_gpu_memory(memory)}" if isinstance(memory, int) and memory else ""
    return f"{row['accelerator_count']}x {row['accelerator'] or 'GPU'}{shown}"


def _zones(line: Line) -> str:
    zones = [str(row["zone"]) for row in line if row["zone"]]
    if not zones:
        return _provider_zones(line[0])
    return join_zones(zones)


def _provider_zones(row: Row) -> str:
    zones = row.get("zones")
    if not isinstance(zones, list) or not zones:
        return "any"
    return str(zones[0]) if len(zones) == 1 else f"{len(zones)} zones"


def _price(row: Row) -> str:
    """Return the price, or the on-demand price as the upper limit of an unknown spot price; `~`: of another region."""
    if row.get("price_region"):
        is_spot = row["price_usd_per_hour"] is None
        return "?" if is_spot else f"{_OTHER_REGION}{format_price(row['price_usd_per_hour'])}"
    if row["price_usd_per_hour"] is not None:
        return format_price(row["price_usd_per_hour"])
    return f"<={format_price(row['expected_usd_per_hour'])}" if row["expected_usd_per_hour"] is not None else "?"


def _reservation(row: Row) -> str:
    """Return the reservation, its free instances and its end: `cr-0abc, 3 of 8 free, ends 2026-11-25 11:30 UTC`."""
    reservation = row.get("reservation")
    if not isinstance(reservation, Mapping):
        return ""
    parts = [f"{reservation['id']}", f"{reservation['available']} of {reservation['total']} free"]
    if reservation["ends_at"] is not None:
        parts.append(f"ends {datetime.fromisoformat(str(reservation['ends_at'])):%Y-%m-%d %H:%M} UTC")
    return ", ".join(parts)


def _score(row: Row) -> str:
    """Return EC2's spot placement score, 1 to 10."""
    score = row.get("placement_score")
    return "" if score is None else f"{score}/10"


def _cost(row: Row) -> str:
    """Return the expected cost to finish; `never` if the job would be interrupted too often to finish."""
    cost = format_cost_range(row)
    if cost and row.get("price_region"):
        return "?" if row["price_usd_per_hour"] is None else f"{_OTHER_REGION}{cost}"
    if cost:
        return cost if row["price_usd_per_hour"] is not None else f"<={cost}"
    return "?" if row["expected_usd_per_hour"] is None or row.get("speed") is None else "never"


def _describe_speeds(kept: Iterable[Row]) -> str:
    """Return what the costs to finish rest on: where the speed was measured, and how others compare with that."""
    measured: list[str] = []
    bounded: list[str] = []
    unknown: list[str] = []
    for row in kept:
        model = str(row["accelerator"])
        speed = row.get("speed")
        if not isinstance(speed, Mapping):
            unknown.append(model)
        elif speed["basis"] == SpeedBasis.MEASURED:
            measured.append(model)
        elif speed["basis"] == SpeedBasis.LEARNED:
            measured.append(f"{model} ({_describe_learned(speed)})")
        elif speed["basis"] == SpeedBasis.PEAKS:
            bounded.append(f"{model} {speed['slow']:.2g}-{speed['fast']:.2g}")
    if not measured and not bounded:
        return ""
    parts = (
        ("measured on ", measured, ""),
        ("published peaks bound others to so many times that speed: ", bounded, ""),
        ("", unknown, " cannot be compared, and comes last"),
    )
    shown = (f"{before}{', '.join(dict.fromkeys(names))}{after}" for before, names, after in parts if names)
    return f"TO FINISH: {'; '.join(shown)}"


def _describe_learned(speed: Mapping[str, object]) -> str:
    """Return by how many jobs a speed was measured, and what a save takes: `3 jobs, a save takes 31 s`."""
    seconds = speed["save_seconds"]
    save = f", a save takes {seconds:.3g} s" if isinstance(seconds, int | float) else ""
    return f"{format_count(int(str(speed['jobs'])), 'job')}{save}"


def group_rejected(rows: Iterable[Row]) -> tuple[Mapping[str, Mapping[str, Sequence[Row]]], Mapping[object, int]]:
    """Return the rejected offerings by filter and reason, and how many were on offer of each type and purchase."""
    by_filter: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    offered: dict[object, int] = defaultdict(int)
    for row in rows:
        offered[row["instance_type"]] += 1
        offered[row["instance_type"], row["purchase"]] += 1
        if row["verdict"] != "kept":
            by_filter[str(row["filter"])][str(row["reason"])].append(row)
    return by_filter, offered


def _rejected_table(
    rows: Sequence[Row], filter_counts: Iterable[tuple[str, int, int]], options: SelectionOptions
) -> PlainTable:
    by_filter, offered = group_rejected(rows)
    table = PlainTable("FILTER", "LEFT", "REASON", optional=("LEFT",), prose="wrapped")
    for filter_name, before, after in filter_counts:
        for reason in _reasons(by_filter.get(filter_name, {}), offered, options):
            table.add_row(filter_name, f"{before} → {after}", reason)
    return table


def _reasons(
    by_reason: Mapping[str, Sequence[Row]], offered: Mapping[object, int], options: SelectionOptions
) -> Iterable[Text]:
    """Yield the offerings of each reason; of many reasons, only the first ones."""
    reasons = list(by_reason.items())
    named = reasons if options.is_full or len(reasons) <= _MAX_REASONS + 1 else reasons[:_MAX_REASONS]
    for reason, rows in named:
        yield Text(f"{_join(short_names(rows, offered), is_full=options.is_full)}: ").append(reason, style="dim")
    if left := [row for _, rows in reasons[len(named) :] for row in rows]:
        yield Text(f"{len(left)} more for other reasons of this filter: see {options.full_option}", style="dim")


def short_names(rows: Sequence[Row], offered: Mapping[object, int]) -> list[str]:
    """Return short names of offerings: the instance type alone stands for all offerings of it."""
    by_type: dict[object, list[Row]] = defaultdict(list)
    for row in rows:
        by_type[row["instance_type"]].append(row)
    names: list[str] = []
    for instance_type, group in by_type.items():
        if len(group) > 1 and len(group) == offered[instance_type]:
            names.append(str(instance_type))
            continue
        for purchase in dict.fromkeys(row["purchase"] for row in group):
            zones = [str(row["zone"] or "") for row in group if row["purchase"] == purchase]
            is_all = len(zones) > 1 and len(zones) == offered[instance_type, purchase]
            where = "" if is_all or not all(zones) else f" {join_zones(zones)}"
            names.append(f"{instance_type}{_bought(group[0]) and f' {purchase}'}{where}")
    return names


def _join(names: Sequence[str], *, is_full: bool) -> str:
    shown = (
        list(names)
        if is_full or len(names) <= _MAX_NAMES + 1
        else [*names[:_MAX_NAMES], f"{len(names) - _MAX_NAMES} more"]
    )
    return ", ".join(shown)
