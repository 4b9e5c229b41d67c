"""Slots: how many jobs count against the caps on running jobs. There is one count of each definition and one of all.

Counts, and not sets of ids: a write costs a unit per KiB, twice in a transaction, and DynamoDB takes 1,000 units per
second of one item. A thousand ids would let the whole stack begin and end a dozen jobs per second. A count is right
because it changes with its job in one transaction, which the job's version lets through once.
"""

from relaunch.adapters.aws.dynamodb.table import Action, CancelledError, key, number
from relaunch.core.lifecycle.decision import Decision
from relaunch.ports import SlotsFullError

_PK = "SLOTS"
STACK = "*"
# The job's own action comes first in its transaction, then those of `take_slots`, in this order.
_CAPS = ("definition", "stack")


def take_slots(decision: Decision) -> list[Action]:
    """Return the actions that take a slot in both caps, or none."""
    if decision.take_slot_limits is None:
        return []
    caps = zip(_names(decision), decision.take_slot_limits, strict=True)
    return [_take(name, limit) for name, limit in caps]


def release_slots(decision: Decision) -> list[Action]:
    """Return the actions that give back the slots, or none."""
    if not decision.release_slot:
        return []
    return [
        {
            "Update": {
                "Key": key(_PK, name),
                "UpdateExpression": "ADD held :less",
                "ExpressionAttributeValues": {":less": number(-1)},
            }
        }
        for name in _names(decision)
    ]


def full_cap(decision: Decision, error: CancelledError) -> SlotsFullError:
    """Return which cap cancelled a transaction in which slots were to be taken."""
    position = min(error.failed) - 1
    limits = decision.take_slot_limits or (0, 0)
    return SlotsFullError(_CAPS[position], limits[position])


def _names(decision: Decision) -> tuple[str, str]:
    return decision.job.definition.name, STACK


def _take(name: str, limit: int) -> Action:
    values = {":one": number(1), ":limit": number(limit)}
    condition = "held < :limit"
    if limit > 0:
        condition += " OR attribute_not_exists(held)"
    return {
        "Update": {
            "Key": key(_PK, name),
            "UpdateExpression": "ADD held :one",
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values,
        }
    }
