"""A running task that is to leave its machine, or stays, says why and until when."""

from datetime import timedelta

import pytest

from fakes.builders import NOW, make_placement, make_running_attempt, make_running_job, task_id
from relaunch.core.jobs.job import Handover, PlacementState
from relaunch.core.lifecycle.explanation import explain

LATER = NOW + timedelta(minutes=5)
ON_MACHINE = make_placement(state=PlacementState.PLACED, task_id=task_id(), machine_id="m-0", instance_id="i-1")


def test_a_running_job_says_why_its_market_policy_launched_it_there():
    explanation = explain(make_running_job(market_reason="only on-demand instances keep its limit"), NOW)

    assert explanation.waiting_for == (
        "the training to finish; it runs on g5.xlarge spot; when its market policy last looked, "
        "only on-demand instances keep its limit"
    )


def test_a_task_that_is_to_be_moved_says_why_and_what_follows():
    handover = Handover(NOW, "leaving on-demand for spot pays", is_move=True)
    job = make_running_job(attempt=make_running_attempt(handover=handover), machine_id="m-1")

    explanation = explain(job, NOW)

    assert explanation.waiting_for == "a machine on spot: leaving on-demand for spot pays"
    assert explanation.next_step == (
        "it trains on until that machine is ready; then it saves, is launched again there, "
        "and resumes from its newest checkpoint"
    )


@pytest.mark.parametrize(
    ("stop_by", "machine_id", "until", "next_place"),
    [
        (LATER, "m-1", "until the next machine is ready, at the latest 09:31:53 UTC", "the machine that is requested"),
        (None, "m-1", "until the next machine is ready", "the machine that is requested"),
        (LATER, "", "until 09:31:53 UTC", "another offering"),
        (None, "", "until there is a next machine that is ready", "another offering"),
    ],
)
def test_a_task_that_trains_on_is_said_to_until_when(stop_by, machine_id, until, next_place):
    attempt = make_running_attempt(placement=ON_MACHINE, handover=Handover(NOW, "spot interruption warning", stop_by))

    found = explain(make_running_job(attempt=attempt, machine_id=machine_id), NOW)

    assert found.waiting_for == "its machine will be taken away (spot interruption warning)"
    assert found.next_step.startswith(f"it trains on {until}; then it saves, is launched again on {next_place}")
    assert (found.since, found.next_at) == (NOW, stop_by or NOW + timedelta(hours=48))
