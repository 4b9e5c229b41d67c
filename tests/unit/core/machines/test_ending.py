"""Machines that end."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from fakes.builders import NOW
from fakes.machines import INSTANCE, NODE, fleet_request, machine, override
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.decision import MachineTotals, ignore
from relaunch.core.machines.ending import (
    ENDING_LIMIT,
    ENDING_LOOK,
    MISSING_GRACE,
    NOT_TERMINATED,
    TOLD_EVERY,
    termination_refused,
)
from relaunch.core.machines.events import (
    ClaimReleased,
    InstanceMissing,
    InstanceObservation,
    InstanceSeen,
    InstanceState,
    MachineDue,
    MachineWarned,
)
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import (
    AdmitJobs,
    ChargeJobs,
    DeregisterNode,
    Machine,
    MachineState,
    MachineTimelineEntry,
    TellJobs,
    TerminateInstance,
)
from relaunch.core.machines.table import decide

LIMITS = MachineLimits()


def seen(state: InstanceState, reason: str = "", at: datetime = NOW) -> InstanceSeen:
    return InstanceSeen(InstanceObservation(INSTANCE, state, "m-1", state_reason=reason), at)


def test_the_place_of_a_machine_is_given_back_only_when_ec2_confirms_its_end():
    ending = decide(
        machine(MachineState.READY), seen(InstanceState.SHUTTING_DOWN, "Server.SpotInstanceTermination"), NOW, LIMITS
    )
    gone = decide(ending.machine, seen(InstanceState.TERMINATED), NOW + timedelta(minutes=5), LIMITS)

    assert ending.added == MachineTotals()
    assert ending.machine.ended_at == NOW
    assert "Server.SpotInstanceTermination" in ending.machine.reason
    assert gone.added == MachineTotals(-1, -500_000)
    assert gone.machine.ended_at == NOW


def test_an_instance_that_ends_by_itself_is_not_terminated_but_its_jobs_are_told():
    after = decide(machine(MachineState.STARTING), seen(InstanceState.SHUTTING_DOWN), NOW, LIMITS).machine

    assert after.pending == (TellJobs(("resnet-1",)),)


@pytest.mark.parametrize("state", [InstanceState.STOPPING, InstanceState.STOPPED])
def test_an_instance_that_somebody_stopped_is_terminated_because_its_volumes_cost(state: InstanceState):
    after = decide(machine(MachineState.READY), seen(state), NOW, LIMITS).machine

    assert TerminateInstance(INSTANCE) in after.pending


def test_an_instance_that_goes_on_running_is_terminated_again():
    after = decide(machine(MachineState.ENDING), seen(InstanceState.RUNNING), NOW, LIMITS).machine

    assert after.pending == (TerminateInstance(INSTANCE),)
    assert after.wake_at == NOW + ENDING_LOOK


def test_a_refused_termination_is_noted_once_and_what_was_pending_stays_so():
    ending = machine(MachineState.ENDING, pending=(TerminateInstance(INSTANCE),))

    after = termination_refused(ending, NOW).machine
    repeated = decide(after, seen(InstanceState.RUNNING), NOW, LIMITS).machine

    assert after.is_alert
    assert after.reason == (f"EC2 refuses to terminate {INSTANCE}, which lives: check its tags, and the role that asks")
    assert after.timeline == (MachineTimelineEntry(NOW, MachineState.ENDING, NOT_TERMINATED, after.reason),)
    assert (after.state, after.wake_at, after.pending) == (ending.state, ending.wake_at, ending.pending)
    assert termination_refused(repeated, NOW) == ignore(repeated, "the refusal is known")
    late = decide(after, seen(InstanceState.RUNNING), NOW + ENDING_LIMIT, LIMITS).machine
    assert late.timeline == after.timeline
    assert termination_refused(late, NOW + TOLD_EVERY).machine.told_at == NOW + TOLD_EVERY


@pytest.mark.parametrize(
    ("event", "words", "effects"),
    [
        (seen(InstanceState.RUNNING), f"{INSTANCE} is running", (TerminateInstance(INSTANCE),)),
        (seen(InstanceState.SHUTTING_DOWN), f"{INSTANCE} is shutting-down", ()),
        (seen(InstanceState.STOPPED), f"{INSTANCE} is stopped", (TerminateInstance(INSTANCE),)),
        (MachineDue(), f"EC2 does not say what became of {INSTANCE}", ()),
    ],
)
def test_somebody_is_told_every_hour_of_an_instance_that_ec2_does_not_end(event, words, effects):
    ending = machine(MachineState.ENDING, state_since=NOW, created_at=NOW - ENDING_LIMIT)

    early = decide(ending, event, NOW + ENDING_LIMIT - ENDING_LOOK, LIMITS).machine
    assert (early.timeline, early.is_alert, early.pending) == (ending.timeline, False, effects)
    told = decide(early, event, NOW + ENDING_LIMIT, LIMITS).machine
    assert (told.state, told.is_alert, told.told_at) == (MachineState.ENDING, True, NOW + ENDING_LIMIT)
    assert (told.timeline[-1].event, told.timeline[-1].detail) == (NOT_TERMINATED, told.reason)
    assert told.reason == (
        f"EC2 has not ended it in 30 minutes, though it was asked to: {words}; it may cost until it is gone"
    )
    assert (told.wake_at, told.pending) == (NOW + ENDING_LIMIT + ENDING_LOOK, effects)
    again = decide(told, event, NOW + ENDING_LIMIT + TOLD_EVERY - ENDING_LOOK, LIMITS).machine
    assert again.timeline == told.timeline
    assert len(decide(told, event, NOW + ENDING_LIMIT + TOLD_EVERY, LIMITS).machine.timeline) == 2


def test_a_node_whose_machine_is_gone_is_deregistered():
    gone = decide(machine(MachineState.READY), seen(InstanceState.TERMINATED), NOW, LIMITS).machine

    assert gone.pending == (TellJobs(("resnet-1",)), DeregisterNode(NODE), AdmitJobs())


def test_an_instance_that_ec2_does_not_know_is_gone_when_it_was_unknown_twice_with_time_between():
    first = decide(machine(MachineState.ENDING), InstanceMissing(), NOW, LIMITS)
    soon = decide(first.machine, InstanceMissing(), NOW + timedelta(minutes=1), LIMITS)
    late = decide(first.machine, InstanceMissing(), NOW + MISSING_GRACE, LIMITS)

    assert (first.machine.unseen_since, first.added) == (NOW, MachineTotals())
    assert soon == ignore(first.machine, "not known to EC2 for less than the grace period")
    assert late.machine.state is MachineState.GONE
    assert late.added == MachineTotals(-1, -500_000)


def test_a_machine_that_ends_is_looked_at_until_it_is_gone():
    assert decide(machine(MachineState.ENDING), MachineDue(), NOW, LIMITS).machine.wake_at == NOW + ENDING_LOOK


def warned(at: datetime = NOW, **fields: Any) -> Machine:
    """Return a machine that EC2 launched at NOW, and of which it announced the interruption."""
    ready = replace(machine(MachineState.READY), **fields)
    return replace(decide(ready, MachineWarned(at), at, LIMITS).machine, pending=())


def test_a_spot_machine_that_is_interrupted_within_its_first_hour_is_left_to_ec2():
    ending = decide(warned(), ClaimReleased("resnet-1"), NOW, LIMITS).machine
    early = decide(ending, seen(InstanceState.RUNNING), NOW + timedelta(minutes=2), LIMITS).machine
    gone = decide(early, seen(InstanceState.TERMINATED), NOW + timedelta(minutes=2), LIMITS).machine

    assert (ending.state, ending.pending, ending.claims) == (MachineState.ENDING, (), ())
    assert ending.wake_at == early.wake_at == NOW + timedelta(minutes=3)
    assert ending.reason == "resnet-1; left to EC2"
    assert early.pending == ()
    late = warned(NOW + timedelta(minutes=57), created_at=NOW - timedelta(minutes=5))
    assert late.left_until == NOW + timedelta(minutes=60)
    assert gone.state is MachineState.GONE


def test_one_that_outlives_its_interruption_is_terminated():
    ending = decide(warned(), ClaimReleased("resnet-1"), NOW, LIMITS).machine

    late = decide(ending, seen(InstanceState.RUNNING), NOW + timedelta(minutes=3), LIMITS).machine
    again = decide(late, MachineDue(), NOW + timedelta(minutes=4), LIMITS).machine

    assert late.pending == (TerminateInstance(INSTANCE),)
    assert again.pending == (TerminateInstance(INSTANCE),), "it stays to be done"


def test_an_interruption_that_did_not_come_and_is_announced_again_is_left_to_ec2_once_more():
    ending = decide(warned(), ClaimReleased("resnet-1"), NOW, LIMITS).machine

    again = decide(ending, MachineWarned(NOW + timedelta(minutes=2)), NOW + timedelta(minutes=2), LIMITS).machine
    at_the_first_bound = decide(again, seen(InstanceState.RUNNING), NOW + timedelta(minutes=3), LIMITS).machine
    out_of_order = decide(again, MachineWarned(NOW + timedelta(minutes=1)), NOW + timedelta(minutes=3), LIMITS)

    assert again.wake_at == at_the_first_bound.wake_at == NOW + timedelta(minutes=5)
    assert at_the_first_bound.pending == ()
    assert out_of_order.is_ignored


def test_while_ec2_does_not_answer_one_that_is_left_to_it_is_looked_at_when_it_should_be_over():
    ending = decide(warned(), ClaimReleased("resnet-1"), NOW, LIMITS).machine

    assert decide(ending, MachineDue(), NOW, LIMITS).machine.wake_at == NOW + timedelta(minutes=3)
    late = decide(ending, MachineDue(), NOW + timedelta(minutes=3), LIMITS).machine
    assert late.wake_at == NOW + timedelta(minutes=3) + ENDING_LOOK


@pytest.mark.parametrize(
    ("at", "fields"),
    [
        pytest.param(NOW + timedelta(minutes=58), {}, id="interrupted-after-an-hour"),
        pytest.param(
            NOW,
            {"request": fleet_request(override(purchase=PurchaseOption.ON_DEMAND))},
            id="on-demand-has-no-free-hour",
        ),
    ],
)
def test_one_that_is_billed_anyway_is_terminated_with_its_last_claim(at: datetime, fields: dict[str, Any]):
    ending = decide(warned(at, **fields), ClaimReleased("resnet-1"), at, LIMITS).machine

    assert ending.pending == (TerminateInstance(INSTANCE),)


@pytest.mark.parametrize(
    "announced", [MachineWarned(NOW, is_rebalance=True), MachineWarned(NOW, cause="retirement by AWS")]
)
def test_what_is_no_interruption_is_billed_also_in_the_first_hour(announced: MachineWarned):
    ready = machine(MachineState.READY)
    warned_of = replace(decide(ready, announced, NOW, LIMITS).machine, pending=())
    now_warned = decide(warned_of, MachineWarned(NOW), NOW, LIMITS).machine

    assert decide(warned_of, ClaimReleased("resnet-1"), NOW, LIMITS).machine.pending == (TerminateInstance(INSTANCE),)
    assert decide(now_warned, ClaimReleased("resnet-1"), NOW, LIMITS).machine.pending == ()
    assert decide(now_warned, MachineWarned(NOW), NOW, LIMITS).is_ignored


def test_a_machine_that_ends_already_is_left_to_ec2_unless_it_was_terminated():
    released = decide(machine(MachineState.READY), ClaimReleased("resnet-1"), NOW, LIMITS).machine

    left = decide(released, MachineWarned(NOW), NOW, LIMITS).machine

    assert released.pending == (TerminateInstance(INSTANCE),)
    assert (left.state, left.pending, left.wake_at) == (MachineState.ENDING, (), NOW + timedelta(minutes=3))


def test_an_interruption_that_is_heard_of_after_the_end_counts_until_the_machine_is_charged():
    over = NOW + timedelta(minutes=4)
    paid = replace(machine(MachineState.READY), holdings=(), paid_since=NOW)
    gone = decide(paid, seen(InstanceState.TERMINATED), over, LIMITS).machine
    charged = replace(gone, pending=())

    heard = decide(gone, MachineWarned(NOW), over, LIMITS).machine

    assert ChargeJobs() in gone.pending
    assert (heard.state, heard.pending, heard.left_until) == (
        MachineState.GONE,
        gone.pending,
        NOW + timedelta(minutes=3),
    )
    assert decide(heard, MachineWarned(NOW), over, LIMITS).is_ignored, "it came twice"
    assert decide(gone, MachineWarned(NOW, is_rebalance=True), over, LIMITS).is_ignored
    assert decide(charged, MachineWarned(NOW), over, LIMITS).is_ignored


def test_a_machine_is_paid_until_the_earliest_time_at_which_its_instance_was_seen_to_end():
    over = NOW + timedelta(minutes=4)
    shutting_down = seen(InstanceState.SHUTTING_DOWN, at=NOW + timedelta(minutes=1))
    paid = replace(machine(MachineState.READY), holdings=(), paid_since=NOW)
    gone = decide(paid, seen(InstanceState.TERMINATED, at=over), over, LIMITS).machine

    earlier = decide(gone, shutting_down, over, LIMITS).machine

    assert (gone.ended_at, earlier.ended_at) == (over, NOW + timedelta(minutes=1))
    assert (earlier.state, earlier.pending, earlier.wake_at) == (gone.state, gone.pending, gone.wake_at)
    assert decide(earlier, shutting_down, over, LIMITS).is_ignored, "it came twice"
    assert decide(replace(gone, pending=()), shutting_down, over, LIMITS).is_ignored, "it is charged"
    assert decide(gone, seen(InstanceState.RUNNING, at=NOW), over, LIMITS).is_ignored
    # While it ends too: what is heard first need not have come first.
    ending = replace(gone, state=MachineState.ENDING)
    assert decide(ending, shutting_down, over, LIMITS).machine.ended_at == NOW + timedelta(minutes=1)
