"""When a message that could not be handled comes back, and when it is given up.

What fails for a temporary reason comes back until the reason is gone, and costs the message no try. Only what its
function dies of does, or a bug: after as many tries as the stack's MaxReceiveCount the message is a dead letter.
"""

from datetime import timedelta

LONGEST_RETRY = timedelta(days=4)
"""For how long a message may fail for temporary reasons."""
_SOONEST_SECONDS = 5
LONGEST_RACE = timedelta(minutes=1)
"""What counts of the time that a message has failed when others have just saved its item before it: they were quick."""
# So long an outage may be felt after its end. It is longer after six hours: where SQS takes a message twice, because
# its answer was lost, each copy comes back, and there would be ever more in four days.
_LONGEST_PAUSE_SECONDS = 300
_LONG = timedelta(hours=6)
_LONG_PAUSE_SECONDS = 870
# A throttled bucket of AWS has room again within seconds; not all that failed together come back together.
_SPREAD_SECONDS = 25


def retry_seconds(failing_for: timedelta, spread: int) -> int:
    """Return after how many seconds a message comes back that fails for a temporary reason: 5 to 895.

    Args:
        failing_for: Since its first failure: half of that is waited for again, so that an outage costs few calls.
        spread: A number of the message's own, so that messages come back apart.
    """
    longest = _LONGEST_PAUSE_SECONDS if failing_for < _LONG else _LONG_PAUSE_SECONDS
    pause = min(_SOONEST_SECONDS + int(failing_for.total_seconds() / 2), longest)
    return pause + spread % _SPREAD_SECONDS
