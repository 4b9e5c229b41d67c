"""A selection: what was on offer, at which price, and why the rest was left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relaunch.core.offerings.offering import OfferingKey
from relaunch.ports import JobHistory, StoredSelection
from relaunch_cli.views.selection import describe_choice, group_rejected, kept_columns, kept_lines, short_names

_MOST_LINES = 40
_MOST_NAMES = 12


@dataclass(frozen=True)
class SelectionView:
    """A selection as tables: the cells of each line, whether the attempt ran there, and reasons by filter."""

    stored: StoredSelection
    choice: str
    headings: Sequence[str]
    lines: Sequence[tuple[Sequence[str], bool]]
    left_out: int
    rejected: Sequence[tuple[str, str, str]]


def selection_views(history: JobHistory) -> Sequence[SelectionView]:
    """Return the stored selections of a job, newest first."""
    ran_on = {each.number: each.placement.offering for each in history.attempts}
    return [_view(each, ran_on.get(each.attempt_number)) for each in reversed(history.selections)]


def _view(stored: StoredSelection, ran_on: OfferingKey | None) -> SelectionView:
    kept = [row for row in stored.rows if row["verdict"] == "kept"]
    columns = kept_columns(kept)
    lines = kept_lines(kept)
    shown = lines[:_MOST_LINES]
    cells = [([cell(line) for cell in columns.values()], any(_is(row, ran_on) for row in line)) for line in shown]
    rejected = list(_rejections(stored))
    return SelectionView(stored, describe_choice(stored.rows), list(columns), cells, len(lines) - len(shown), rejected)


def _is(row: Mapping[str, object], offering: OfferingKey | None) -> bool:
    """Return whether a row is the offering that the attempt ran on; one without a zone may run in any."""
    if offering is None or (row["instance_type"], row["purchase"]) != (offering.instance_type, offering.purchase.value):
        return False
    return row["zone"] in {None, offering.zone} or offering.zone is None


def _rejections(stored: StoredSelection) -> Sequence[tuple[str, str, str]]:
    by_filter, offered = group_rejected(stored.rows)
    found = []
    for name, before, after in stored.filter_counts:
        for reason, rows in by_filter.get(name, {}).items():
            names = short_names(rows, offered)
            more = f", {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            found.append((f"{name} ({before} → {after})", ", ".join(names[:_MOST_NAMES]) + more, reason))
    return found
