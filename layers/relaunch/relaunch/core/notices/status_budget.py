"""How many requests that create content GitHub is sent, and when: below its limits, ends of jobs first.

GitHub takes "in general, no more than 80 content-generating requests per minute and no more than 500 per hour", of all
that the owner of a token does, in the web interface too ("Rate limits for the REST API"). What is used here is about
half, so that others have room. Requests are counted before they are sent: one that is not answered may have counted.
"""

import zlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from relaunch.core.lifecycle.change_events import JobStateChange
from relaunch.core.records import dataclass

PER_MINUTE = 40
"""The most requests in any minute."""
PER_HOUR = 300
"""The most requests in any hour."""
MIDDLES_PER_MINUTE = 25
"""The most of them in any minute, before one that is no end of a job has to wait."""
MIDDLES_PER_HOUR = 200
"""The most of them in any hour, before one that is no end of a job has to wait."""
SETTLING = timedelta(minutes=2)
"""How long a state is held that may soon be another one, while half of what such states may have is used."""
LONGEST_HOLD = timedelta(minutes=15)
"""How long a state waits at most until it is looked at again, where there was no room for it."""
LONGEST_END_HOLD = timedelta(minutes=2)
"""The same of the end of a job."""
FIRST_PAUSE = timedelta(seconds=60)
"""How long GitHub asks to be left alone after a limit that names no time; each further one doubles it."""
LONGEST_PAUSE = timedelta(hours=1)
LONGEST_LIMIT = timedelta(hours=2)
"""A time that GitHub names and that is later is not believed: limits are by the hour."""
SPREAD_SECONDS = 45
"""Within how many seconds jobs that wait for room come back."""
_SECONDS = 60
# Any minute is within two minutes of the clock, any hour within 61 of them.
_MINUTE_SPAN = 2
_HOUR_SPAN = 61


@dataclass(frozen=True, slots=True)
class StatusBudget:
    """The requests of the last hour, and whether GitHub limits them."""

    by_minute: tuple[tuple[int, int], ...] = ()
    """The minute since 1970 and its requests, the oldest first; minutes without any are left out."""
    limited: int = 0
    """How often in a row GitHub limited a request."""
    closed_until: datetime | None = None
    """Until when GitHub is left alone after that."""

    def free_at(self, now: datetime, *, is_end: bool) -> datetime:
        """Return when the next request may be sent: now, or the time at which there may be room for it."""
        open_at = max(now, self.closed_until or now)
        minute = self._room(open_at, _MINUTE_SPAN, PER_MINUTE if is_end else MIDDLES_PER_MINUTE)
        hour = self._room(open_at, _HOUR_SPAN, PER_HOUR if is_end else MIDDLES_PER_HOUR)
        return max(minute, hour)

    def is_short(self, now: datetime) -> bool:
        """Return whether half of what states that are no ends may have in an hour is used."""
        return self._used(_minute_of(now), _HOUR_SPAN) * 2 >= MIDDLES_PER_HOUR

    def used(self, now: datetime) -> "StatusBudget":
        """Return the budget after one more request."""
        this = _minute_of(now)
        kept = dict(each for each in self.by_minute if each[0] > this - _HOUR_SPAN)
        kept[this] = kept.get(this, 0) + 1
        return replace(self, by_minute=tuple(sorted(kept.items())))

    def limited_at(self, now: datetime, asked: datetime | None) -> "StatusBudget":
        """Return the budget after GitHub limited a request; `asked` is until when it asks to wait, if it says so."""
        if asked is not None and now < asked <= now + LONGEST_LIMIT:
            return replace(self, limited=self.limited + 1, closed_until=asked)
        pause = min(FIRST_PAUSE * 2 ** min(self.limited, 10), LONGEST_PAUSE)
        return replace(self, limited=self.limited + 1, closed_until=now + pause)

    def answered(self) -> "StatusBudget":
        """Return the budget after a request that GitHub did not limit."""
        return replace(self, limited=0, closed_until=None)

    def _used(self, minute: int, span: int) -> int:
        return sum(count for at, count in self.by_minute if minute - span < at <= minute)

    def _room(self, now: datetime, span: int, limit: int) -> datetime:
        """Return when less than the limit was sent in the last minutes of the clock."""
        minute = _minute_of(now)
        used = self._used(minute, span)
        at = now
        for sent, count in self.by_minute:
            if used < limit:
                break
            if sent > minute - span:
                used -= count
                at = _begin_of(sent + span)
        return at


def hold_until(budget: StatusBudget, event: JobStateChange, now: datetime, *, is_end: bool) -> datetime | None:
    """Return when the status of an event may be set, None if that is now.

    Who waits looks again the later the longer it has waited: many that wait must not cost more than few that are sent.
    """
    free_at = budget.free_at(now, is_end=is_end)
    if not is_end and budget.is_short(now):
        free_at = max(free_at, event.time + SETTLING)
    if free_at <= now:
        return None
    pause = min((now - event.time) / 2, LONGEST_END_HOLD if is_end else LONGEST_HOLD)
    return max(free_at, now + pause) + spread(event.job_id)


def spread(job_id: str) -> timedelta:
    """Return a part of a minute, another one for each job: so far apart they come back that wait for room."""
    return timedelta(seconds=zlib.crc32(job_id.encode()) % SPREAD_SECONDS)


def _minute_of(at: datetime) -> int:
    return int(at.timestamp()) // _SECONDS


def _begin_of(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * _SECONDS, UTC)
