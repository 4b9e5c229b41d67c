"""Budgets: a table with a line for each limit, and what follows of a limit that was set."""

from collections.abc import Iterable, Iterator, Mapping

from relaunch.core.jobs.budgets import Budget
from relaunch_cli.views.table import PlainTable

SpentBy = Mapping[str, Mapping[str, float]]
"""What the jobs of each scope have cost whose machines are charged: by month as `2026-11`, and in all as ``."""


def split_used(used: float, scope: str, period: str, spent: SpentBy) -> tuple[float, float]:
    """Return what is spent of a limit, and what is reserved beyond that for what runs; together it is what is used."""
    paid = min(spent.get(scope, {}).get(period, 0.0), used)
    return paid, used - paid


def render_budgets(budgets: Iterable[Budget], month: str, spent: SpentBy) -> PlainTable:
    """Return the table of budgets: what is spent and reserved of each limit in a month and in all, and what is left."""
    table = PlainTable(
        *("BUDGET", "PERIOD", "LIMIT", "SPENT", "RESERVED", "LEFT", "PERCENT"),
        right=("LIMIT", "SPENT", "RESERVED", "LEFT", "PERCENT"),
        optional=("PERCENT", "RESERVED", "SPENT"),
    )
    for budget in budgets:
        limits = budget.used(month)
        for period in sorted(limits, reverse=True):
            used, limit = limits[period]
            percent = percent_of(used, limit)
            shown = "-" if percent is None else f"{percent:,.0f}%"
            usd = (limit, *split_used(used, budget.scope, period, spent), limit - used)
            table.add_row(budget.scope, period or "in all", *map(_format_usd, usd), shown)
    return table


def percent_of(used: float, limit: float) -> float | None:
    """Return which percentage of a limit is used; None of a limit of 0."""
    return 100 * used / limit if limit else None


def _format_usd(usd: float) -> str:
    cents = round(usd, 2)
    return f"-${-cents:,.2f}" if cents < 0 else f"${abs(cents):,.2f}"


def describe_consequences(before: Budget | None, budget: Budget, month: str) -> Iterator[str]:
    """Yield what follows of a budget that was set; `before` is None if no job counted in it until now."""
    left = budget.left(month)
    if before is None:
        yield (
            "jobs that run reserve of it what they have cost and an hour more at their next look, within ten minutes; "
            "one that finds no room saves and waits"
        )
    elif left > before.left(month):
        yield "jobs that wait for it look again within ten minutes"
    if left > 0:
        return
    yield "it is used up: no job of it starts until it has room again"
    if before is not None:
        yield "jobs that run go on with what they have reserved, an hour at most, then they save and wait"
