"""What was said about jobs to receivers, in memory."""

from dataclasses import replace
from datetime import datetime

from relaunch.core.notices.record import NoticeRecord
from relaunch.ports import StaleWriteError
from relaunch.ports.notices import ReceiverPause, StoredRecord


class InMemoryNotices:
    """Implements NoticeStore."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, str], StoredRecord] = {}
        self._pauses: dict[str, ReceiverPause] = {}

    def load_record(self, job_id: str, receiver: str) -> StoredRecord:
        return self._records.get((job_id, receiver), StoredRecord(NoticeRecord()))

    def save_record(self, job_id: str, receiver: str, stored: StoredRecord, now: datetime) -> StoredRecord:
        del now
        if self.load_record(job_id, receiver).version != stored.version:
            raise StaleWriteError(f"what {receiver} knows of {job_id} was changed since it was loaded")
        saved = replace(stored, version=stored.version + 1)
        self._records[job_id, receiver] = saved
        return saved

    def load_pause(self, receiver: str) -> ReceiverPause | None:
        return self._pauses.get(receiver)

    def save_pause(self, receiver: str, pause: ReceiverPause | None, replaced: ReceiverPause | None) -> None:
        if self._pauses.get(receiver) != replaced:
            raise StaleWriteError(f"the pause of {receiver} was changed since it was loaded")
        if pause is None:
            self._pauses.pop(receiver, None)
        else:
            self._pauses[receiver] = pause
