"""A running task that is to leave its machine, or stays, says why and until when."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import (
    NOW,
    make_attempt,
    make_definition,
    make_job,
    make_placement,
    make_running_attempt,
    make_running_job,
    task_id,
)
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import Handover, PlacementState
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState, Waiting, WaitReason
from relaunch.core.lifecycle.explanation import explain
from relaunch.core.lifecycle.market_choice import describe_run_on_spot
from relaunch.core.market.policies import PolicyName
from unit.core.lifecycle.table_matrix import SITUATIONS

HOUR = timedelta(hours=1)
LATER = NOW + timedelta(minutes=5)
ON_MACHINE = make_placement(state=PlacementState.PLACED, task_id=task_id(), machine_id="m-0", instance_id="i-1")


MOVABLE = replace(SITUATIONS["rd"], wake_at=LATER)
RUNS = "the training to finish; it runs on g5.xlarge on-demand eu-central-1a"
LOOKED = "; when its market policy last looked, only on-demand instances keep its limit"
AGAIN = "; whether to move it to spot is looked at again at 09:31:53 UTC"
RESERVED = replace(MOVABLE.current_attempt.placement.offering, purchase=PurchaseOption.RESERVED)


def on_demand(reason: str = "only on-demand instances keep its limit", **fields) -> Job:
    return replace(
        MOVABLE, market=replace(MOVABLE.market, reason=reason), definition=replace(MOVABLE.definition, **fields)
    )


@pytest.mark.parametrize(
    ("job", "words"),
    [
        pytest.param(on_demand(), LOOKED + AGAIN, id="movable"),
        pytest.param(on_demand(""), AGAIN, id="without a reason"),
        pytest.param(
            on_demand(policy=PolicyName.GREEDY), LOOKED + "; its policy, greedy, does not move it to spot", id="greedy"
        ),
        pytest.param(
            on_demand(checkpoint_uri=None), LOOKED + "; without a `checkpoint` it is not moved to spot", id="unsaved"
        ),
        pytest.param(on_demand(purchase=PurchasePolicy.ON_DEMAND), LOOKED, id="never on spot"),
        pytest.param(replace(on_demand(), machine_id="m-1"), LOOKED, id="its next machine is claimed"),
        pytest.param(
            on_demand("leaving on-demand for spot does not pay", deadline=None),
            "; when a move back to spot was last looked at, leaving on-demand for spot does not pay" + AGAIN,
            id="without a limit",
        ),
        pytest.param(
            on_demand("", deadline=None, checkpoint_uri=None),
            "; without a `checkpoint` it is not moved to spot",
            id="without a limit or checkpoints",
        ),
        pytest.param(on_demand("", deadline=None, target=Target.ACK), "", id="on Kubernetes"),
    ],
)
def test_a_job_on_on_demand_says_why_and_when_that_is_looked_at_again(job, words):
    explanation = explain(job, NOW)

    assert explanation.waiting_for == RUNS + words
    assert explanation.next_step == "the job ends with its program; at its time limit it is stopped"
    assert explanation.next_at == NOW + min(job.definition.deadline or HOUR * 48, HOUR * 48)


def test_a_job_on_spot_says_what_would_end_that_and_not_why_it_was_launched():
    definition = make_definition(estimated_duration=HOUR, deadline=3 * HOUR)
    job = make_running_job(definition=definition, market_reason="spot may be had; on-demand is taken from 13:25 UTC on")

    assert explain(job, NOW).waiting_for == (
        f"the training to finish; it runs on g5.xlarge spot; {describe_run_on_spot(definition)}"
    )


def test_a_job_on_spot_whose_work_is_not_known_says_when_its_policy_decides():
    definition = make_definition(total_steps=1000, deadline=3 * HOUR)

    assert explain(make_running_job(definition=definition), NOW).waiting_for == (
        "the training to finish; it runs on g5.xlarge spot; its market policy decides where it runs once a checkpoint "
        "says how much work is left"
    )


LIMITED = make_definition(estimated_duration=HOUR, deadline=3 * HOUR)
CHOSEN = {"market_reason": "no spot that costs less is to be had", "waiting": None, "wake_at": LATER}
STARTING = make_attempt(placement=make_placement(state=PlacementState.PLACED, task_id=task_id()), task_status="PENDING")


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (
            make_job(**{**CHOSEN, "waiting": Waiting(WaitReason.MACHINE, NOW, "i-1 is starting")}),
            "its machine: i-1 is starting",
        ),
        (
            make_job(**CHOSEN, state=JobState.LAUNCHING, attempt=STARTING),
            "its task to start on g5.xlarge spot (the cluster says PENDING)",
        ),
    ],
)
def test_a_job_that_does_not_run_yet_says_why_it_is_launched_there(job, words):
    limited = replace(job, definition=LIMITED)

    assert explain(job, NOW).waiting_for == words
    assert explain(limited, NOW).waiting_for == (
        f"{words}; its market policy chose that: no spot that costs less is to be had"
    )


def test_what_is_reserved_was_chosen_by_no_policy():
    placement = replace(MOVABLE.current_attempt.placement, offering=RESERVED)
    job = replace(MOVABLE, attempt=replace(MOVABLE.current_attempt, placement=placement))

    assert explain(job, NOW).waiting_for == "the training to finish; it runs on g5.xlarge reserved eu-central-1a"


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

    assert found.waiting_for == "its next machine: this one will be taken away (spot interruption warning)"
    assert found.next_step.startswith(f"it trains on {until}; then it saves, is launched again on {next_place}")
    assert (found.since, found.next_at) == (NOW, stop_by or NOW + timedelta(hours=48))
