"""The capacity memory in the jobs table."""

from datetime import datetime

from pydantic import TypeAdapter

from relaunch.adapters.aws.jobs_table import JobsTable, epoch, key, stamp, text
from relaunch.core.offering import CapacityFailure, CapacityMemory, OfferingKey

_FAILURE = TypeAdapter(CapacityFailure)
_PK = "CAPACITY"


class CapacityItems:
    """Implements CapacityStore."""

    def __init__(self, table: JobsTable) -> None:
        self._table = table

    def load_capacity_memory(self, now: datetime) -> CapacityMemory:
        # Time to live deletes within days, not seconds: what has expired is still there.
        items = self._table.query(
            "pk = :pk", {":pk": text(_PK), ":now": text(stamp(now))}, FilterExpression="avoided_until > :now"
        )
        failures = [_FAILURE.validate_json(item["body"]["S"]) for item in items]
        return {failure.offering: failure for failure in failures}

    def remember(self, failure: CapacityFailure) -> None:
        until = text(stamp(failure.until))
        item = key(_PK, _sk(failure.offering)) | {
            "avoided_until": until,
            "expires_at": epoch(failure.until),
            "body": text(_FAILURE.dump_json(failure).decode()),
        }
        condition = "attribute_not_exists(avoided_until) OR avoided_until < :until"
        self._table.put(item, condition, {":until": until})


def _sk(offering: OfferingKey) -> str:
    return f"{offering.instance_type}#{offering.zone or '*'}#{offering.purchase}"
