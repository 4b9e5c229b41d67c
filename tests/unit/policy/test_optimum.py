from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policy.optimum import least_costs
from policy.replay import Job
from policy.series import Series

TICK = 1 / 6
GAP = 10


@dataclass(frozen=True)
class Machine:
    """A machine: its start has some minutes to go, and the one before it works on, after its own start, for others."""

    number: int
    starting: int
    overlapping: int = 0
    before: int = 0
    is_used: bool = False

    def after_tick(self) -> "Machine":
        both = min(self.overlapping, GAP)
        starting, before = max(self.starting - GAP + both, 0), max(self.before - both, 0)
        return Machine(self.number, starting, self.overlapping - both, before, is_used=True)

    @property
    def worked(self) -> int:
        both = min(self.overlapping, GAP)
        return max(both - self.before, 0) + max(GAP - both - self.starting, 0)


def by_trying_everything(pools: list[list[bool]], job: Job, ticks: int) -> float:
    """Return the least cost of all ways to be somewhere at every tick, in minutes of work."""
    overhead, overlap, on_demand = round(60 * job.overhead), round(60 * job.overlap), len(pools)

    def machines(tick: int, now: Machine | None) -> Iterator[Machine]:
        numbers = [number for number in range(on_demand + 1) if number == on_demand or pools[number][tick]]
        yield from (Machine(number, overhead) for number in numbers)
        if now is not None and now.number in numbers:
            yield now
        if now is not None and now.number == on_demand and now.is_used:
            yield from (
                Machine(each, overhead - overlap, overlap, now.starting) for each in numbers if each < on_demand
            )

    @cache
    def least(tick: int, left: int, now: Machine | None) -> float:
        if left <= 0:
            return 0.0
        if tick == ticks:
            return float("inf")
        best = least(tick + 1, left, None)
        for each in machines(tick, now):
            price = TICK / (job.price_ratio if each.number < on_demand else 1.0) + min(each.overlapping, GAP) / 60
            best = min(best, price + least(tick + 1, left - each.worked, each.after_tick()))
        return best

    return least(0, round(60 * job.work), None)


@settings(max_examples=60, deadline=None)
@given(
    pools=st.lists(st.lists(st.booleans(), min_size=9, max_size=9), min_size=1, max_size=2),
    overhead=st.sampled_from([0.0, 0.05, 0.2, 0.4]),
    share=st.sampled_from([0.0, 0.5, 0.75, 1.0]),
    ratio=st.sampled_from([1.4, 3.145, 20.0]),
)
@example(pools=[[False] * 4 + [True] * 5], overhead=0.2, share=0.75, ratio=20.0)
def test_it_is_the_least_of_all_ways(pools, overhead, share, ratio):
    job = Job(work=0.8, time=1.5, overhead=overhead, price_ratio=ratio, overlap=round(60 * overhead * share) / 60)
    series = [Series(str(number), TICK, tuple(each)) for number, each in enumerate(pools)]

    (found,) = least_costs(series, [0], job)

    assert min(found, 1e9) == pytest.approx(min(by_trying_everything(pools, job, 9), 1e9), rel=1e-4)


def test_each_start_is_a_job_of_its_own():
    series = Series("a", TICK, (*[True] * 12, *[False] * 12))
    job = Job(work=1.0, time=2.0, overhead=0.0, price_ratio=2.0)

    assert least_costs([series], [0, 12], job) == [pytest.approx(0.5), pytest.approx(1.0)]
