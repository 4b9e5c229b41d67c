"""Machines of a job of several nodes that live when EC2 takes one: when they are given back, and when none is kept."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.story import MINUTE
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.jobs.budgets import Budget
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.machines.events import RefusalKind
from relaunch.core.machines.machine import MachineState
from relaunch.usecases.cancel_job import cancel_job
from stories.test_gang_survivors import SurvivorStory
from stories.test_gangs import G5, NODES


@pytest.mark.parametrize("when", ["while they save", "when all have stopped"])
def test_all_are_given_back_where_ec2_has_no_other_one(when):
    story = SurvivorStory()
    story.fleet.refused[G5] = (RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity")
    story.warn_rank(1)
    if when == "while they save":
        story.settle_all()
        assert story.next_ids == ()
        assert "machines not kept" in story.timeline(story.job_id)
        # They run the old tasks still.
        assert story.states() == [MachineState.READY] * NODES
    else:
        # The answer comes late.
        story.deliver()
    story.end_all()
    story.settle_all()

    story.assert_all_given_back()
    assert [each.overrides[0].offering.instance_type for each in story.fleet.requests[1:]] == ["g5.xlarge", "g6.xlarge"]
    assert story.count == NODES + story.states().count(MachineState.ENDING)


def test_a_refused_replacement_is_not_asked_for_twice():
    story = SurvivorStory()
    story.fleet.refused[G5] = (RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity")
    story.warn_rank(1)
    story.settle_all()
    del story.fleet.refused[G5]
    for _ in range(3):
        story.launches.request_launch(story.job_id)
        story.settle_all()

    assert [each.size for each in story.fleet.requests] == [NODES, 1]


@pytest.mark.parametrize("when", ["before the others have stopped", "after"])
def test_all_are_given_back_when_another_of_them_is_warned(when):
    story = SurvivorStory()
    story.warn_rank(1)
    story.settle_all()
    (new,) = story.new
    if when == "after":
        story.end_all()
        story.settle_all()
    story.warn_rank(2)
    story.settle_all()
    if when != "after":
        assert story.next_ids == ()
        story.end_all()
        story.settle_all()

    story.assert_all_given_back()
    assert story.load(new.machine_id).claims == ()
    assert story.load(new.machine_id).state is MachineState.ENDING
    assert story.job(story.job_id).totals.interruptions == 1


def test_two_warnings_at_once_leave_too_few_to_keep():
    story = SurvivorStory()
    story.warn_rank(1)
    story.warn_rank(2)
    story.settle_all()

    assert [each.size for each in story.fleet.requests] == [NODES]
    assert "1 of 3 machines live" in story.timeline(story.job_id)
    story.end_all()
    story.settle_all()
    story.assert_all_given_back()


def test_of_a_part_of_two_none_is_used_and_the_job_alone_avoids_the_pool():
    story = SurvivorStory(4)
    story.fleet.missing = 1
    story.warn_rank(0)
    story.warn_rank(3)
    story.settle_all()
    story.fleet.missing = 0
    assert story.next_ids == ()
    story.end_all()
    story.settle_all()

    story.assert_all_given_back()
    assert story.fleet.requests[-1].overrides[0].offering.instance_type == "g6.xlarge"
    assert story.deps.capacity.load_capacity_memory(story.now) == {}
    pools = {
        (each.offering.instance_type, each.nodes): each.record.has_capacity
        for each in story.deps.capacity.load_capacity(story.now)[2]
    }
    assert pools["g5.xlarge", 2] is False
    assert pools["g6.xlarge", 4] is True


def test_a_machine_that_is_not_ready_in_time_is_not_waited_for():
    story = SurvivorStory()
    story.warn_rank(1)
    story.settle_all()
    requested_at = story.new[0].created_at
    story.end_all()
    story.settle_all()
    limit = story.deps.limits.machines.registration_deadline
    while story.next_ids and story.next_ids[0] == story.first[0].machine_id:
        assert story.now < requested_at + limit
        wake_at = story.job(story.job_id).wake_at
        assert wake_at is not None
        assert wake_at <= requested_at + limit
        story.reconcile(after=wake_at - story.now)
        story.settle_all()

    assert story.now == requested_at + limit
    story.assert_all_given_back()
    assert len(story.job(story.job_id).machines.useless_at) == 1, "a job gets few of them in a day"


def test_survivors_are_given_back_in_time_though_ec2_does_not_answer():
    story = SurvivorStory()
    story.fleet.throttled = 1_000
    story.warn_rank(1)
    story.deliver()
    story.end_all()
    limit = story.deps.limits.machines.registration_deadline
    requested_at = story.new[0].created_at
    while story.now < requested_at + limit:
        story.deliver()
        story.reconcile(after=timedelta(seconds=30))
    story.fleet.throttled = 0
    story.settle_all()

    story.assert_all_given_back()
    assert story.job(story.job_id).machines.useless_at == (), "EC2 launched none"


def test_a_cancelled_job_keeps_neither_old_machines_nor_new_ones():
    story = SurvivorStory()
    story.warn_rank(1)
    story.settle_all()
    cancel_job(story.job_id, "enough", story.deps)
    story.settle_all()
    assert story.next_ids == ()
    story.end_all()
    story.settle_all()

    assert story.job(story.job_id).state is JobState.CANCELLED
    for each in range(8):
        story.look(after=(each + 1) * MINUTE)
        story.settle_all()
    assert story.running_instances == set()
    assert story.count == 0


def test_a_cancelled_job_that_waits_for_the_new_machine_gives_all_back():
    story = SurvivorStory()
    story.warn_rank(1)
    story.settle_all()
    story.end_all()
    story.settle_all()
    cancel_job(story.job_id, "enough", story.deps)
    story.settle_all()

    assert story.job(story.job_id).state is JobState.CANCELLED
    assert {each.machine_id for each in story.first if story.load(each.machine_id).claims} == set()


def test_a_failure_of_the_program_is_no_reason_to_keep_machines():
    story = SurvivorStory()
    story.end_rank(story.old[1], 7)
    story.settle_all()
    assert story.next_ids == ()
    for arn in (story.old[0], story.old[2]):
        story.end_rank(arn, 1)
    story.reconcile(after=MINUTE)
    story.settle_all()

    # An early failure is tried again on the machines that it had, as before.
    assert [each.size for each in story.fleet.requests] == [NODES]
    ranks = story.attempt(story.job_id).placement.ranks
    assert [each.machine_id for each in ranks] == [each.machine_id for each in story.first]


def test_nothing_is_kept_where_the_stack_has_no_room_for_one_more():
    story = SurvivorStory(max_machines=NODES, handover_reserve=0.0)
    story.warn_rank(1)
    story.settle_all()
    assert [each.size for each in story.fleet.requests] == [NODES]
    assert story.next_ids == ()
    assert "no other machine may be requested" in story.timeline(story.job_id)
    story.end_all()
    story.settle_all()

    # Nothing is held while the counters have no room for three.
    waiting = story.job(story.job_id).waiting
    assert waiting is not None
    assert waiting.reason is WaitReason.MACHINE_LIMIT
    assert [story.load(each.machine_id).claims for each in story.first] == [()] * NODES


def test_nothing_is_kept_where_the_budget_has_no_room():
    story = SurvivorStory()
    story.deps.budgets.set_budget(Budget("stack"), None, 0.01, {})
    story.warn_rank(1)
    story.settle_all()

    assert [each.size for each in story.fleet.requests] == [NODES]
    assert story.next_ids == ()
    assert story.attempt(story.job_id).leaves_survivors


def test_a_pool_that_selection_does_not_keep_is_not_asked_again():
    story = SurvivorStory()
    changed = [
        replace(each, price_usd_per_hour=2.0 * (each.on_demand_usd_per_hour or 0.0)) if each.key == G5 else each
        for each in story.offerings.available
    ]
    story.offerings.available = tuple(changed)
    story.warn_rank(1)
    story.settle_all()

    assert [each.size for each in story.fleet.requests] == [NODES]
    assert f"{G5} is not selected again: " in story.timeline(story.job_id)


def test_a_policy_that_leaves_spot_does_so_with_all_of_them():
    hours = {"estimated_duration": timedelta(hours=20), "deadline": timedelta(hours=24)}
    story = SurvivorStory(defined={**hours, "purchase": PurchasePolicy.SPOT_THEN_ON_DEMAND})
    assert story.attempt(story.job_id).placement.offering == G5
    # Nothing was saved: what is left takes all the time that there is.
    story.clock.advance(timedelta(hours=3, minutes=30))
    story.warn_rank(1)
    story.settle_all()
    assert [each.size for each in story.fleet.requests] == [NODES]
    assert f"{G5} is not selected again: " in story.timeline(story.job_id)
    story.end_all()
    del story.checkpoints.complete[story.job_id]
    story.settle_all()

    assert [(each.size, each.purchase) for each in story.fleet.requests[1:]] == [(NODES, PurchaseOption.ON_DEMAND)]
