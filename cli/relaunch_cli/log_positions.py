"""How far the log of a task was read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


class LogEvent(NamedTuple):
    """One log event of CloudWatch Logs."""

    at: datetime
    message: str


@dataclass(slots=True)
class Position:
    """How far a stream was read, by the token of the source and by the newest event."""

    start: datetime | None = None
    """Events before this time are not asked for."""
    token: str | None = None
    last: datetime | None = None
    """The time of the newest event that was read; None if none was."""
    is_caught_up: bool = False
    """Whether it was read to its end, or as far as a read goes, at least once."""

    empty_pages: int = 0
    """How many pages in a row had no event, in this read."""

    def take(self, events: Sequence[LogEvent], token: str | None) -> None:
        """Note that these events were read, and the token to continue from."""
        for event in events:
            if self.last is None or event.at > self.last:
                self.last = event.at
        self.empty_pages = 0 if events else self.empty_pages + 1
        self.token = token

    def begin_at(self, start: datetime) -> None:
        """Read from this time on, instead of from where it was read."""
        self.start = start
        self.token = None
        self.empty_pages = 0
