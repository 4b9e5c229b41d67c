from dataclasses import replace

import pytest

from fakes.builders import (
    NOW,
    make_instance_type,
    make_job,
    make_offering,
    make_offering_key,
    make_placement,
    make_running_attempt,
    make_running_job,
)
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.quota_use import may_be_short, room_of_quotas
from relaunch.core.jobs.state import JobState
from relaunch.core.machines.machine import Claim, FleetOverride, FleetRequest, Machine, MachineState, Resources
from relaunch.core.offerings.quotas import QuotaUsage

G_SPOT, G_ON_DEMAND, P_SPOT = "L-3819A6DF", "L-DB2E81BA", "L-7212CCBC"
LARGE = make_instance_type("g5.12xlarge", vcpus=48)
CATALOGUE = {
    "g5.xlarge": make_instance_type("g5.xlarge"),
    "g5.12xlarge": LARGE,
    "p3.2xlarge": make_instance_type("p3.2xlarge", vcpus=8),
    "c5.large": make_instance_type("c5.large"),
}


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


def machine(
    *instance_types: str, chosen: str | None = None, state: MachineState = MachineState.READY, claims: int = 1
) -> Machine:
    keys = [make_offering_key(name, "us-east-1a") for name in instance_types]
    overrides = tuple(
        FleetOverride(key, "subnet-1", 1.0, Resources(CATALOGUE[key.instance_type].vcpus * 1024)) for key in keys
    )
    return Machine(
        "m-1",
        FleetRequest("relaunch-m-1", PurchaseOption.SPOT, "lt-1", "7", overrides),
        created_at=NOW,
        state=state,
        claims=tuple(Claim(f"job-{number}", 1, Resources(), NOW) for number in range(claims)),
        offering=make_offering_key(chosen, "us-east-1a") if chosen else None,
    )


def on_own_machine(job_id: str, instance_id: str | None = None) -> Job:
    placed = make_placement(offering=make_offering_key(zone="us-east-1a"), capacity_provider="")
    return make_running_job(job_id, attempt=make_running_attempt(placement=placed, instance_id=instance_id))


@pytest.mark.parametrize(
    ("own", "g_vcpus", "p_vcpus"),
    [
        pytest.param(machine("g5.xlarge", chosen="g5.xlarge"), 4, 0, id="with a claim"),
        pytest.param(machine("g5.xlarge", chosen="g5.xlarge", claims=3), 4, 0, id="with three claims"),
        pytest.param(machine("g5.xlarge", chosen="g5.xlarge", claims=0), 4, 0, id="kept warm"),
        pytest.param(machine("g5.12xlarge", "g5.xlarge", chosen="g5.xlarge"), 4, 0, id="what EC2 chose"),
        pytest.param(
            machine("g5.xlarge", "g5.12xlarge", "p3.2xlarge", state=MachineState.REQUESTED),
            48,
            8,
            id="what EC2 may choose, the most of each quota",
        ),
        pytest.param(machine("g5.xlarge", "g5.12xlarge", chosen="g9.xlarge"), 48, 0, id="what nobody asked for"),
        pytest.param(machine("c5.large"), 0, 0, id="a type without a quota here"),
        pytest.param(machine("g5.xlarge", state=MachineState.ENDING), 4, 0, id="until it is gone"),
        pytest.param(machine("g5.xlarge", state=MachineState.GONE), 0, 0, id="not once it is gone"),
    ],
)
def test_a_machine_of_our_own_uses_its_vcpus_from_its_request_until_it_is_gone(own, g_vcpus, p_vcpus):
    assert room_of_quotas({G_SPOT: 64.0, P_SPOT: 64.0}, [], CATALOGUE, [own]) == {
        G_SPOT: QuotaUsage(64.0, g_vcpus),
        P_SPOT: QuotaUsage(64.0, p_vcpus),
    }


def test_jobs_on_machines_of_our_own_do_not_count_again():
    jobs = [on_own_machine("one", "i-1"), on_own_machine("two", "i-1"), on_own_machine("three"), running("four")]

    assert room_of_quotas({G_SPOT: 64.0}, jobs, CATALOGUE, [machine("g5.12xlarge")]) == {G_SPOT: QuotaUsage(64.0, 52.0)}


def test_a_hundred_machines_are_added_up():
    assert room_of_quotas({G_SPOT: 64.0}, [], CATALOGUE, [machine("g5.xlarge")] * 100) == {
        G_SPOT: QuotaUsage(64.0, 400.0)
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
