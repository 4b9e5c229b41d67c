"""local: faults of the local world, each aimed at what a job runs on."""

import pytest

from fakes.builders import INSTANCE_ID, make_offering
from relaunch.core.definitions.accelerator import PurchaseOption


@pytest.fixture
def running(session) -> str:
    job_id = session.submit()
    session.run(session.launch(job_id))
    return job_id


@pytest.mark.parametrize(
    ("options", "lead", "has_rebalance"),
    [((), None, False), (("--lead", "3"), 3.0, False), (("--rebalance-first",), None, True)],
)
def test_the_instance_of_a_job_is_interrupted(relaunch, session, running, options, lead, has_rebalance):
    result = relaunch("local", "interrupt", running, *options)

    assert (result.exit_code, result.stdout) == (0, "")
    assert f"EC2 warns that it takes {INSTANCE_ID} away" in result.stderr
    expected = {"instance_id": INSTANCE_ID, "lead_seconds": lead, "rebalance_first": has_rebalance}
    assert session.local_world.calls == [("interrupt", expected)]


def test_the_instance_of_a_job_is_terminated(relaunch, session, running):
    assert relaunch("local", "terminate", running).exit_code == 0
    assert session.local_world.calls == [("terminate", {"instance_id": INSTANCE_ID})]


@pytest.mark.parametrize(("options", "instances"), [((), 0), (("--end",), None)])
def test_there_is_no_capacity_for_what_it_was_launched_on_until_there_is(
    relaunch, session, running, options, instances
):
    placed = session.jobs.job(running).current_attempt.placement.offering

    result = relaunch("local", "no-capacity", running, *options)

    pool = {"instance_type": placed.instance_type, "purchase": "spot"}
    assert session.local_world.calls == [("capacity", {**pool, "instances": instances})]
    assert f"capacity for {placed.instance_type} spot" in result.stderr


def test_only_spot_is_interrupted(relaunch, session):
    session.offerings.available = (
        make_offering(purchase=PurchaseOption.ON_DEMAND, price_usd_per_hour=1.0, on_demand_usd_per_hour=1.0),
    )
    job_id = session.submit()
    session.run(session.launch(job_id))

    result = relaunch("local", "interrupt", job_id)

    assert result.exit_code == 2
    assert f"`relaunch local terminate {job_id}` ends its instance" in result.stderr
    assert session.local_world.calls == []


@pytest.mark.parametrize("fault", ["interrupt", "terminate"])
def test_a_job_without_a_task_on_an_instance_cannot_lose_it(relaunch, session, running, fault):
    waiting = session.submit("second")
    placed = session.submit("third")
    session.launch(placed)
    session.interrupt(session.jobs.job(running).current_attempt.task_id)

    for job_id, text in (
        (waiting, "was not launched yet"),
        (placed, "has no task on an instance now"),
        (running, "has no task on an instance now"),
        ("resnet-0", "there is no job 'resnet-0'"),
    ):
        result = relaunch("local", fault, job_id)

        assert result.exit_code == 3
        assert text in result.stderr
    assert session.local_world.calls == []


def test_a_job_that_waits_again_has_a_last_place(relaunch, session, running):
    session.interrupt(session.jobs.job(running).current_attempt.task_id)

    assert relaunch("local", "no-capacity", running).exit_code == 0
    assert relaunch("local", "no-capacity", session.submit("second")).exit_code == 3
