"""What a job has cost so far, by the job and by its summary."""

from datetime import timedelta

import pytest

from fakes.builders import NOW, make_attempt, make_placement, make_running_attempt, make_running_job
from relaunch.core.jobs.attempt import Placement, Stop, StopKind
from relaunch.core.jobs.cost import HourlyPrice, attempt_price, cost_so_far, running_task, summarize_job
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import CostBasis, RunningTask

LATER = NOW + timedelta(hours=2)
STOPPED = make_running_attempt(stop=Stop(StopKind.SUCCESS, NOW))
LIMIT = make_running_attempt(placement=make_placement(is_price_limit=True))


@pytest.mark.parametrize(
    ("job", "usd", "basis"),
    [
        pytest.param(make_running_job(cost_usd=1.0), 1.8, CostBasis.PRICE, id="runs"),
        pytest.param(make_running_job(cost_usd=1.0, attempt=STOPPED), 1.0, CostBasis.PRICE, id="stopped"),
        pytest.param(make_running_job(cost_usd=1.0, attempt=None), 1.0, CostBasis.PRICE, id="no-attempt"),
        pytest.param(
            make_running_job(cost_usd=1.0, attempt=make_running_attempt(started_at=None)),
            1.0,
            CostBasis.PRICE,
            id="not-started",
        ),
        pytest.param(make_running_job(attempt=LIMIT), 0.8, CostBasis.LIMIT, id="runs-at-a-limit"),
        pytest.param(
            make_running_job(cost_basis=CostBasis.LIMIT, attempt=STOPPED), 0.0, CostBasis.LIMIT, id="ran-at-a-limit"
        ),
    ],
)
def test_the_running_task_is_included_in_the_job_and_in_its_summary(job: Job, usd: float, basis: CostBasis) -> None:
    assert cost_so_far(job, LATER) == (pytest.approx(usd), basis)
    assert cost_so_far(summarize_job(job), LATER) == (pytest.approx(usd), basis)


def test_a_task_whose_program_has_ended_costs_no_more_until_its_end_is_counted() -> None:
    ended = make_running_attempt(program_ended_at=NOW + timedelta(hours=1))

    assert cost_so_far(make_running_job(attempt=ended), LATER) == (pytest.approx(0.4), CostBasis.PRICE)


def test_a_task_runs_since_it_started_at_the_price_of_its_placement() -> None:
    assert running_task(make_running_job()) == RunningTask(NOW, 0.4)


def test_a_task_that_starts_by_a_clock_ahead_of_ours_has_cost_nothing_yet() -> None:
    assert cost_so_far(make_running_job(), NOW - timedelta(seconds=3)) == (0.0, CostBasis.PRICE)


BY_ZONE = make_placement(usd_per_hour_by_zone={"us-east-1a": 0.3, "us-east-1b": 0.4}, limit_usd_per_hour=1.006)
NO_LIMIT = make_placement(usd_per_hour_by_zone={"us-east-1a": 0.3, "us-east-1b": 0.4})
ALIKE = make_placement(usd_per_hour_by_zone={"us-east-1a": 0.4, "us-east-1b": 0.4})


@pytest.mark.parametrize(
    ("placement", "zone", "price"),
    [
        pytest.param(BY_ZONE, "us-east-1a", HourlyPrice(0.3, CostBasis.PRICE), id="cheaper-zone"),
        pytest.param(BY_ZONE, "us-east-1b", HourlyPrice(0.4, CostBasis.PRICE), id="dearest-zone"),
        pytest.param(BY_ZONE, "us-east-1c", HourlyPrice(1.006, CostBasis.LIMIT), id="zone-without-a-price"),
        pytest.param(NO_LIMIT, "us-east-1c", HourlyPrice(0.0, CostBasis.UNKNOWN), id="and-no-on-demand-price"),
        pytest.param(BY_ZONE, None, HourlyPrice(0.4, CostBasis.LIMIT), id="zone-not-known-yet"),
        pytest.param(ALIKE, None, HourlyPrice(0.4, CostBasis.PRICE), id="same-price-in-all-zones"),
        pytest.param(make_placement(), "us-east-1a", HourlyPrice(0.4, CostBasis.PRICE), id="of-an-earlier-version"),
        pytest.param(
            make_placement(is_price_limit=True),
            "us-east-1a",
            HourlyPrice(0.4, CostBasis.LIMIT),
            id="no-zone-has-a-price",
        ),
    ],
)
def test_an_attempt_costs_what_the_zone_of_its_task_does(
    placement: Placement, zone: str | None, price: HourlyPrice
) -> None:
    assert attempt_price(make_attempt(placement=placement, zone=zone)) == price


def test_the_zone_decides_the_cost_of_a_running_job_and_of_its_summary() -> None:
    job = make_running_job(attempt=make_running_attempt(placement=BY_ZONE, zone="us-east-1a"))

    assert cost_so_far(job, LATER) == (pytest.approx(0.6), CostBasis.PRICE)
    assert cost_so_far(summarize_job(job), LATER) == cost_so_far(job, LATER)
