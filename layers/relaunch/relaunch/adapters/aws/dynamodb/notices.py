"""what was said about jobs to receivers, and which receivers are left alone, in the jobs table."""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.adapters.aws.dynamodb.table import JobsTable, epoch, key, number, text
from relaunch.adapters.stored_type import StoredType
from relaunch.core.notices.record import NoticeRecord
from relaunch.late import made_late
from relaunch.ports import StaleWriteError
from relaunch.ports.notices import ReceiverPause, StoredRecord

_RECORD = made_late(lambda: StoredType(NoticeRecord))
_PAUSE = made_late(lambda: StoredType[ReceiverPause | None](ReceiverPause | None))
# Longer than a job may wait at most, after what was said about it last.
_KEPT = timedelta(days=90)
_PAUSE_KEPT = timedelta(days=7)
_SK = "PAUSE"


class DynamoDbNotices:
    """Implements NoticeStore. A record is under 8 KB, most are under 500 bytes."""

    def __init__(self, table: JobsTable) -> None:
        self._table = table

    def load_record(self, job_id: str, receiver: str) -> StoredRecord:
        item = self._table.get(_pk(job_id), receiver)
        if item is None:
            return StoredRecord(NoticeRecord())
        return StoredRecord(self._table.read(item, _RECORD), int(item["version"]["N"]))

    def save_record(self, job_id: str, receiver: str, stored: StoredRecord, now: datetime) -> StoredRecord:
        item = key(_pk(job_id), receiver) | {
            "version": number(stored.version + 1),
            "body": text(_RECORD.dump_json(stored.record, exclude_defaults=True).decode()),
            "expires_at": epoch(now + _KEPT),
        }
        if stored.version:
            is_saved = self._table.put(item, "version = :version", {":version": number(stored.version)})
        else:
            is_saved = self._table.put(item, "attribute_not_exists(pk)")
        if not is_saved:
            raise StaleWriteError(f"what {receiver} knows of {job_id} was changed since it was loaded")
        return replace(stored, version=stored.version + 1)

    def load_pause(self, receiver: str) -> ReceiverPause | None:
        item = self._table.get(_pause_pk(receiver), _SK)
        return None if item is None else self._table.read(item, _PAUSE)

    def save_pause(self, receiver: str, pause: ReceiverPause | None, replaced: ReceiverPause | None) -> None:
        item = key(_pause_pk(receiver), _SK) | {"body": text(_PAUSE.dump_json(pause).decode())}
        if pause is not None:
            item["expires_at"] = epoch(pause.until + _PAUSE_KEPT)
        # The end of a pause tells it from another one, and an item without a pause has none.
        if replaced is None:
            is_saved = self._table.put(item, "attribute_not_exists(expires_at)")
        else:
            is_saved = self._table.put(
                item, "expires_at = :replaced", {":replaced": epoch(replaced.until + _PAUSE_KEPT)}
            )
        if not is_saved:
            raise StaleWriteError(f"the pause of {receiver} was changed since it was loaded")


def _pk(job_id: str) -> str:
    return f"NOTICE#{job_id}"


def _pause_pk(receiver: str) -> str:
    return f"RECEIVER#{receiver}"
