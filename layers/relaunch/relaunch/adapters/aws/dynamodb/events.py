"""Outcomes of events in the jobs table, with one partition per day, dispatches by their body, and last tries."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from relaunch.adapters.aws.dynamodb.table import JobsTable, epoch, key, number, read_item, stamp, text
from relaunch.adapters.stored_type import StoredType
from relaunch.core.triggers.dispatch_rate import PERIOD, DispatchStarts
from relaunch.late import made_late
from relaunch.ports import EventRecord

KEPT_DAYS = 8

_RECORD = made_late(lambda: StoredType(EventRecord))
_STARTED_AT = made_late(lambda: StoredType(dict[str, datetime]))
_STARTS = "STARTS"
_LAST_TRY = "LAST_TRY"


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
            found.extend(read_item(item, _RECORD) for item in items)
        return [record for record in found if record.at > now - timedelta(days=KEPT_DAYS)]

    def load_dispatch_starts(self, body_sha256: str) -> DispatchStarts:
        item = self._table.get(_dispatch_pk(body_sha256), _STARTS)
        if item is None:
            return DispatchStarts(body_sha256)
        started_at = self._table.read(item, _STARTED_AT)
        return DispatchStarts(body_sha256, started_at, int(item["version"]["N"]))

    def save_dispatch_starts(self, starts: DispatchStarts) -> bool:
        item = key(_dispatch_pk(starts.body_sha256), _STARTS) | {
            "version": number(starts.version + 1),
            "expires_at": epoch(max(starts.started_at.values()) + PERIOD),
            "body": text(_STARTED_AT.dump_json(dict(starts.started_at)).decode()),
        }
        if not starts.version:
            return self._table.put(item, "attribute_not_exists(pk)")
        return self._table.put(item, "version = :version", {":version": number(starts.version)})

    def begin_last_try(self, message_id: str, at: datetime) -> bool:
        item = key(f"MESSAGE#{message_id}", _LAST_TRY) | {
            "expires_at": epoch(at + timedelta(days=KEPT_DAYS)),
            "at": text(stamp(at)),
        }
        return self._table.put(item, "attribute_not_exists(pk)")


def _dispatch_pk(body_sha256: str) -> str:
    return f"DISPATCH#{body_sha256}"


def _pk(at: datetime) -> str:
    return f"EVENTS#{at.astimezone(UTC):%Y-%m-%d}"
