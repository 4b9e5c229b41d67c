"""How far the log of a task was read."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

# CloudWatch Logs takes a token for 24 hours (GetLogEventsResponse).
_TOKEN_LIFE = timedelta(hours=12)


class LogEvent(NamedTuple):
    """One log event of CloudWatch Logs."""

    at: datetime
    message: str


class ExpiredTokenError(Exception):
    """A source takes a token no longer: reading goes on from the time of the newest event."""


@dataclass(slots=True)
class Position:
    """How far a stream was read: by the token of the source, and by the newest event for when that has expired."""

    start: datetime | None = None
    """Events before this time are not asked for."""
    token: str | None = None
    last: datetime | None = None
    """The time of the newest event that was read; None if none was."""
    is_caught_up: bool = False
    """Whether it was read to its end, or as far as a read goes, at least once."""
    empty_pages: int = 0
    """How many pages in a row had no event, in this read."""
    _token_since: datetime | None = None
    _tail_at: datetime | None = None
    _at_last: Counter[str] = field(default_factory=Counter)
    _again: Counter[str] = field(default_factory=Counter)
    _again_at: datetime | None = None

    @classmethod
    def of_tail(cls, start: datetime | None, now: datetime) -> "Position":
        """Return the position behind the newest events, as of now; `take` notes those that were read."""
        return cls(start, is_caught_up=True, _tail_at=now)

    def take(self, events: Sequence[LogEvent], token: str | None, now: datetime) -> list[LogEvent]:
        """Note a page and the token to continue from; return its events that were not read before."""
        new = [event for event in events if not self._was_read(event)]
        for event in new:
            if self.last is None or event.at > self.last:
                self.last = event.at
                self._at_last.clear()
            if event.at == self.last:
                self._at_last[event.message] += 1
        self.empty_pages = 0 if new else self.empty_pages + 1
        if token != self.token:
            self.token = token
            self._token_since = now
        return new

    def _was_read(self, event: LogEvent) -> bool:
        """Return whether an event was read before reading began again at its time; of equal ones each counts once."""
        if event.at != self._again_at or not self._again[event.message]:
            return False
        self._again[event.message] -= 1
        return True

    def begin_at(self, start: datetime) -> None:
        """Read from this time on, instead of from where it was read."""
        self.start = start
        self.token = None
        self.empty_pages = 0

    def begin_again_if_old(self, now: datetime) -> None:
        """Leave a token that is about to expire, as one does that is not renewed while a task is silent."""
        if self.token is not None and self._token_since is not None and now - self._token_since > _TOKEN_LIFE:
            self.begin_again()

    def begin_again(self) -> None:
        """Read without a token from the newest event on, whose millisecond may have others that were not read."""
        self._again = self._at_last.copy()
        self._again_at = self.last
        self.token = None
        self.start = self.last or self._tail_at or self.start
