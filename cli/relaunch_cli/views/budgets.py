"""Budgets: a table with a line for each limit, and what follows of a limit that was set."""

from collections.abc import Iterable, Iterator

from relaunch.core.jobs.budgets import Budget
from relaunch_cli.views.table import PlainTable


def render_budgets(budgets: Iterable[Budget], month: str) -> PlainTable:
    """Return the table of budgets: what is spent or reserved of each limit in a month and in all, and what is left."""
    table = PlainTable(
        *("BUDGET", "PERIOD", "LIMIT", "USED", "LEFT", "PERCENT"),
        right=("LIMIT", "USED", "LEFT", "PERCENT"),
        optional=("PERCENT", "USED"),
    )
    for budget in budgets:
        limits = budget.used(month)
        for period in sorted(limits, reverse=True):
            used, limit = limits[period]
            percent = percent_of(used, limit)
            shown = "-" if percent is None else f"{percent:,.0f}%"
            table.add_row(
                budget.scope,
                period or "in all",
                _format_usd(limit),
                _format_usd(used),
                _format_usd(limit - used),
                shown,
            )
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
