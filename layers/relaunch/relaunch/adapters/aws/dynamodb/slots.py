"""Slots: counters of running jobs, one per definition and one for the stack.

They are counters instead of sets of ids because a write costs a unit per KiB, twice in a transaction, and an item is
limited to 1,000 units per second: with a thousand ids the stack could start and end only a dozen jobs per second. The
counters are correct because they change in the transaction of the job, which its version allows once.
"""

from collections.abc import Mapping

from relaunch.adapters.aws.dynamodb.table import Action, CancelledError, JobsTable, count_in, key, number, text
from relaunch.core.jobs.job import STACK_SLOT
from relaunch.core.lifecycle.decision import Decision
from relaunch.ports import SlotsFullError

_PK = "SLOTS"
# In a transaction the action of the job comes first, then those of `take_slots`, in this order.
_CAPS = ("definition", "stack")


def take_slots(decision: Decision) -> list[Action]:
    """Return the actions that take a slot of the definition and of the stack, if any."""
    if decision.take_slot_limits is None:
        return []
    caps = zip(_names(decision), decision.take_slot_limits, strict=True)
    return [_take(name, limit) for name, limit in caps]


def release_slots(decision: Decision) -> list[Action]:
    """Return the actions that release the slots, if any."""
    if not decision.release_slot:
        return []
    return [count_in(key(_PK, name), "ADD held :less", {":less": number(-1)}) for name in _names(decision)]


def put_slots(table: JobsTable, held: Mapping[str, int]) -> None:
    """Replace all counters: by the name of a definition, and STACK_SLOT."""
    known = {item["sk"]["S"] for item in table.query("pk = :pk", {":pk": text(_PK)})}
    for name in {*known, *held}:
        table.put(key(_PK, name) | {"held": number(held.get(name, 0))})


def full_cap(decision: Decision, error: CancelledError) -> SlotsFullError:
    """Return the error of the limit that cancelled a transaction."""
    position = min(error.failed) - 1
    limits = decision.take_slot_limits or (0, 0)
    return SlotsFullError(_CAPS[position], limits[position])


def _names(decision: Decision) -> tuple[str, str]:
    return decision.job.definition.name, STACK_SLOT


def _take(name: str, limit: int) -> Action:
    values = {":one": number(1), ":limit": number(limit)}
    condition = "(held < :limit OR attribute_not_exists(held))" if limit > 0 else "held < :limit"
    return count_in(key(_PK, name), "ADD held :one", values, condition)
