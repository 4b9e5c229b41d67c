"""Jobs whose spot market follows a series, through the whole application: deadlines kept, at the cost of the replay."""

from functools import cache

import pytest

from policy.generator import draw_series
from policy.hazards import Hazards
from policy.replay import Job, Knowledge, Run
from relaunch.adapters.market_thresholds import load_thresholds
from relaunch.core.jobs.state import JobState
from relaunch.core.market.cheapest import cheapest
from relaunch.core.market.policies import PolicyName
from relaunch.core.market.thresholds import OUTAGE_ENDS_PER_HOUR, SPELL_ENDS_PER_HOUR
from relaunch_local.simulation.market_series import SeriesEnd, SeriesJob, run_series

WORK, TIME, PRICE_RATIO = 12.0, 15.0, 3.145
# Of a pool with few spells, of one as usual, and of one that ends and returns twice as often.
CASES = [(0, 0), (2, 1500), (5, 0)]
# What a start takes there: a message, EC2 Fleet, half a minute of booting, one to three to register, two for the image.
OVERHEAD = 0.1
# All but the image, during which a task that is moved trains on.
OVERLAP = 0.06
# What production keeps: a quarter of an hour for starts that fail, and what is measured between checkpoints.
RESERVE = 0.6


@cache
def series():
    return draw_series(Hazards(OUTAGE_ENDS_PER_HOUR, SPELL_ENDS_PER_HOUR))


def through_the_application(pool: int, start: int) -> SeriesEnd:
    known = series()[pool]
    available = known.available[start : start + round(2 * TIME / known.gap_hours)]
    return run_series(SeriesJob(WORK, TIME, PRICE_RATIO, PolicyName.CHEAPEST), available, known.gap_hours)


def replayed(pool: int, start: int) -> float:
    job, policy = Job(WORK, TIME, OVERHEAD, PRICE_RATIO, OVERLAP, reserve=RESERVE), cheapest(load_thresholds())
    return Run([series()[pool]], start, job, policy, Knowledge.TRIES).to_end().cost


def test_every_deadline_is_kept_at_the_cost_of_the_replay_and_jobs_go_back_to_spot():
    ends = {case: through_the_application(*case) for case in CASES}

    assert {case: end for case, end in ends.items() if end.state is not JobState.SUCCEEDED or end.hours > TIME} == {}
    cost = sum(end.on_demand_hours for end in ends.values())
    assert cost == pytest.approx(sum(replayed(*case) for case in CASES), rel=0.03)
    assert sum(end.moves for end in ends.values()) > len(CASES)


TICK = 1 / 6
LATE_SPOT = [False] * 18 + [True] * 282
# Ten minutes of each hour.
FLICKER = [number % 6 == 0 for number in range(600)]
EIGHT_A_DAY = 8


@pytest.mark.parametrize("is_estimated", [True, False])
def test_a_job_without_a_limit_leaves_on_demand_once_there_is_spot_again(is_estimated):
    job = SeriesJob(WORK, None, PRICE_RATIO, is_estimated=is_estimated)

    end = run_series(job, LATE_SPOT, TICK)

    assert (end.state, end.moves) == (JobState.SUCCEEDED, 1)
    assert end.longest_beside_spot < (1 if is_estimated else 2)
    assert end.on_demand_hours < 0.65 * WORK


def test_a_job_without_checkpoints_is_never_moved():
    end = run_series(SeriesJob(WORK, None, PRICE_RATIO, checkpoint_seconds=None), LATE_SPOT, TICK)

    assert (end.state, end.moves) == (JobState.SUCCEEDED, 0)
    assert end.longest_beside_spot > WORK - 4


def test_spot_that_comes_and_goes_moves_a_job_without_a_limit_a_few_times_a_day_and_costs_little():
    end = run_series(SeriesJob(20.0, None, PRICE_RATIO), FLICKER, TICK)

    assert end.state is JobState.SUCCEEDED
    assert 0 < end.moves <= EIGHT_A_DAY
    assert end.on_demand_hours < 1.1 * 20
