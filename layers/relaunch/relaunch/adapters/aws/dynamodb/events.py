"""Outcomes of events in the jobs table, with one partition per day."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pydantic import TypeAdapter

from relaunch.adapters.aws.dynamodb.table import JobsTable, epoch, key, stamp, text
from relaunch.ports import EventRecord

KEPT_DAYS = 8

_RECORD = TypeAdapter(EventRecord)


class DynamoDbEvents:
    """Implements EventStore."""

    def __init__(self, table: JobsTable) -> None:
        self._table = table

    def record_event(self, identity: str, source: str, outcome: str, job_ids: Sequence[str], at: datetime) -> None:
        record = EventRecord(identity, source, outcome, tuple(job_ids), at)
        # An identity contains an object key, which alone may have 1,024 bytes, the limit of a sort key.
        short = hashlib.sha256(identity.encode()).hexdigest()[:16]
        item = key(_pk(at), f"{stamp(at)}#{short}") | {
            "expires_at": epoch(at + timedelta(days=KEPT_DAYS)),
            "body": text(_RECORD.dump_json(record).decode()),
        }
        self._table.put(item)

    def list_events(self, now: datetime, limit: int) -> list[EventRecord]:
        found: list[EventRecord] = []
        for days in range(KEPT_DAYS + 1):
            pk = text(_pk(now - timedelta(days=days)))
            items = self._table.query("pk = :pk", {":pk": pk}, limit=limit - len(found), newest_first=True)
            found.extend(_RECORD.validate_json(item["body"]["S"]) for item in items)
        return [record for record in found if record.at > now - timedelta(days=KEPT_DAYS)]


def _pk(at: datetime) -> str:
    return f"EVENTS#{at.astimezone(UTC):%Y-%m-%d}"
