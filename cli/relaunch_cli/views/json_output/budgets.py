"""Budgets."""

from relaunch.core.jobs.budgets import Budget
from relaunch_cli.views.budgets import percent_of
from relaunch_cli.views.json_output.json_time import JsonObject


def budget_json(budget: Budget, month: str) -> JsonObject:
    """Return a budget with what is spent or reserved of its limits: in a month (UTC), and in all."""
    used = budget.used(month)
    return {"scope": budget.scope, "monthly": _limit_json(used.get(month)), "total": _limit_json(used.get(""))}


def _limit_json(limit: tuple[float, float] | None) -> JsonObject | None:
    if limit is None:
        return None
    reserved, usd = limit
    percent = percent_of(reserved, usd)
    return {
        "limit_usd": usd,
        "reserved_usd": round(reserved, 6),
        "left_usd": round(usd - reserved, 6),
        "percent": None if percent is None else round(percent, 2),
    }
