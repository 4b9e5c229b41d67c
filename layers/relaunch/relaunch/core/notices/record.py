"""What was said about a job to a receiver: the small state from which the next notice follows."""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.notices.notice import Interruption
from relaunch.core.records import dataclass

MAX_INTERRUPTIONS = 100
"""How many interruptions of a job are counted; of more, the oldest are not."""
CLAIM = timedelta(seconds=45)
"""For how long one function alone may deliver: longer than a delivery takes, with the time-outs of its sender."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRecord:
    """What one receiver knows of one job.

    Sequences are those of the events. `noted` is the greatest that the receiver wants and `said` the greatest that was
    sent to it or given up: what is less than either is never sent, so that no text goes back.
    """

    noted: int = 0
    noted_at: datetime | None = None
    """Since when that one is tried: its event may have been on its way for long."""
    said: int = 0
    thread: str = ""
    """What the receiver answered for the first notice, or for the one after that was lost, under which it puts the next
    ones; empty without threads."""
    said_between_at: datetime | None = None
    """When it was last sent something between the first start and the end."""
    interruptions: tuple[Interruption, ...] = ()
    settled: int = 0
    """The greatest at which the job ran or was over."""
    wait_said: int = 0
    """The greatest whose wait was said to be too long."""
    wait_sequence: int = 0
    wait_reason: str = ""
    """What it waits for, in words, by the greatest event that says so."""
    claimed_until: datetime | None = None
    first_at: datetime | None = None
    """The time of the earliest event that changed the record."""

    def with_interruption(self, interruption: Interruption) -> "NoticeRecord":
        """Return the record with an interruption, which is counted once however often its event comes."""
        known = {each.sequence: each for each in self.interruptions}
        known.setdefault(interruption.sequence, interruption)
        kept = sorted(known.values(), key=lambda each: each.sequence)[-MAX_INTERRUPTIONS:]
        return replace(self, interruptions=tuple(kept))

    @property
    def unsaid(self) -> tuple[Interruption, ...]:
        """Return the interruptions since what was said last."""
        return tuple(each for each in self.interruptions if each.sequence > self.said)

    def claimed(self, now: datetime) -> "NoticeRecord":
        """Return the record while one function delivers."""
        return replace(self, claimed_until=now + CLAIM)

    def released(self) -> "NoticeRecord":
        """Return the record after a delivery of which nothing came."""
        return replace(self, claimed_until=None)
