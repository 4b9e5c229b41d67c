"""Budgets."""

from relaunch.core.jobs.budgets import Budget
from relaunch_cli.views.budgets import SpentBy, percent_of, split_used
from relaunch_cli.views.json_output.json_time import JsonObject


def budget_json(budget: Budget, month: str, spent: SpentBy) -> JsonObject:
    """Return a budget with what is spent or reserved of its limits: in a month (UTC), and in all.

    `reserved_usd` is all of that, as events have it; `spent_usd` is the part of it that is paid.
    """
    limits = {
        period: _limit_json(reserved, usd, split_used(reserved, budget.scope, period, spent)[0])
        for period, (reserved, usd) in budget.used(month).items()
    }
    return {"scope": budget.scope, "monthly": limits.get(month), "total": limits.get("")}


def _limit_json(reserved: float, usd: float, spent: float) -> JsonObject:
    percent = percent_of(reserved, usd)
    return {
        "limit_usd": usd,
        "reserved_usd": round(reserved, 6),
        "spent_usd": round(spent, 6),
        "left_usd": round(usd - reserved, 6),
        "percent": None if percent is None else round(percent, 2),
    }
