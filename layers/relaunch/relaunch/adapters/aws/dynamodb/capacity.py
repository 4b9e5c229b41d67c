"""The capacity memory in the jobs table."""

from datetime import datetime

from pydantic import TypeAdapter

from relaunch.adapters.aws.dynamodb.table import JobsTable, epoch, key, stamp, text
from relaunch.core.offerings.capacity_memory import forgotten_at, remember
from relaunch.core.offerings.offering import CapacityFailure, CapacityMemory, OfferingKey

_FAILURE = TypeAdapter(CapacityFailure)
_PK = "CAPACITY"


class DynamoDbCapacity:
    """Implements CapacityStore."""

    def __init__(self, table: JobsTable) -> None:
        self._table = table

    def load_capacity_memory(self, now: datetime) -> CapacityMemory:
        # Time to live deletes expired items only after days.
        items = self._table.query(
            "pk = :pk", {":pk": text(_PK), ":now": text(stamp(now))}, FilterExpression="avoided_until > :now"
        )
        failures = [_FAILURE.validate_json(item["body"]["S"]) for item in items]
        return {failure.offering: failure for failure in failures}

    def remember(self, failure: CapacityFailure) -> None:
        stored = self._table.get(_PK, _sk(failure.offering))
        before = _FAILURE.validate_json(stored["body"]["S"]) if stored else None
        after = remember(before, failure)
        if after == before:
            return
        until = text(stamp(after.until))
        item = key(_PK, _sk(after.offering)) | {
            "avoided_until": until,
            # An earlier failure still counts if the offering fails again.
            "expires_at": epoch(forgotten_at(after)),
            "body": text(_FAILURE.dump_json(after).decode()),
        }
        # Of concurrent writes the longer avoidance is kept; at worst a consecutive failure is not counted.
        condition = "attribute_not_exists(avoided_until) OR avoided_until <= :until"
        self._table.put(item, condition, {":until": until})


def _sk(offering: OfferingKey) -> str:
    return f"{offering.instance_type}#{offering.zone or '*'}#{offering.purchase}"
