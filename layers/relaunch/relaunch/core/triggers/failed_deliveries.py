"""Which deliveries GitHub is asked to make again: it repeats none by itself.

A delivery has a guid, which every attempt to make it repeats ("Handling failed webhook deliveries", GitHub Docs). One
that was answered 2xx is in our queue for good. An answer in an outage, or none, counts as no try: such a delivery is
asked for again, ever more rarely, until GitHub forgets it. What the webhook refuses is tried three times more.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from relaunch.core.records import dataclass

ASKED_FOR = timedelta(days=3) - timedelta(hours=1)
"""How long a delivery is asked for: GitHub forgets attempts after three days ("Redelivering webhooks", GitHub Docs).

An hour less, so that none is forgotten before it is reported as lost.
"""

MAX_REDELIVERIES = 3
"""How often a delivery that the webhook refuses is asked for again."""

MAX_PER_PASS = 100
"""How many deliveries of a webhook one pass asks for again."""

# A delivery is listed some time after its attempt: an answer may take ten seconds, and GitHub throttles deliveries.
_LISTED_LATE = timedelta(hours=1)
# The longer a delivery has failed, the rarer it is asked for: about twenty times in three days.
_SHARE_OF_AGE = 4
# "Request Timeout" and "Too Many Requests", which Lambda answers while its concurrency is used up.
_TRANSIENT_CLIENT_ERRORS = frozenset((408, 429))


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """An attempt of GitHub to deliver an event; `status_code` is the webhook's answer, 0 without one."""

    attempt_id: int
    guid: str
    delivered_at: datetime
    status_code: int

    @property
    def is_accepted(self) -> bool:
        """Whether the webhook took the event."""
        return 200 <= self.status_code < 300

    @property
    def is_refused(self) -> bool:
        """Whether the webhook would answer another attempt in the same way, until somebody changes something."""
        return 300 <= self.status_code < 500 and self.status_code not in _TRANSIENT_CLIENT_ERRORS


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """What the sweep of a webhook has reached: no attempt before `settled_until` needs a look.

    `lost` are the guids of attempts since then that are not asked for any more.
    """

    settled_until: datetime
    lost: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SweepDecision:
    """What a pass does about the deliveries of a webhook.

    `redeliver` are the attempts to ask for again, oldest first. `postponed` is how many more the cap of a pass leaves
    for the next one. `lost` are the guids that from now on only a person may ask for.
    """

    redeliver: tuple[DeliveryAttempt, ...]
    postponed: int
    lost: tuple[str, ...]
    progress: SweepProgress


def start_progress(now: datetime) -> SweepProgress:
    """Return the progress of a webhook that was never swept: everything that can be asked for is looked at."""
    return SweepProgress(now - ASKED_FOR)


def decide_redeliveries(
    attempts: Iterable[DeliveryAttempt], progress: SweepProgress, now: datetime, *, has_all: bool
) -> SweepDecision:
    """Decide about the attempts of a webhook since `progress.settled_until`; older ones may be among them.

    `has_all`: none of them is missing. Otherwise the newest ones are there, and as much is looked at again.
    """
    by_guid: defaultdict[str, list[DeliveryAttempt]] = defaultdict(list)
    for attempt in sorted(set(attempts), key=lambda each: (each.delivered_at, each.attempt_id)):
        # Of a delivery that is settled, older attempts may be on the page without those before them.
        if attempt.delivered_at >= progress.settled_until:
            by_guid[attempt.guid].append(attempt)
    due: list[DeliveryAttempt] = []
    lost: list[str] = []
    unsettled = [now - _LISTED_LATE]
    for guid, tried in by_guid.items():
        if guid in progress.lost or any(each.is_accepted for each in tried):
            continue
        if _is_over(tried, now):
            lost.append(guid)
            continue
        unsettled.append(tried[0].delivered_at)
        if _is_due(tried, now):
            due.append(tried[-1])
    reached = SweepProgress(progress.settled_until, progress.lost.union(lost))
    if has_all:
        settled_until = max(progress.settled_until, min(unsettled))
        reached = SweepProgress(settled_until, reached.lost & by_guid.keys())
    return SweepDecision(tuple(due[:MAX_PER_PASS]), len(due[MAX_PER_PASS:]), tuple(lost), reached)


def _is_over(tried: list[DeliveryAttempt], now: datetime) -> bool:
    is_old = now - tried[0].delivered_at >= ASKED_FOR
    return is_old or sum(each.is_refused for each in tried) > MAX_REDELIVERIES


def _is_due(tried: list[DeliveryAttempt], now: datetime) -> bool:
    newest = tried[-1].delivered_at
    return now - newest >= (newest - tried[0].delivered_at) / _SHARE_OF_AGE
