from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fakes.commit_changes import make_change
from relaunch.core.notices.status_budget import (
    FIRST_PAUSE,
    LONGEST_END_HOLD,
    LONGEST_HOLD,
    LONGEST_LIMIT,
    LONGEST_PAUSE,
    MIDDLES_PER_HOUR,
    MIDDLES_PER_MINUTE,
    PER_HOUR,
    PER_MINUTE,
    SETTLING,
    SPREAD_SECONDS,
    StatusBudget,
    hold_until,
    spread,
)

NOW = datetime(2026, 11, 3, 12, 0, 30, tzinfo=UTC)
CHANGE = replace(make_change(), time=NOW)
MINUTE = timedelta(minutes=1)


def used(
    count: int, at: datetime = NOW, every: timedelta = timedelta(), budget: StatusBudget | None = None
) -> StatusBudget:
    budget = budget or StatusBudget()
    for number in range(count):
        budget = budget.used(at + number * every)
    return budget


def test_an_unused_budget_has_room() -> None:
    assert StatusBudget().free_at(NOW, is_end=False) == NOW
    assert hold_until(StatusBudget(), CHANGE, NOW, is_end=False) is None


@pytest.mark.parametrize(("is_end", "most"), [(True, PER_MINUTE), (False, MIDDLES_PER_MINUTE)])
def test_a_minute_has_so_much_room_and_more_when_it_is_over_by_the_clock(is_end: bool, most: int) -> None:
    assert used(most - 1).free_at(NOW, is_end=is_end) == NOW
    # Any sixty seconds are within two minutes of the clock.
    earlier = used(1, NOW - 10 * MINUTE)
    assert used(most, budget=earlier).free_at(NOW, is_end=is_end) == NOW.replace(second=0) + 2 * MINUTE


@pytest.mark.parametrize(("is_end", "most"), [(True, PER_HOUR), (False, MIDDLES_PER_HOUR)])
def test_an_hour_has_so_much_room_and_more_when_its_first_requests_are_over(is_end: bool, most: int) -> None:
    every = timedelta(seconds=10)
    budget = used(most, NOW, every)
    end = NOW + most * every

    assert used(most - 1, NOW, every).free_at(end, is_end=is_end) == end
    assert budget.free_at(end, is_end=is_end) == NOW.replace(second=0) + 61 * MINUTE


def test_ends_have_room_that_others_leave() -> None:
    budget = used(MIDDLES_PER_HOUR, NOW, timedelta(seconds=10))
    now = NOW + timedelta(seconds=10 * MIDDLES_PER_HOUR)

    assert budget.free_at(now, is_end=True) == now
    assert budget.free_at(now, is_end=False) > now


def test_requests_of_more_than_an_hour_ago_are_not_kept() -> None:
    assert used(1).used(NOW + 61 * MINUTE).by_minute == (((int(NOW.timestamp()) // 60) + 61, 1),)


def test_a_limit_that_names_a_time_is_kept_to() -> None:
    budget = StatusBudget().limited_at(NOW, NOW + 10 * MINUTE)

    assert budget == StatusBudget(limited=1, closed_until=NOW + 10 * MINUTE)
    assert StatusBudget().limited_at(NOW, NOW + LONGEST_LIMIT).closed_until == NOW + LONGEST_LIMIT
    assert budget.free_at(NOW, is_end=True) == NOW + 10 * MINUTE
    assert budget.free_at(NOW + 11 * MINUTE, is_end=True) == NOW + 11 * MINUTE


@pytest.mark.parametrize(
    "asked", [None, NOW, NOW - MINUTE, NOW + LONGEST_LIMIT + MINUTE], ids=["none", "now", "over", "too-late"]
)
def test_one_that_names_none_that_can_be_is_waited_for_longer_each_time(asked: datetime | None) -> None:
    budget = StatusBudget()
    pauses = []
    for _ in range(12):
        budget = budget.limited_at(NOW, asked)
        assert budget.closed_until is not None
        pauses.append(budget.closed_until - NOW)

    assert pauses[:3] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert set(pauses[6:]) == {LONGEST_PAUSE}


def test_an_answer_ends_the_limit() -> None:
    budget = used(1).limited_at(NOW, NOW + MINUTE).answered()

    assert budget == used(1)


def test_while_half_of_it_is_used_a_state_is_held_that_may_soon_be_another_one() -> None:
    budget = used(MIDDLES_PER_HOUR // 2, NOW - timedelta(minutes=30), timedelta(seconds=10))

    assert hold_until(budget, CHANGE, NOW, is_end=False) == NOW + SETTLING + spread(CHANGE.job_id)
    assert hold_until(budget, CHANGE, NOW + SETTLING, is_end=False) is None
    assert hold_until(budget, CHANGE, NOW, is_end=True) is None
    assert (
        hold_until(
            used(MIDDLES_PER_HOUR // 2 - 1, NOW - timedelta(minutes=30), timedelta(seconds=10)),
            CHANGE,
            NOW,
            is_end=False,
        )
        is None
    )
    assert hold_until(used(MIDDLES_PER_MINUTE), CHANGE, NOW, is_end=True) is None


@pytest.mark.parametrize(("is_end", "longest"), [(True, LONGEST_END_HOLD), (False, LONGEST_HOLD)])
def test_who_has_waited_for_long_looks_again_later(is_end: bool, longest: timedelta) -> None:
    budget = used(PER_MINUTE)
    free_at = budget.free_at(NOW, is_end=is_end)
    waiting = replace(CHANGE, time=NOW - timedelta(hours=5))

    assert hold_until(budget, CHANGE, NOW, is_end=is_end) == free_at + spread(CHANGE.job_id)
    recent = replace(CHANGE, time=NOW - 2 * longest / 3)
    much = used(PER_MINUTE, NOW - MINUTE)
    assert hold_until(much, recent, NOW, is_end=is_end) == max(
        much.free_at(NOW, is_end=is_end), NOW + longest / 3
    ) + spread(CHANGE.job_id)
    assert hold_until(budget, waiting, NOW, is_end=is_end) == NOW + longest + spread(CHANGE.job_id)


def test_jobs_come_back_apart() -> None:
    seconds = {spread(f"resnet-{number:08x}").total_seconds() for number in range(500)}

    assert len(seconds) == SPREAD_SECONDS
    assert max(seconds) < SPREAD_SECONDS
