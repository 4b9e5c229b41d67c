"""Machines whose instance lives."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW
from fakes.machines import CAPACITY, INSTANCE, NODE, claim, fleet_request, machine, offering, override
from relaunch.core.machines.events import (
    ClaimAsked,
    ClaimReleased,
    InstanceMissing,
    InstanceObservation,
    InstanceSeen,
    InstanceState,
    MachineAbandoned,
    MachineDue,
    MachineWarned,
    NodeSeen,
)
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.living import HEARTBEAT, is_kept_warm
from relaunch.core.machines.machine import (
    AdmitJobs,
    ForgetUnready,
    MachineState,
    RememberFailures,
    Resources,
    TellJobs,
    TerminateInstance,
)
from relaunch.core.machines.requesting import NEXT_LOOK
from relaunch.core.machines.table import decide
from relaunch.core.offerings.capacity_memory import image_scope
from relaunch.core.offerings.instance_types import AmiKind

LIMITS = MachineLimits()
WARM = MachineLimits(warm_time=timedelta(minutes=15))
WITHOUT_GPU = NodeSeen(NODE, Resources(4096, 15_000), is_active=True, at=NOW)


def test_a_machine_is_ready_once_it_shows_all_its_accelerators():
    after = decide(
        machine(MachineState.STARTING), NodeSeen(NODE, CAPACITY, is_active=True, at=NOW), NOW, LIMITS
    ).machine

    assert (after.state, after.node, after.registered_at) == (MachineState.READY, NODE, NOW)
    assert after.pending == (
        TellJobs(("resnet-1",)),
        ForgetUnready((offering(), image_scope(AmiKind.GPU)), NOW),
        AdmitJobs(),
    )


def test_gpus_that_the_agent_does_not_see_yet_are_waited_for():
    waiting = decide(machine(MachineState.STARTING), WITHOUT_GPU, NOW, LIMITS).machine
    again = decide(waiting, WITHOUT_GPU, NOW, LIMITS).machine
    ready = decide(again, NodeSeen(NODE, CAPACITY, is_active=True, at=NOW), NOW, LIMITS).machine

    assert (waiting.state, waiting.reason) == (MachineState.STARTING, "registered with 0 of its 1 GPUs")
    assert waiting.wake_at == NOW + NEXT_LOOK
    assert again.timeline == waiting.timeline
    assert (ready.state, ready.reason) == (MachineState.READY, "")


def test_an_agent_that_is_not_connected_is_waited_for():
    unheard = NodeSeen(NODE, CAPACITY, is_active=True, at=NOW, is_connected=False)

    waiting = decide(machine(MachineState.STARTING), unheard, NOW, LIMITS).machine
    ready = decide(waiting, NodeSeen(NODE, CAPACITY, is_active=True, at=NOW), NOW, LIMITS).machine

    assert (waiting.state, waiting.reason) == (MachineState.STARTING, "registered, and its agent is not connected")
    assert (waiting.pending, waiting.wake_at) == ((), NOW + NEXT_LOOK)
    assert (ready.state, ready.reason) == (MachineState.READY, "")


def test_an_agent_that_is_away_at_the_deadline_has_three_more_minutes():
    unheard = NodeSeen(NODE, CAPACITY, is_active=True, at=NOW, is_connected=False)
    at = NOW + LIMITS.registration_deadline
    waiting = decide(machine(MachineState.STARTING), unheard, at, LIMITS).machine

    early = decide(waiting, MachineDue(), at, LIMITS).machine
    late = decide(waiting, MachineDue(), at + timedelta(minutes=3), LIMITS).machine

    assert (waiting.wake_at, early.state) == (at + NEXT_LOOK, MachineState.STARTING)
    assert (late.state, late.is_unusable) == (MachineState.ENDING, True)


def test_an_agent_that_is_away_when_it_is_first_looked_at_has_three_minutes_from_then():
    at = NOW + LIMITS.registration_deadline + timedelta(minutes=8)
    waiting = decide(
        machine(MachineState.STARTING), NodeSeen(NODE, CAPACITY, is_active=True, at=at, is_connected=False), at, LIMITS
    )

    early, late = (
        decide(waiting.machine, MachineDue(), at + timedelta(seconds=after), LIMITS).machine for after in (179, 180)
    )

    assert (early.state, late.state) == (MachineState.STARTING, MachineState.ENDING)


def test_a_machine_that_is_drained_before_it_was_known_to_be_ready_says_nothing_of_its_pool():
    drained = NodeSeen(NODE, CAPACITY, is_active=False, at=NOW, is_draining=True)
    at = NOW + LIMITS.registration_deadline

    noted = decide(machine(MachineState.STARTING), drained, NOW, LIMITS)
    again = decide(noted.machine, drained, NOW, LIMITS).machine
    ended = decide(noted.machine, MachineDue(), at, LIMITS).machine

    assert (noted.machine.state, noted.machine.reason) == (MachineState.STARTING, "registered, and is drained")
    assert noted.machine.wake_at is not None
    assert (again.timeline, again.wake_at) == (noted.machine.timeline, noted.machine.wake_at)
    assert (ended.state, ended.is_unusable) == (MachineState.ENDING, True)
    assert ended.pending == (TerminateInstance(INSTANCE), TellJobs(("resnet-1",)))


def test_neuron_devices_are_waited_for_too():
    request = fleet_request(override("trn1.32xlarge", capacity=Resources(131_072, 490_000, 0, 16)))
    before = machine(MachineState.STARTING, request=request)
    seen = NodeSeen(NODE, Resources(131_072, 490_000, 0, 8), is_active=True, at=NOW)

    assert decide(before, seen, NOW, LIMITS).machine.reason == "registered with 8 of its 16 Neuron devices"


@pytest.mark.parametrize(
    ("event", "reason"), [(WITHOUT_GPU, "registered with 0 of its 1 GPUs"), (None, "never registered")]
)
def test_a_machine_that_does_not_become_ready_in_time_is_ended_and_its_job_told(event, reason: str):
    before = machine(MachineState.STARTING)
    if event is not None:
        before = decide(before, event, NOW, LIMITS).machine

    early = decide(before, MachineDue(), NOW + LIMITS.registration_deadline - timedelta(seconds=10), LIMITS).machine
    late = decide(before, MachineDue(), NOW + LIMITS.registration_deadline, LIMITS).machine

    assert (early.state, early.wake_at) == (MachineState.STARTING, NOW + LIMITS.registration_deadline)
    assert (late.state, late.is_unusable) == (MachineState.ENDING, True)
    assert reason in late.reason
    (remembered, *others) = late.pending
    assert others == [TerminateInstance(INSTANCE), TellJobs(("resnet-1",))]
    assert isinstance(remembered, RememberFailures)
    assert [each.offering for each in remembered.failures] == [offering(), image_scope(AmiKind.GPU)]
    assert all(each.is_unready and reason in each.reason for each in remembered.failures)


def test_a_bare_metal_machine_is_not_ended_while_it_may_still_start():
    metal = machine(MachineState.STARTING, request=fleet_request(override("g4dn.metal")))

    early = decide(metal, MachineDue(), NOW + timedelta(minutes=29), LIMITS).machine
    late = decide(metal, MachineDue(), NOW + timedelta(minutes=30), LIMITS).machine

    assert early.state is MachineState.STARTING
    assert (late.state, late.reason) == (
        MachineState.ENDING,
        "not ready within 0:30:00: it never registered with the cluster",
    )


def test_a_machine_with_claims_is_looked_at_now_and_then():
    assert decide(machine(MachineState.READY), MachineDue(), NOW, LIMITS).machine.wake_at == NOW + HEARTBEAT


def test_a_machine_that_was_warned_is_looked_at_soon_again():
    warned = machine(MachineState.READY, warned_at=NOW)

    assert decide(warned, MachineDue(), NOW, LIMITS).machine.wake_at == NOW + NEXT_LOOK


def test_a_machine_ends_with_its_last_claim():
    both = machine(MachineState.READY, claims=(claim(), claim("bert-1")))

    one = decide(both, ClaimReleased("resnet-1"), NOW, LIMITS).machine
    admitted = replace(one, pending=())
    none = decide(admitted, ClaimReleased("bert-1", detail="done"), NOW, LIMITS).machine

    assert (one.state, one.pending) == (MachineState.READY, (AdmitJobs(),)), "there is room for another job"
    assert (none.state, none.pending) == (MachineState.ENDING, (TerminateInstance(INSTANCE),))
    assert none.reason == "bert-1; done"


def test_a_machine_is_kept_warm_for_as_long_as_the_stack_says():
    kept = decide(machine(MachineState.READY), ClaimReleased("resnet-1"), NOW, WARM).machine
    admitted = replace(kept, pending=())
    early = decide(admitted, MachineDue(), NOW + timedelta(minutes=14), WARM).machine
    late = decide(admitted, MachineDue(), NOW + timedelta(minutes=15), WARM).machine

    assert (kept.state, kept.idle_since, kept.pending) == (MachineState.READY, NOW, (AdmitJobs(),))
    assert "kept until" in kept.timeline[-1].detail
    assert (early.state, early.wake_at) == (MachineState.READY, NOW + timedelta(minutes=15))
    assert (late.state, late.pending) == (MachineState.ENDING, (TerminateInstance(INSTANCE),))


def test_a_warm_machine_is_looked_at_in_case_its_time_is_made_shorter():
    kept = decide(machine(MachineState.READY), ClaimReleased("resnet-1"), NOW, WARM).machine

    assert kept.wake_at == NOW + HEARTBEAT
    assert decide(replace(kept, pending=()), MachineDue(), kept.wake_at, LIMITS).machine.state is MachineState.ENDING


def test_a_warm_machine_that_is_claimed_again_is_not_idle():
    kept = decide(machine(MachineState.READY), ClaimReleased("resnet-1"), NOW, WARM).machine
    claimed = decide(kept, ClaimAsked(claim("bert-1")), NOW, WARM).machine

    assert claimed.idle_since is None
    assert decide(claimed, MachineDue(), NOW + timedelta(hours=1), WARM).machine.state is MachineState.READY


@pytest.mark.parametrize(
    ("kept", "minutes", "is_warm"),
    [
        (machine(MachineState.READY, claims=(), idle_since=NOW), 14, True),
        (machine(MachineState.READY, claims=(), idle_since=NOW), 15, False),
        (machine(MachineState.READY, claims=()), 0, False),
        (machine(MachineState.READY, idle_since=NOW), 0, False),
        (machine(MachineState.ENDING, idle_since=NOW), 0, False),
    ],
    ids=["warm", "for too long", "never had a job", "claimed", "ending"],
)
def test_a_machine_is_kept_warm_only_while_the_stack_says_so(kept, minutes, is_warm):
    assert is_kept_warm(kept, NOW + timedelta(minutes=minutes), WARM) is is_warm


@pytest.mark.parametrize(
    ("fields", "event"),
    [
        ({}, ClaimReleased("resnet-1", is_unusable=True)),
        ({"is_unusable": True}, ClaimReleased("resnet-1")),
        ({"warned_at": NOW}, ClaimReleased("resnet-1")),
    ],
)
def test_a_machine_that_is_no_good_is_not_kept_warm(fields, event):
    assert decide(machine(MachineState.READY, **fields), event, NOW, WARM).machine.state is MachineState.ENDING


def test_a_machine_that_never_became_ready_is_not_kept_warm():
    starting = machine(MachineState.STARTING)

    assert decide(starting, ClaimReleased("resnet-1"), NOW, WARM).machine.state is MachineState.ENDING


@pytest.mark.parametrize("fields", [{"is_unusable": True}, {"warned_at": NOW}])
def test_a_machine_that_is_no_good_takes_no_more_jobs(fields):
    before = machine(MachineState.READY, claims=(), **fields)

    assert decide(before, ClaimAsked(claim()), NOW, LIMITS).is_ignored


def test_a_warned_machine_goes_on_for_its_tasks_and_tells_jobs_that_are_not_on_it_yet():
    after = decide(machine(MachineState.READY), MachineWarned(NOW), NOW, LIMITS).machine

    assert (after.state, after.warned_at) == (MachineState.READY, NOW)
    assert after.pending == (TellJobs(("resnet-1",)),)


def test_a_warned_machine_without_claims_ends_at_once():
    old = machine(MachineState.READY, claims=(), launched_at=NOW - timedelta(hours=1))

    after = decide(old, MachineWarned(NOW), NOW, LIMITS).machine

    assert (after.state, after.pending) == (MachineState.ENDING, (TerminateInstance(INSTANCE),))


def test_an_instance_that_was_unknown_for_a_moment_is_not_lost():
    before = decide(machine(MachineState.READY), InstanceMissing(), NOW, LIMITS).machine
    seen = InstanceSeen(InstanceObservation(INSTANCE, InstanceState.RUNNING), NOW)

    again = decide(before, seen, NOW, LIMITS).machine

    assert (before.unseen_since, again.unseen_since) == (NOW, None)
    assert again.wake_at is not None


def test_a_machine_that_confirms_no_stop_is_ended_when_its_other_jobs_had_time_to_leave():
    before = machine(MachineState.READY, leave_by=NOW + timedelta(minutes=10), reason="it does not confirm a stop")

    early = decide(before, MachineDue(), NOW + timedelta(minutes=9), MachineLimits()).machine
    late = decide(before, MachineDue(), NOW + timedelta(minutes=10), MachineLimits()).machine

    assert early.state is MachineState.READY
    assert late.state is MachineState.ENDING
    assert late.timeline[-1].detail == "it does not confirm a stop"


def test_the_other_jobs_of_an_abandoned_machine_are_told_and_it_takes_no_more():
    before = machine(MachineState.READY, claims=(claim(), claim("bert-1", Resources(1024, 1_000))))

    after = decide(before, MachineAbandoned("resnet-1", "it does not confirm a stop"), NOW, MachineLimits()).machine

    assert (after.state, after.wake_at) == (MachineState.READY, NOW)
    assert [each.job_id for each in after.claims] == ["bert-1"]
    assert after.pending == (TellJobs(("bert-1",)),)
    assert after.leave_by == NOW + timedelta(minutes=10)
    assert not after.accepts(Resources())
