"""The counters of machines: one item, which changes in the transaction of the machine, like slots.

A version of a machine is written once, so it is counted once; and an update that would exceed a limit cancels the
transaction, so of two that take what is left one is written.
"""

from collections.abc import Collection

from relaunch.adapters.aws.dynamodb.table import Action, Item, JobsTable, count_in, key, number
from relaunch.core.machines.decision import MachineDecision, MachineTotals
from relaunch.core.machines.limits import add, change_of, exceeded_limit
from relaunch.ports import MachineLimitError

_PK = "MACHINES"
_SK = "TOTALS"
_MACHINES = "machines"
_PRICE = "micro_usd_per_hour"


def load_totals(table: JobsTable) -> MachineTotals:
    """Load the counters."""
    return _read(table.get(_PK, _SK) or {})


def put_totals(table: JobsTable, totals: MachineTotals) -> None:
    """Replace the counters."""
    counts = {_MACHINES: number(totals.machines), _PRICE: number(totals.micro_usd_per_hour)}
    table.put(key(_PK, _SK) | counts)


def count(decisions: Collection[MachineDecision]) -> list[Action]:
    """Return the action that changes the counters, none if they neither change nor have a limit.

    Raises:
        ValueError: there are two decisions about one machine.
    """
    change = change_of(decisions)
    if not change.is_needed:
        return []
    changes = (
        (_MACHINES, change.added.machines, change.limits.machines),
        (_PRICE, change.added.micro_usd_per_hour, change.limits.micro_usd_per_hour),
    )
    expression = "ADD " + ", ".join(f"{name} :{name}" for name, _, _ in changes)
    values = {f":{name}": number(added) for name, added, _ in changes}
    limited = [(name, limit - added) for name, added, limit in changes if limit]
    values |= {f":most_{name}": number(most) for name, most in limited}
    return [count_in(key(_PK, _SK), expression, values, " AND ".join(_condition(name, most) for name, most in limited))]


def limit_error(decisions: Collection[MachineDecision], item: Item) -> MachineLimitError:
    """Return the error of decisions that the counters of this item refused."""
    change = change_of(decisions)
    return MachineLimitError(exceeded_limit(add(_read(item), change.added), change.limits))


def _condition(name: str, most: int) -> str:
    # Before the first machine there is no item.
    missing = f"attribute_not_exists({name}) OR " if most >= 0 else ""
    return f"({missing}{name} <= :most_{name})"


def _read(item: Item) -> MachineTotals:
    return MachineTotals(*(int(item[name]["N"]) if name in item else 0 for name in (_MACHINES, _PRICE)))
