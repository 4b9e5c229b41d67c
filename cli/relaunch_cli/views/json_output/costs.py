"""What jobs cost."""

from collections.abc import Iterable, Sequence
from datetime import date

from relaunch.core.jobs.cost_report import CostRow
from relaunch_cli.views.json_output.json_time import JsonObject


def costs_json(
    rows: Iterable[CostRow], total: CostRow, groups: Sequence[str], first: date, last: date, *, is_cut: bool
) -> JsonObject:
    """Return the document of `costs`; `is_cut`: not all that runs was read."""
    return {
        "since": first.isoformat(),
        "until": last.isoformat(),
        "by": list(groups),
        "costs": [dict(zip(groups, row.group, strict=True)) | _amounts_json(row) for row in rows],
        "total": _amounts_json(total),
        "is_cut": is_cut,
    }


def _amounts_json(row: CostRow) -> JsonObject:
    return {
        "usd": round(row.usd, 6),
        "on_demand_usd": round(row.on_demand_usd, 6),
        "hours": round(row.hours, 6),
        "unpriced_hours": round(row.unpriced_hours, 6),
        "running_usd": round(row.running_usd, 6),
    }
