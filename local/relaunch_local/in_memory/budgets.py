"""Budgets in memory; the contract tests compare them with those in DynamoDB."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from relaunch.core.jobs.budgets import Budget, BudgetChange, BudgetReport, raised_periods
from relaunch.ports import BudgetExceededError


class InMemoryBudgets:
    """Implements BudgetStore; jobs change them with their decisions."""

    def __init__(self) -> None:
        self._budgets: dict[str, Budget] = {}

    def load_budgets(self) -> Sequence[Budget]:
        return [budget for _, budget in sorted(self._budgets.items())]

    def set_budget(
        self, before: Budget, monthly_usd: float | None, total_usd: float | None, spent: Mapping[str, float]
    ) -> bool:
        scope = before.scope
        known = self._budgets.get(scope, Budget(scope))
        if (known.monthly_usd, known.total_usd) != (before.monthly_usd, before.total_usd):
            return False
        is_new = scope not in self._budgets
        forgotten = raised_periods(before, monthly_usd, total_usd)
        self._budgets[scope] = replace(
            known,
            monthly_usd=monthly_usd,
            total_usd=total_usd,
            reserved_usd=sum(spent.values()) if is_new else known.reserved_usd,
            reserved_in={**spent, **known.reserved_in},
            reported={period: percent for period, percent in known.reported.items() if period not in forgotten},
        )
        return True

    def save_report(self, report: BudgetReport) -> bool:
        budget = self._budgets[report.scope]
        limit = budget.monthly_usd if report.period else budget.total_usd
        if budget.reported.get(report.period, 0) >= report.percent or limit != report.limit_usd:
            return False
        self._budgets[report.scope] = replace(budget, reported={**budget.reported, report.period: report.percent})
        return True

    def check(self, changes: Iterable[BudgetChange]) -> None:
        """Raise BudgetExceededError if a limit would be exceeded."""
        for each in changes:
            budget = self._budgets.get(each.scope, Budget(each.scope))
            used = budget.reserved_in.get(each.month, 0.0), budget.reserved_usd
            for reserved, limit in zip(used, each.limits or (None, None), strict=True):
                if each.usd > 0 and limit is not None and round(reserved + each.usd - limit, 9) > 0:
                    raise BudgetExceededError(each.scope)

    def change(self, changes: Iterable[BudgetChange]) -> None:
        """Reserve, and give back."""
        for each in changes:
            budget = self._budgets.get(each.scope, Budget(each.scope))
            months = {**budget.reserved_in, each.month: budget.reserved_in.get(each.month, 0.0) + each.usd}
            reserved_usd = budget.reserved_usd + each.usd
            self._budgets[each.scope] = replace(budget, reserved_usd=reserved_usd, reserved_in=months)
