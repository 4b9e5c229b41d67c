"""Answers of job_api."""

import pytest

from fakes.builders import make_running_job
from relaunch.adapters.messages.job_api import describe_job
from relaunch.core.jobs.job import CostBasis


@pytest.mark.parametrize(
    ("basis", "cost", "is_limit"),
    [(CostBasis.PRICE, 0.1235, False), (CostBasis.LIMIT, 0.1235, True), (CostBasis.UNKNOWN, None, False)],
)
def test_a_cost_says_whether_it_is_a_limit_and_is_null_if_unknown(basis, cost, is_limit):
    described = describe_job(make_running_job(cost_usd=0.12345678, cost_basis=basis))

    assert (described["cost_usd"], described["is_cost_limit"]) == (cost, is_limit)
