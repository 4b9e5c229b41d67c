"""Whose turn it is: with time for few of many jobs, each has its turn."""

from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from fakes.builders import make_job
from relaunch.core.lifecycle.turns import in_turn

BEGINS = datetime.fromtimestamp(29_600_000 * 60, UTC)
JOBS = [make_job(job_id=f"resnet-{number:03d}") for number in range(600)]


def looks_until_all_had_their_turn(time_for: int, begins: datetime = BEGINS) -> int:
    waiting = {job.job_id for job in JOBS}
    for look in count():
        if not waiting:
            return look
        waiting -= {job.job_id for job in in_turn(JOBS, begins + look * timedelta(minutes=10))[:time_for]}
    raise AssertionError


@pytest.mark.parametrize(("time_for", "looks"), [(600, 1), (400, 2), (300, 3), (60, 13), (30, 34), (10, 89)])
def test_with_time_for_few_of_six_hundred_jobs_each_has_its_turn(time_for, looks):
    assert looks_until_all_had_their_turn(time_for) <= looks


@pytest.mark.no_cover
def test_from_any_minute_on_each_has_its_turn():
    assert (
        max(looks_until_all_had_their_turn(60, BEGINS + minute * timedelta(minutes=1)) for minute in range(100)) <= 13
    )


def test_all_are_in_the_order_and_none_twice():
    ordered = in_turn(JOBS[::-1], BEGINS + timedelta(minutes=37))

    assert sorted(ordered, key=lambda job: job.job_id) == JOBS
    assert in_turn([], BEGINS) == []
