from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import NOW
from relaunch.core.triggers.dispatch_rate import (
    MAX_STARTS_PER_HOUR,
    PERIOD,
    DispatchStarts,
    TooManyStarts,
    admit_dispatch,
)

MINUTE = timedelta(minutes=1)
FULL = DispatchStarts("ab", {f"guid-{number}": NOW + number * MINUTE for number in range(MAX_STARTS_PER_HOUR)}, 9)


def test_a_dispatch_is_counted_once():
    first = admit_dispatch(DispatchStarts("ab"), "guid-1", NOW)

    assert first == DispatchStarts("ab", {"guid-1": NOW})
    assert admit_dispatch(first, "guid-1", NOW + 59 * MINUTE) is first


def test_a_dispatch_too_many_says_when_the_next_one_may_start_a_job():
    refused = admit_dispatch(FULL, "guid-9", NOW + 30 * MINUTE)

    assert isinstance(refused, TooManyStarts)
    assert refused.reason.startswith("4 dispatches with exactly this content started jobs in the last hour")
    assert f"send it again after {NOW + PERIOD:%H:%M:%S} UTC" in refused.reason
    assert admit_dispatch(FULL, "guid-1", NOW + 30 * MINUTE) is FULL


def test_a_start_counts_for_an_hour():
    assert isinstance(admit_dispatch(FULL, "guid-9", NOW + PERIOD - MINUTE), TooManyStarts)

    admitted = admit_dispatch(FULL, "guid-9", NOW + PERIOD)

    assert isinstance(admitted, DispatchStarts)
    assert list(admitted.started_at) == ["guid-1", "guid-2", "guid-3", "guid-9"]
    assert admitted.version == FULL.version


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40)), max_size=80))
def test_no_hour_has_more_starts_than_allowed(arrivals):
    starts, admitted, now = DispatchStarts("ab"), [], NOW
    for dispatch, minutes in arrivals:
        now += minutes * MINUTE
        after = admit_dispatch(starts, f"guid-{dispatch}", now)
        if isinstance(after, DispatchStarts) and after is not starts:
            starts = after
            admitted.append(now)
    for first in admitted:
        assert sum(first <= at < first + PERIOD for at in admitted) <= MAX_STARTS_PER_HOUR
