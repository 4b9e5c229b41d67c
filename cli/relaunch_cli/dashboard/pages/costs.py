"""What jobs cost, by day and in groups, and the budgets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlencode

from relaunch.core.jobs.budgets import Budget, month_of
from relaunch.core.jobs.cost_report import GROUPS, CostRow, months_between, sum_costs
from relaunch_cli.cost_options import parse_groups, parse_period
from relaunch_cli.dashboard.cost_reader import SECONDS, Costs
from relaunch_cli.dashboard.http_messages import Request
from relaunch_cli.dashboard.pages.scale import LABELS_AT, Scale, percent
from relaunch_cli.running_costs import MOST
from relaunch_cli.views.budgets import percent_of
from relaunch_cli.views.costs import UNKNOWN
from relaunch_cli.views.formatting import format_cost, format_percentage

_MOST_DAYS = 92
"""Of a longer time each bar is a month."""
_MOST_LABELS = 6
_BAR = 0.72
"""Which part of its place a bar fills."""
_EVERYTHING = CostRow(())


@dataclass(frozen=True)
class CostQuery:
    """Which costs are shown: by a group, from one day (UTC) to another."""

    by: str
    first: date
    last: date


@dataclass(frozen=True)
class Bar:
    """A day or a month; places are percentages of the drawing."""

    label: str
    amounts: CostRow
    x: str
    middle: str
    width: str
    y: str
    height: str
    on_demand_y: str
    on_demand_height: str
    is_labelled: bool
    anchor: str


@dataclass(frozen=True)
class BudgetRow:
    """One limit of a budget."""

    scope: str
    period: str
    limit: float
    used: float
    percent: float | None

    @property
    def left(self) -> float:
        """Return what is left, less than 0 if more was paid than reserved."""
        return self.limit - self.used


def read_query(request: Request, now: datetime) -> CostQuery:
    """Return what an address asks for: this month by definition, unless it says otherwise.

    Raises:
        CommandError: a group or a day is none.
    """
    parameter = request.parameter
    (by,) = parse_groups([parameter("by") or "definition"])
    first, last = parse_period(parameter("since"), parameter("until"), now.astimezone(UTC).date())
    return CostQuery(by, first, last)


def costs_values(request: Request, query: CostQuery, costs: Costs, now: datetime) -> Mapping[str, object]:
    """Return the values of the template `costs.html`."""
    is_by_month = (query.last - query.first).days >= _MOST_DAYS
    by_time = sum_costs(costs.paid, costs.running, ["month" if is_by_month else "day"])
    total = next(iter(sum_costs(costs.paid, costs.running, ())), _EVERYTHING)
    scale = Scale(max((max(row.usd, row.on_demand_usd) for row in by_time), default=0.0))
    return {
        "query": query,
        "given": {name: request.parameter(name) for name in ("since", "until")},
        "groups": GROUPS,
        "rows": [_row(row, query.by, total) for row in sum_costs(costs.paid, costs.running, [query.by])],
        "total": total,
        "saving": format_percentage(total.saving) if total.saving is not None and total.saving > 0 else "",
        "unit": "month" if is_by_month else "day",
        "scale": scale,
        "labels_at": percent(LABELS_AT),
        "bars": _bars(_periods(query, is_by_month=is_by_month), by_time, scale),
        "budgets": list(_budget_rows(costs.budgets, month_of(now))),
        "read_at": costs.read_at,
        "seconds": SECONDS,
        "is_cut": costs.is_cut,
        "most": MOST,
    }


def _row(row: CostRow, by: str, total: CostRow) -> Mapping[str, object]:
    (name,) = row.group
    is_linked = by in {"definition", "repository"} and name
    return {
        "name": name or UNKNOWN[by],
        "link": f"/?{urlencode({by: name})}" if is_linked else "",
        "hours": row.hours,
        "usd": format_cost(row.usd),
        "on_demand": format_cost(row.on_demand_usd),
        "saving": format_percentage(row.saving) or "-",
        "running": format_cost(row.running_usd) if row.running_usd else "",
        "percent": 100 * row.usd / total.usd if total.usd else None,
    }


def _periods(query: CostQuery, *, is_by_month: bool) -> Sequence[tuple[str, str]]:
    """Return each day or month as costs have it, and in words."""
    if is_by_month:
        months = months_between(query.first, query.last)
        return [(month, f"{date.fromisoformat(f'{month}-01'):%b %Y}") for month in months]
    days = (query.first + timedelta(days=each) for each in range((query.last - query.first).days + 1))
    return [(day.isoformat(), f"{day:%b} {day.day}") for day in days]


def _bars(periods: Sequence[tuple[str, str]], by_time: Iterable[CostRow], scale: Scale) -> Sequence[Bar]:
    known = {row.group[0]: row for row in by_time}
    each_width = 100 / len(periods)
    width = min(each_width * _BAR, 8.0)
    every = -(-len(periods) // _MOST_LABELS)
    bars = []
    for number, (period, label) in enumerate(periods):
        row = known.get(period, _EVERYTHING)
        middle = each_width * (number + 0.5)
        bars.append(
            Bar(
                label,
                row,
                percent(middle - width / 2),
                percent(middle),
                percent(width),
                percent(scale.y(row.usd)),
                percent(scale.height(row.usd)),
                percent(scale.y(row.on_demand_usd)),
                percent(scale.height(row.on_demand_usd)),
                number % every == 0,
                _anchor(middle),
            )
        )
    return bars


def _anchor(middle: float) -> str:
    """Return which part of a label is at its place: none leaves the drawing."""
    if middle < 100 / 2 / _MOST_LABELS:
        return "start"
    return "end" if middle > 100 - 100 / 2 / _MOST_LABELS else "middle"


def _budget_rows(budgets: Iterable[Budget], month: str) -> Iterable[BudgetRow]:
    for budget in sorted(budgets, key=lambda each: each.scope):
        limits = budget.used(month)
        for period in sorted(limits, reverse=True):
            used, limit = limits[period]
            yield BudgetRow(budget.scope, period or "in all", limit, used, percent_of(used, limit))
