"""Budgets in the jobs table: an item for each, which the transactions count in that reserve of it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from relaunch.adapters.aws.dynamodb.table import Action, CancelledError, Item, JobsTable, count_in, key, number, text
from relaunch.core.jobs.budgets import Budget, BudgetChange, BudgetReport, raised_periods
from relaunch.core.lifecycle.decision import Decision
from relaunch.ports import BudgetExceededError

_PK = "BUDGETS"
# TOTAL is a reserved word ("Reserved words in DynamoDB", developer guide).
_MONTHLY = "monthly_usd"
_TOTAL = "total_usd"
# Numbers of DynamoDB have 38 digits: sums of these are exact.
_LEAST = Decimal("0.000000001")
# `u202611` is what is reserved in a month, `r202611` the percentage that was reported of it, `uall` and `rall` in all.
_USED = "u"
_REPORTED = "r"
_ALL = "all"


def change_budgets(decision: Decision) -> list[Action]:
    """Return the actions that reserve of budgets or give back, one for each, in the order of `changed_scopes`."""
    grouped = defaultdict[str, list[BudgetChange]](list)
    for each in decision.budgets:
        grouped[each.scope].append(each)
    return [_count(scope, grouped[scope]) for scope in changed_scopes(decision)]


def changed_scopes(decision: Decision) -> list[str]:
    """Return the budgets that a decision changes."""
    return list(dict.fromkeys(each.scope for each in decision.budgets))


def exceeded(decision: Decision, error: CancelledError, first: int) -> BudgetExceededError:
    """Return the error of the first budget that cancelled a transaction, whose actions begin at this position."""
    scopes = changed_scopes(decision)
    return BudgetExceededError(next(scopes[at - first] for at in sorted(error.failed) if at >= first))


def _count(scope: str, changes: Iterable[BudgetChange]) -> Action:
    usd = defaultdict[str, Decimal](Decimal)
    most: dict[str, Decimal] = {}
    for each in changes:
        amount = _decimal(each.usd)
        names = _of_month(_USED, each.month), _USED + _ALL
        for name, limit in zip(names, each.limits or (None, None), strict=True):
            usd[name] += amount
            if amount > 0 and limit is not None:
                most[name] = _decimal(limit) - amount
    # What is absent is 0.
    absent = {name: f" OR attribute_not_exists({name})" if value >= 0 else "" for name, value in most.items()}
    condition = " AND ".join(f"({name} <= :most_{name}{absent[name]})" for name in most)
    values = {f":{name}": value for name, value in usd.items()} | {f":most_{name}": most[name] for name in most}
    added = ", ".join(f"{name} :{name}" for name in usd)
    return count_in(key(_PK, scope), f"ADD {added}", _numbers(values), condition)


def _of_month(letter: str, month: str) -> str:
    return letter + month.replace("-", "")


def _numbers(values: Mapping[str, Decimal]) -> dict[str, Any]:
    return {name: {"N": f"{value:f}"} for name, value in values.items()}


def _decimal(usd: float) -> Decimal:
    return Decimal(usd).quantize(_LEAST)


class DynamoDbBudgets:
    """Implements BudgetStore."""

    def __init__(self, table: JobsTable) -> None:
        self._table = table

    def load_budgets(self) -> Sequence[Budget]:
        return [_read(item) for item in self._table.query("pk = :pk", {":pk": text(_PK)})]

    def set_budget(
        self, before: Budget, monthly_usd: float | None, total_usd: float | None, spent: Mapping[str, float]
    ) -> bool:
        limits = {_MONTHLY: monthly_usd, _TOTAL: total_usd}
        given = {name: usd for name, usd in limits.items() if usd is not None}
        known = {_of_month(_USED, month): usd for month, usd in spent.items()} | {_USED + _ALL: sum(spent.values())}
        parts = [
            *(f"{name} = :{name}" for name in given),
            *(f"{name} = if_not_exists({name}, :{name})" for name in known),
        ]
        read = {f"before_{name}": usd for name, usd in _limits_of(before).items() if usd is not None}
        values = _numbers({f":{name}": _decimal(usd) for name, usd in {**given, **known, **read}.items()})
        forgotten = [_reported(each) for each in raised_periods(before, monthly_usd, total_usd)]
        dropped = ", ".join([*(name for name in limits if name not in given), *forgotten])
        expression = f"{f'REMOVE {dropped} ' if dropped else ''}SET {', '.join(parts)}"
        condition = " AND ".join(_is_still(name, usd) for name, usd in _limits_of(before).items())
        return self._table.update(count_in(key(_PK, before.scope), expression, values, condition)) is not None

    def save_report(self, report: BudgetReport) -> bool:
        name = _reported(report.period)
        limit = _MONTHLY if report.period else _TOTAL
        condition = f"(attribute_not_exists({name}) OR {name} < :percent) AND {limit} = :limit"
        values = {":percent": number(report.percent), **_numbers({":limit": _decimal(report.limit_usd)})}
        action = count_in(key(_PK, report.scope), f"SET {name} = :percent", values, condition)
        return self._table.update(action) is not None


def _limits_of(budget: Budget) -> Mapping[str, float | None]:
    return {_MONTHLY: budget.monthly_usd, _TOTAL: budget.total_usd}


def _is_still(name: str, usd: float | None) -> str:
    return f"attribute_not_exists({name})" if usd is None else f"{name} = :before_{name}"


def _reported(period: str) -> str:
    return _of_month(_REPORTED, period) if period else _REPORTED + _ALL


def _read(item: Item) -> Budget:
    def usd(name: str) -> float | None:
        return float(item[name]["N"]) if name in item else None

    used = {_period(name): float(value["N"]) for name, value in item.items() if _is_of(_USED, name)}
    reported = {_period(name): int(value["N"]) for name, value in item.items() if _is_of(_REPORTED, name)}
    return Budget(item["sk"]["S"], usd(_MONTHLY), usd(_TOTAL), used.pop("", 0.0), used, reported)


def _is_of(letter: str, name: str) -> bool:
    return name[0] == letter and (name[1:].isdigit() or name[1:] == _ALL)


def _period(name: str) -> str:
    return "" if name[1:] == _ALL else f"{name[1:5]}-{name[5:]}"
