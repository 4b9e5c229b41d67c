"""What a job has cost so far, by the job and by its summary."""

from datetime import timedelta

import pytest

from fakes.builders import NOW, make_placement, make_running_attempt, make_running_job
from relaunch.core.jobs.cost import cost_so_far, running_task
from relaunch.core.jobs.job import CostBasis, Job, RunningTask, Stop, StopKind
from relaunch.core.jobs.summary import summarize_job

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


def test_a_task_runs_since_it_started_at_the_price_of_its_placement() -> None:
    assert running_task(make_running_job()) == RunningTask(NOW, 0.4)
