from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policy import optimum
from policy.optimum import least_costs
from policy.replay import Job
from policy.series import Series

TICK = 1 / 6


@dataclass(frozen=True)
class Machine:
    """A machine: its start has some seconds to go, and the one before it works on, after its own start, for others."""

    number: int
    starting: int
    overlapping: int = 0
    before: int = 0
    is_used: bool = False

    def after_tick(self, gap: int) -> "Machine":
        both = min(self.overlapping, gap)
        starting, before = max(self.starting - gap + both, 0), max(self.before - both, 0)
        return Machine(self.number, starting, self.overlapping - both, before, is_used=True)

    def worked(self, gap: int) -> int:
        both = min(self.overlapping, gap)
        return max(both - self.before, 0) + max(gap - both - self.starting, 0)


def by_trying_everything(pools: list[list[bool]], job: Job, ticks: int, gap: int) -> float:
    """Return the least cost in hours of all ways to be somewhere at every tick of `gap` seconds."""
    overhead, overlap, on_demand = round(3600 * job.overhead), round(3600 * job.overlap), len(pools)

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
            seconds = gap / (job.price_ratio if each.number < on_demand else 1.0) + min(each.overlapping, gap)
            best = min(best, seconds / 3600 + least(tick + 1, left - each.worked(gap), each.after_tick(gap)))
        return best

    return least(0, round(3600 * job.work), None)


@settings(max_examples=100, deadline=None)
@given(
    pools=st.lists(st.lists(st.booleans(), min_size=9, max_size=9), min_size=1, max_size=2),
    gap=st.sampled_from([600, 195, 34]),
    overhead=st.sampled_from([0.0, 0.3, 1.0, 1.2, 2.4]),
    share=st.sampled_from([0.0, 0.5, 0.75, 1.0]),
    ratio=st.sampled_from([1.4, 3.145, 20.0]),
)
@example(pools=[[False] * 4 + [True] * 5], gap=600, overhead=1.2, share=0.75, ratio=20.0)
def test_it_is_the_least_of_all_ways(pools, gap, overhead, share, ratio):
    def hours(ticks: float) -> float:
        return round(ticks * gap) / 3600

    job = Job(hours(4.8), hours(9), hours(overhead), ratio, overlap=hours(overhead * share))
    series = [Series(str(number), gap / 3600, tuple(each)) for number, each in enumerate(pools)]

    (found,) = least_costs(series, [0], job)

    assert min(found, 1e9) == pytest.approx(min(by_trying_everything(pools, job, 9, gap), 1e9))


def test_each_start_is_a_job_of_its_own():
    series = Series("a", TICK, (*[True] * 12, *[False] * 12))
    job = Job(work=1.0, time=2.0, overhead=0.0, price_ratio=2.0)

    assert least_costs([series], [0, 12], job) == [pytest.approx(0.5), pytest.approx(1.0)]


def test_starts_that_are_too_many_to_be_solved_at_once_are_solved_in_turn(monkeypatch):
    series = Series("a", TICK, (True, True, False) * 20)
    job = Job(work=1.0, time=2.0, price_ratio=2.0)
    at_once = least_costs([series], range(40), job)

    monkeypatch.setattr(optimum, "_VALUES", 1)

    assert least_costs([series], range(40), job) == at_once


def test_a_job_without_enough_time_has_no_cost():
    (cost,) = least_costs([Series("a", TICK, (True,) * 9)], [0], Job(work=2.0, time=1.5))

    assert cost >= 1e9
