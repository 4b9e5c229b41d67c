from dataclasses import replace

import pytest

from fakes.builders import (
    make_instance_type,
    make_job,
    make_offering,
    make_offering_key,
    make_placement,
    make_running_attempt,
    make_running_job,
)
from relaunch.core.jobs.job import Job, JobState
from relaunch.core.jobs.quota_use import may_be_short, room_of_quotas
from relaunch.core.offerings.quotas import QuotaUsage

G_SPOT, G_ON_DEMAND, P_SPOT = "L-3819A6DF", "L-DB2E81BA", "L-7212CCBC"
LARGE = make_instance_type("g5.12xlarge", vcpus=48)
CATALOGUE = {"g5.xlarge": make_instance_type("g5.xlarge"), "g5.12xlarge": LARGE}


def running(job_id: str, instance_type: str = "g5.xlarge", *, instance_id: str | None = None) -> Job:
    placed = make_placement(offering=make_offering_key(instance_type))
    attempt = make_running_attempt(placement=placed, instance_id=instance_id or f"i-{job_id}")
    return make_running_job(job_id, attempt=attempt)


def test_each_machine_of_an_open_job_uses_its_vcpus():
    jobs = [running("one"), running("two"), running("three", "g5.12xlarge")]

    assert room_of_quotas({G_SPOT: 64.0, G_ON_DEMAND: 8.0}, jobs, CATALOGUE) == {
        G_SPOT: QuotaUsage(64.0, 56.0),
        G_ON_DEMAND: QuotaUsage(8.0, 0.0),
    }


def test_two_jobs_on_one_machine_use_it_once():
    jobs = [running("one", instance_id="i-1"), running("two", instance_id="i-1")]

    assert room_of_quotas({G_SPOT: 64.0}, jobs, CATALOGUE) == {G_SPOT: QuotaUsage(64.0, 4.0)}


@pytest.mark.parametrize(
    ("job", "used"),
    [
        pytest.param(make_job(), 0, id="never launched"),
        pytest.param(replace(running("one"), state=JobState.WAITING), 0, id="between two attempts"),
        pytest.param(replace(running("one"), state=JobState.STOPPING), 4, id="on its way out"),
        pytest.param(replace(running("one"), state=JobState.LAUNCHING), 4, id="on its way in"),
        pytest.param(running("one", "g9.xlarge"), 0, id="of a type that is not known"),
        pytest.param(
            make_running_job(attempt=make_running_attempt(instance_id=None)), 4, id="whose machine is not known yet"
        ),
    ],
)
def test_a_job_uses_a_machine_while_it_has_one(job, used):
    assert room_of_quotas({G_SPOT: 64.0}, [job], CATALOGUE) == {G_SPOT: QuotaUsage(64.0, used)}


@pytest.mark.parametrize(
    ("vcpus", "running_jobs", "expected"),
    [(96.0, 1, False), (95.0, 1, True), (48.0, 0, False), (47.0, 0, True), (1000.0, 20, True), (1008.0, 20, False)],
)
def test_use_matters_when_the_largest_machines_of_all_jobs_would_not_fit(vcpus, running_jobs, expected):
    offerings = [make_offering("g5.xlarge"), make_offering(LARGE)]

    assert may_be_short({G_SPOT: vcpus}, offerings, running_jobs) is expected


def test_use_of_an_unknown_quota_never_matters():
    assert not may_be_short({P_SPOT: 0.0}, [make_offering("g5.xlarge")], 99)


def test_types_whose_quota_is_uncertain_do_not_hide_those_that_have_one():
    offerings = [make_offering("p5.48xlarge"), make_offering("g5.xlarge")]

    assert not may_be_short({P_SPOT: 0.0}, offerings[:1], 99)
    assert may_be_short({P_SPOT: 0.0, G_SPOT: 4.0}, offerings, 99)
