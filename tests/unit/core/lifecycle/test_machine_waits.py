"""What a job does when it claims a machine, loses one, or comes up against the limits on them."""

from dataclasses import replace

import pytest

from fakes.builders import NOW, make_failed_placement
from fakes.machines import claim, machine
from relaunch.core.jobs.effects import ReleaseMachine, RequestLaunch, RequestMachine
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.lifecycle.events import MachineClaimed, MachineLost
from relaunch.core.machines.events import ClaimAsked
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import Consequence, MachineState
from relaunch.core.machines.table import decide
from unit.core.lifecycle.steps import ADMIT, after, decided
from unit.core.lifecycle.table_matrix import EVENTS, SITUATIONS, answered

LOST = MachineLost("m-1", None, "it never registered")


def test_a_claim_on_a_new_machine_requests_it_and_takes_a_slot():
    decision = decided(SITUATIONS["w0"], EVENTS["machine-claimed"])

    assert (decision.job.machine_id, decision.job.machines.requested, decision.job.has_slot) == ("m-1", 1, True)
    assert decision.job.pending == (RequestMachine("m-1"),)
    assert [each.machine.machine_id for each in decision.machines] == ["m-1"]


@pytest.mark.parametrize("situation", ["ws", "wl"])
def test_a_job_that_was_admitted_admits_the_next_one(situation: str):
    assert decided(SITUATIONS[situation], EVENTS["machine-claimed"]).job.pending == (RequestMachine("m-1"), ADMIT)


def test_a_job_that_was_admitted_to_a_slot_and_gets_no_machine_admits_the_next_one():
    assert decided(SITUATIONS["ws"], EVENTS["machine-limit"]).job.pending == (ADMIT,)
    assert decided(SITUATIONS["w0"], EVENTS["machine-limit"]).job.pending == ()


@pytest.mark.parametrize(("state", "effects"), [(MachineState.READY, (RequestLaunch(),)), (MachineState.STARTING, ())])
def test_a_claim_on_a_machine_with_room_goes_on_at_once_only_if_it_is_ready(state: MachineState, effects):
    claimed = decide(machine(state, claims=()), ClaimAsked(claim("resnet-1f2e3d4c")), NOW, MachineLimits())

    job = decided(SITUATIONS["w0"], MachineClaimed(claimed, "it has room")).job

    assert (job.pending, job.machines.requested) == (effects, 0)


def test_three_machines_of_no_use_in_a_row_make_it_wait_for_a_probe():
    job = SITUATIONS["wm"]
    for expected in (WaitReason.LAUNCH, WaitReason.LAUNCH, WaitReason.REFUSED):
        job = after(replace(job, machine_id="m-1"), LOST)
        assert job.waiting.reason is expected

    assert job.machines.failed == 3
    assert job.reason == "it never registered; 3 machines in a row were of no use to the job"


def test_a_machine_that_ec2_never_launched_is_none_of_those_of_a_day():
    unknown = replace(machine(MachineState.GONE, claims=()), instance_id=None)
    launched = replace(unknown, instance_id="i-0abc")
    job = SITUATIONS["wm"]
    for machines, expected in (((unknown,), 0), ((unknown, launched), 1), ((), 2)):
        job = after(replace(job, machine_id="m-1"), replace(LOST, machines=machines))
        assert len(job.machines.useless_at) == expected

    assert job.machines.failed == 3


def test_a_machine_without_room_for_the_task_counts_as_one_of_no_use_and_is_released():
    pending = SITUATIONS["fz"]
    placement = replace(pending.current_attempt.placement, machine_id="m-0", instance_id="i-1")
    job = replace(
        pending,
        attempt=replace(pending.current_attempt, placement=placement),
        machines=replace(pending.machines, failed=2),
    )

    decision = decided(job, answered(make_failed_placement("RESOURCE:MEMORY")))

    assert decision.job.waiting.reason is WaitReason.REFUSED
    assert ReleaseMachine("m-0", decision.job.reason, is_unusable=True, is_unused=True) in decision.job.pending
    assert decision.job.faults.own_failures == ()


def test_a_refused_request_is_no_machine_of_no_use():
    refused = MachineLost("m-1", Consequence.PAUSE, "a permission is missing")

    job = after(SITUATIONS["wm"], refused)

    assert (job.machines.failed, job.waiting.reason) == (0, WaitReason.REFUSED)
    assert job.machines.refused_since is not None


def test_while_the_task_saves_only_a_request_that_may_succeed_is_followed_by_another():
    again = decided(SITUATIONS["sp"], EVENTS["machine-refused"]).job
    not_again = decided(SITUATIONS["sp"], LOST).job

    assert RequestLaunch() in again.pending
    assert RequestLaunch() not in not_again.pending
    assert again.machine_id == not_again.machine_id == ""


@pytest.mark.parametrize("situation", ["wm", "sp"])
def test_a_cancelled_job_releases_the_machine_that_it_waits_for(situation: str):
    job = decided(SITUATIONS[situation], EVENTS["cancel"]).job

    assert [each.machine_id for each in job.pending if isinstance(each, ReleaseMachine)] == ["m-1"]


def test_a_task_that_stops_after_a_warning_leaves_its_machine_for_the_next():
    job = decided(SITUATIONS["sp"], EVENTS["seen-exit-0"]).job

    assert (job.state, job.machine_id) == (JobState.WAITING, "m-1")
    (released,) = [each for each in job.pending if isinstance(each, ReleaseMachine)]
    assert (released.machine_id, released.is_unusable) == ("m-0", True)
