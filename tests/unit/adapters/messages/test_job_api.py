"""Answers of job_api."""

from datetime import timedelta

import pytest

from fakes.builders import NOW, make_job, make_running_job
from relaunch.adapters.messages.job_api import describe_job
from relaunch.core.jobs.state import CostBasis, NotedProgress


@pytest.mark.parametrize(
    ("basis", "cost", "is_limit"),
    [(CostBasis.PRICE, 0.1235, False), (CostBasis.LIMIT, 0.1235, True), (CostBasis.UNKNOWN, None, False)],
)
def test_a_cost_says_whether_it_is_a_limit_and_is_null_if_unknown(basis, cost, is_limit):
    described = describe_job(make_running_job(cost_usd=0.12345678, cost_basis=basis), NOW)

    assert (described["cost_usd"], described["is_cost_limit"]) == (cost, is_limit)


def test_how_far_the_training_was_at_the_last_look_is_said():
    noted = NotedProgress(120, NOW, 1, 200, 0.5, NOW + timedelta(hours=1), steps_per_second=0.25)

    assert describe_job(make_running_job(), NOW)["progress"] is None
    assert describe_job(make_running_job(noted_progress=noted), NOW)["progress"] == {
        "step": 120,
        "total_steps": 200,
        "saved_at": "2026-03-14T09:26:53+00:00",
        "loss": 0.5,
        "steps_per_second": 0.25,
        "finishes_at": "2026-03-14T10:26:53+00:00",
        "stalled_since": None,
    }


def test_the_work_that_no_checkpoint_has_is_said_while_a_task_runs():
    running = make_running_job(noted_progress=NotedProgress(120, NOW, 1))

    assert describe_job(running, NOW + timedelta(minutes=1.5))["work_at_risk_seconds"] == 90.0
    assert describe_job(make_job(), NOW)["work_at_risk_seconds"] is None


def test_the_cost_includes_the_running_attempt():
    described = describe_job(make_running_job(cost_usd=1.0), NOW + timedelta(hours=2))

    assert (described["cost_usd"], described["is_cost_limit"]) == (1.8, False)
