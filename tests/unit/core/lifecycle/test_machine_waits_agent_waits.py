"""RunTask finds the agent of a machine of our own disconnected: the job keeps the machine for a while."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import make_attempt, make_failed_placement, make_placement
from relaunch.core.jobs.attempt import Attempt, PlacementState
from relaunch.core.jobs.effects import ReleaseMachine, RequestLaunch
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState, Waiting, WaitReason
from relaunch.core.lifecycle.decision import LAUNCH_TIMEOUT
from unit.core.lifecycle.steps import SOON, after, decided
from unit.core.lifecycle.table_matrix import SITUATIONS, answered

MACHINE = "m-1"
AWAY = "the cluster placed nothing: AGENT"
NOT_CONNECTED = answered(make_failed_placement("AGENT"))


def on_machine(*tries_ago: int, ago: int = 0, outcome: str = AWAY, machine_id: str = MACHINE) -> Job:
    """Return a job that was launched on a machine `ago` seconds ago, after tries so many seconds ago."""
    closed = tuple(
        make_placement(
            number,
            machine_id=machine_id,
            state=PlacementState.CLOSED,
            outcome=outcome,
            requested_at=SOON - timedelta(seconds=seconds),
        )
        for number, seconds in enumerate(tries_ago, start=2)
    )
    placement = make_placement(machine_id=MACHINE, instance_id="i-1", requested_at=SOON - timedelta(seconds=ago))
    return replace(SITUATIONS["fz"], attempt=make_attempt(placement=placement, closed_placements=closed))


def current(job: Job) -> Attempt:
    return job.current_attempt


def test_the_next_try_follows_on_the_same_machine():
    decision = decided(on_machine(), NOT_CONNECTED)
    job = decision.job

    assert (job.state, job.machine_id) == (JobState.WAITING, MACHINE)
    until = SOON + timedelta(seconds=5)
    assert job.waiting == Waiting(WaitReason.MACHINE, SOON, "the agent of i-1 is not connected", until)
    assert [(each.at, each.event) for each in decision.timeline] == [(SOON, "agent not connected")]
    assert job.pending == (RequestLaunch(5),)
    assert job.wake_at == SOON + timedelta(seconds=5) + LAUNCH_TIMEOUT
    assert (current(job).placement.state, current(job).placement.outcome) == (PlacementState.CLOSED, AWAY)


@pytest.mark.parametrize(
    ("tries_ago", "delay_seconds"),
    [
        pytest.param((6,), 5, id="the-second-time"),
        pytest.param((600, 40, 20), 40, id="as-long-as-it-was-away"),
        pytest.param((175, 170), 10, id="for-the-last-time"),
    ],
)
def test_the_longer_the_agent_is_away_the_later_is_the_next_try(tries_ago: tuple[int, ...], delay_seconds: int):
    assert after(on_machine(*tries_ago), NOT_CONNECTED).pending == (RequestLaunch(delay_seconds),)


def test_after_three_minutes_the_machine_is_of_no_use():
    job = after(on_machine(185, 180, 60), NOT_CONNECTED)

    assert (job.machine_id, job.machines.failed) == ("", 1)
    assert [each.is_unusable for each in job.pending if isinstance(each, ReleaseMachine)] == [True]
    assert AWAY in job.reason


def test_other_machines_and_other_failures_do_not_count():
    assert after(on_machine(600, 500, machine_id="m-0"), NOT_CONNECTED).machine_id == MACHINE
    assert after(on_machine(600, 500, outcome="never sent"), NOT_CONNECTED).machine_id == MACHINE


def test_a_first_answer_that_came_late_does_not_count():
    assert after(on_machine(ago=1_200), NOT_CONNECTED).pending == (RequestLaunch(5),)


def test_what_is_said_of_other_instances_does_not_matter():
    failed = answered(make_failed_placement("MemberOf placement constraint unsatisfied.", "AGENT"))

    assert after(on_machine(), failed).machine_id == MACHINE


def test_a_cancelled_job_does_not_wait_for_the_agent():
    job = after(replace(on_machine(), cancel_requested="by hand"), NOT_CONNECTED)

    assert job.state is JobState.CANCELLED


def test_on_a_capacity_provider_another_offering_is_tried():
    job = after(SITUATIONS["fz"], NOT_CONNECTED)

    assert (job.waiting.reason if job.waiting else None) is WaitReason.LAUNCH
