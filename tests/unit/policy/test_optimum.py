from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy.optimum import least_costs
from policy.replay import Job
from policy.series import Series

TICK = 1 / 6


def by_trying_everything(pools: list[list[bool]], job: Job, ticks: int) -> float:
    """Return the least cost of all ways to be somewhere at every tick, in minutes of work."""
    work, gap, overhead = round(job.work * 60), 10, round(job.overhead * 60)

    @cache
    def least(tick: int, left: int, place: int, starting: int) -> float:
        if left <= 0:
            return 0.0
        if tick == ticks:
            return float("inf")
        best = least(tick + 1, left, -1, 0)
        for number in range(len(pools) + 1):
            if number < len(pools) and not pools[number][tick]:
                continue
            price = TICK / (job.price_ratio if number < len(pools) else 1.0)
            begun = [overhead, starting] if number == place else [overhead]
            for rest in begun:
                after = least(tick + 1, left - max(gap - rest, 0), number, max(rest - gap, 0))
                best = min(best, price + after)
        return best

    return least(0, work, -1, 0)


@settings(max_examples=40, deadline=None)
@given(
    pools=st.lists(st.lists(st.booleans(), min_size=9, max_size=9), min_size=1, max_size=2),
    overhead=st.sampled_from([0.0, 0.05, 0.2]),
    ratio=st.sampled_from([1.4, 3.145]),
)
def test_it_is_the_least_of_all_ways(pools, overhead, ratio):
    job = Job(work=0.8, time=1.5, overhead=overhead, price_ratio=ratio)
    series = [Series(str(number), TICK, tuple(each)) for number, each in enumerate(pools)]

    (found,) = least_costs(series, [0], job)

    assert found == pytest.approx(by_trying_everything(pools, job, 9), rel=1e-4)


def test_each_start_is_a_job_of_its_own():
    series = Series("a", TICK, (*[True] * 12, *[False] * 12))
    job = Job(work=1.0, time=2.0, overhead=0.0, price_ratio=2.0)

    assert least_costs([series], [0, 12], job) == [pytest.approx(0.5), pytest.approx(1.0)]
