"""A clock that stands still until it is told otherwise."""

from datetime import datetime, timedelta

from fakes.builders import NOW


class FakeClock:
    """Implements Clock."""

    def __init__(self, now: datetime = NOW) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def advance(self, step: timedelta | float) -> datetime:
        """Let time pass, by a timedelta or by seconds; return the new time."""
        self._now += step if isinstance(step, timedelta) else timedelta(seconds=step)
        return self._now

    def set(self, now: datetime) -> None:
        """Jump to a time."""
        self._now = now
