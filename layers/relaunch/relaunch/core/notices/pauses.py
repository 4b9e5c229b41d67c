"""For how long a receiver is left alone that takes nothing, or asks for a pause."""

from datetime import datetime, timedelta

SHORTEST = timedelta(seconds=30)
LONGEST = timedelta(minutes=15)
"""So long a receiver's outage may be felt after its end, unless it asks for more itself."""
LONGEST_ASKED = timedelta(hours=1)
"""The most that a receiver may ask for: one that says a year is asked again before its notices are given up."""
ALERTED_AFTER = timedelta(hours=1)
"""For how long a receiver may take nothing until somebody is alerted."""


def next_pause_end(since: datetime, now: datetime, asked: datetime | None) -> datetime:
    """Return until when to leave a receiver alone that takes nothing `since` then: half as long again as it has."""
    own = now + min(max((now - since) / 2, SHORTEST), LONGEST)
    if asked is None:
        return own
    return min(max(asked, now + timedelta(seconds=1)), now + LONGEST_ASKED)


def may_alert(since: datetime, now: datetime) -> bool:
    """Return whether somebody should look at a receiver that takes nothing `since` then."""
    return now - since >= ALERTED_AFTER
