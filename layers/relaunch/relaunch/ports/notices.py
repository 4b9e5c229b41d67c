"""Receivers of notices, and what was said to them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias

from relaunch.core.records import dataclass

if TYPE_CHECKING:
    from relaunch.core.lifecycle.change_events import JobStateChange
    from relaunch.core.notices.notice import Notice, Subscription
    from relaunch.core.notices.record import NoticeRecord


@dataclass(frozen=True, slots=True)
class Delivered:
    """The receiver has the notice; `thread` is what later notices of the job are put under, empty without threads.

    `answer` is what it said, in a few words, for the person who tries it out.
    """

    thread: str = ""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Postponed:
    """The receiver does not take notices now; `retry_at` is what it asks for, None leaves it to us.

    Also what somebody can set right within hours is postponed: a token that was revoked, a channel that is gone.
    """

    reason: str
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """There is no room for this notice before `until`, where others go first; it holds up no other one."""

    until: datetime
    reason: str = "others go first"
    is_alert: bool = False
    """Whether somebody should look at the reason: of each it is said once a day."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The receiver will never take this notice; `is_known`: somebody was alerted of this reason already."""

    reason: str
    is_known: bool = False


Outcome: TypeAlias = Delivered | Held | Postponed | Refused


class NoticeReceiver(Protocol):
    """Where notices go to; each has a name of its own, which its subscription has."""

    @property
    def subscription(self) -> Subscription:
        """Return what it wants."""

    def deliver(self, notice: Notice, thread: str) -> Outcome:
        """Deliver a notice within 20 seconds; `thread` is what it answered to the first one of the job, or empty.

        It may be called twice for one notice, if the answer or the function was lost: `notice.notice_id` is the same.
        Errors are not raised, and no reason has a secret or an address in it.
        """


class ReceiverSource(Protocol):
    """The receivers of a stack."""

    def receivers_for(self, event: JobStateChange) -> Sequence[NoticeReceiver]:
        """Return the receivers that may want an event: at most MAX_RECEIVERS, those of its definition included.

        Raises:
            TransientError: they cannot be read now.
        """


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record, and the version on whose condition it is replaced; 0 if there is none yet."""

    record: NoticeRecord
    version: int = 0


@dataclass(frozen=True, slots=True)
class ReceiverPause:
    """Since when a receiver takes nothing, and until when it is left alone, by every function."""

    since: datetime
    until: datetime
    reason: str = ""
    is_reported: bool = False
    """Whether somebody was alerted."""


class NoticeStore(Protocol):
    """What was said about each job to each receiver, and which receivers are left alone."""

    def load_record(self, job_id: str, receiver: str) -> StoredRecord:
        """Return what a receiver knows of a job, strongly consistent; an empty record if that is nothing."""

    def save_record(self, job_id: str, receiver: str, stored: StoredRecord, now: datetime) -> StoredRecord:
        """Replace a record of this version; return it with its new version.

        Raises:
            StaleWriteError: it was replaced since it was loaded.
        """

    def load_pause(self, receiver: str) -> ReceiverPause | None:
        """Return the pause of a receiver, also one that is over; None if it took the last notice."""

    def save_pause(self, receiver: str, pause: ReceiverPause | None, replaced: ReceiverPause | None) -> None:
        """Replace the pause of a receiver that was loaded, `replaced`; None for `pause` ends it.

        Raises:
            StaleWriteError: another function saved another one since.
        """


class NoReceivers:
    """Implements ReceiverSource for functions that send no notices."""

    def receivers_for(self, event: JobStateChange) -> Sequence[NoticeReceiver]:
        """Return none."""
        del event
        return ()
