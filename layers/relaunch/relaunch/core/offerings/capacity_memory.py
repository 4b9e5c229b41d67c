"""The capacity memory: how long an offering that failed is avoided, and how that is forgotten again.

What fails again soon after it was let go is avoided twice as long each time, up to `LONGEST`; each quiet
`FORGOTTEN_AFTER` takes one strike off. Our choice: Karpenter returns to a pool that just failed after three minutes,
every time; an hour's circuit breaker forgoes a pool that is back at once.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.offerings.offering import CapacityFailure

LONGEST = timedelta(hours=4)
FORGOTTEN_AFTER = timedelta(hours=2)
# A spot warning, the stop it leads to, the neighbours on the same machine, and a message that comes twice: one event.
SAME_EVENT = timedelta(minutes=5)
# Doubling ends at LONGEST long before this.
_MAX_STRIKES = 8


def remember(before: CapacityFailure | None, failure: CapacityFailure) -> CapacityFailure:
    """Return what to remember of an offering once `failure` has come on top of what was remembered `before`.

    `failure.until` is how long a first failure of its kind is avoided. News of one and the same event, in whatever
    order, count one strike; nothing ever shortens what is remembered already.
    """
    if before is None:
        return failure
    later = max(before, failure, key=lambda each: each.at)
    if abs(failure.at - before.at) < SAME_EVENT:
        return replace(later, consecutive_failures=before.consecutive_failures, until=max(before.until, failure.until))
    consecutive_failures = min(remaining_failures(before, failure.at) + 1, _MAX_STRIKES)
    avoided_for = min((failure.until - failure.at) * 2 ** (consecutive_failures - 1), LONGEST)
    until = failure.at + max(avoided_for, failure.until - failure.at)
    return replace(later, consecutive_failures=consecutive_failures, until=max(before.until, until))


def remaining_failures(failure: CapacityFailure, now: datetime) -> int:
    """Return how many strikes still count: one fewer for each quiet FORGOTTEN_AFTER since the offering was let go."""
    quiet = max(now - failure.until, timedelta(0))
    return max(failure.consecutive_failures - quiet // FORGOTTEN_AFTER, 0)


def forgotten_at(failure: CapacityFailure) -> datetime:
    """Return when nothing is left to remember."""
    return failure.until + failure.consecutive_failures * FORGOTTEN_AFTER
