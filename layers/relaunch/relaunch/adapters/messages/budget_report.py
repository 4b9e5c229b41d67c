"""The event that a budget is nearly or wholly used up, as receivers get it (docs/events.md)."""

import json

from relaunch.core.jobs.budgets import BudgetReport

BUDGET_DETAIL_TYPE = "Budget Reached"
_SCHEMA_VERSION = 1


def write_budget_detail(report: BudgetReport) -> str:
    """Return the detail of the event, as JSON; `month` is null for a limit in all."""
    return json.dumps(
        {
            "schema_version": _SCHEMA_VERSION,
            "scope": report.scope,
            "month": report.period or None,
            "percent": report.percent,
            "reserved_usd": round(report.reserved_usd, 2),
            "limit_usd": round(report.limit_usd, 2),
            "at": report.at.isoformat(),
        }
    )
