"""A capacity provider whose machines run other tasks is a queue: its next free machine is waited for, and used."""

from datetime import timedelta
from unittest.mock import Mock

import pytest

from fakes.builders import make_definition, make_offering, make_offering_key
from fakes.jobs import make_unreadable
from fakes.story import MINUTE, Story, machine, push
from relaunch.adapters.aws.ecs.run_task import failed_placement
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.launches.launch import NodeObservation
from relaunch.core.machines.machine import Resources
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.observe_machine import observe_machine

PROVIDER = "g5-xlarge-spot"


def full_provider(*others: str) -> tuple[Story, str, str]:
    """Let a job run on the only machine of a group at its maximum size, and withdraw the launch of another one.

    `others` are providers with the same instance type and purchase option.
    """
    story = Story(make_definition(purchase=PurchasePolicy.SPOT))
    story.offerings.available = tuple(make_offering(capacity_provider=name) for name in (PROVIDER, *others))
    running = story.submit_and_deliver(push("a" * 40))
    story.run(running)
    waiting = story.submit_and_deliver(push("b" * 40))
    withdraw(story, waiting)
    return story, running, waiting


def withdraw(story: Story, job_id: str) -> None:
    """Let the task of a job wait for a machine for too long."""
    arn = story.arn(job_id)
    story.reconcile(after=15 * MINUTE)
    assert story.job(job_id).state is JobState.STOPPING
    story.tell(story.tasks.end(arn, None, stop_code="UserInitiated", stopped_at=story.now))
    story.settle()


def test_it_is_waited_for_without_a_lesson_on_spot_and_explain_says_what_for():
    story, _, waiting = full_provider()

    job = story.job(waiting)
    assert job.waiting is not None
    assert job.waiting.reason is WaitReason.CAPACITY
    assert f"the machines of capacity provider {PROVIDER} run other tasks" in job.waiting.detail
    assert "or until one of them is free" in job.waiting.detail
    assert story.deps.capacity.load_pool(make_offering_key()).record.has_capacity is not False
    (failure,) = story.deps.capacity.load_capacity_memory(story.now).values()
    assert failure.until - failure.at == timedelta(minutes=15)


def test_the_end_of_a_task_there_wakes_the_job_that_has_waited_longest_first():
    story, running, waiting = full_provider()
    younger = story.submit_and_deliver(push("c" * 40))
    assert story.job(younger).state is JobState.WAITING
    story.launches.requested.clear()

    story.clock.advance(MINUTE)
    story.end(running)

    assert [job_id for job_id, _ in story.launches.requested[:2]] == [waiting, younger]
    assert story.launches.requested[0][1] < story.launches.requested[1][1]
    story.deliver()
    assert story.attempt(waiting).placement.capacity_provider == PROVIDER
    assert story.job(waiting).state is JobState.LAUNCHING


def test_it_is_avoided_for_a_quarter_of_an_hour_however_often_it_was_full():
    story, _, waiting = full_provider()
    for _ in range(4):
        story.reconcile(after=16 * MINUTE)
        story.settle()
        assert story.job(waiting).state is JobState.LAUNCHING
        withdraw(story, waiting)

    (failure,) = story.deps.capacity.load_capacity_memory(story.now).values()
    assert failure.until - failure.at == timedelta(minutes=15)


def test_a_machine_that_becomes_free_of_the_tasks_of_others_reopens_it():
    story, _, waiting = full_provider()
    registered_at = story.now - timedelta(hours=1)
    seen = NodeObservation(
        machine(),
        is_active=True,
        task_count=0,
        registered_at=registered_at,
        capacity_provider=PROVIDER,
        registered=Resources(gpus=1.0),
    )
    story.tasks.find_node = lambda _name: seen

    story.clock.advance(MINUTE)
    observe_machine(seen, story.deps)
    story.deliver()

    assert story.job(waiting).state is JobState.LAUNCHING


def test_another_provider_of_the_same_type_and_purchase_is_used_meanwhile():
    story, _, waiting = full_provider("g5-xlarge-spot-b")

    assert story.attempt(waiting).placement.capacity_provider == "g5-xlarge-spot-b"
    assert story.attempt(waiting).placement.offering == make_offering_key(purchase=PurchaseOption.SPOT)


def test_a_machine_that_has_just_gone_to_a_task_which_waited_for_one_is_a_queue_before_anybody_knows_of_it():
    story = Story(make_definition(purchase=PurchasePolicy.SPOT))
    story.offerings.available = (make_offering(capacity_provider=PROVIDER),)
    first = story.submit_and_deliver(push("a" * 40))
    assert story.attempt(first).node is None
    story.tasks.outcomes.append(failed_placement(["RESOURCE:MEMORY"]))
    story.submit_and_deliver(push("b" * 40))

    (failure,) = story.deps.capacity.load_capacity_memory(story.now).values()
    assert failure.is_queue


@pytest.mark.parametrize(("reason", "is_queue"), [("RESOURCE:MEMORY", True), ("RESOURCE:GPU", True), ("AGENT", False)])
def test_machines_that_have_no_room_now_are_a_queue_too_where_the_group_is_not_scaled(reason: str, is_queue: bool):
    story = Story(make_definition(purchase=PurchasePolicy.SPOT))
    story.offerings.available = (make_offering(capacity_provider=PROVIDER),)
    running = story.submit_and_deliver(push("a" * 40))
    story.run(running)
    story.tasks.outcomes.append(failed_placement([reason]))

    waiting = story.submit_and_deliver(push("b" * 40))
    story.settle()

    assert story.job(waiting).waiting.reason is WaitReason.CAPACITY
    (failure,) = story.deps.capacity.load_capacity_memory(story.now).values()
    assert failure.is_queue is is_queue
    assert (story.deps.capacity.load_pool(make_offering_key()).record.has_capacity is False) is not is_queue
    story.end(running)
    story.deliver()
    assert story.job(waiting).state is (JobState.LAUNCHING if is_queue else JobState.WAITING)


def test_a_job_that_cannot_be_read_keeps_nobody_from_the_queue():
    story, running, waiting = full_provider()
    story.reconcile(after=16 * MINUTE)
    story.settle()
    make_unreadable(story.jobs, "resnet-unreadable", PermanentError("it was stored by a later version"))
    story.jobs.load_slot_holders = lambda limit: ["resnet-unreadable", waiting, running][:limit]

    withdraw(story, waiting)

    (failure,) = story.deps.capacity.load_capacity_memory(story.now).values()
    assert failure.is_queue


def test_what_could_not_be_offered_is_left_to_the_sweep():
    story, running, waiting = full_provider()
    story.deps.capacity.load_capacity_memory = Mock(side_effect=TransientError("RequestTimeout"))

    story.end(running)

    assert story.job(running).state is JobState.SUCCEEDED
    assert story.job(waiting).state is JobState.WAITING


def test_a_provider_without_a_machine_of_the_stack_has_no_capacity():
    story = Story(make_definition(purchase=PurchasePolicy.SPOT))
    story.offerings.available = (make_offering(capacity_provider=PROVIDER),)
    job_id = story.submit_and_deliver()

    withdraw(story, job_id)

    (failure,) = story.deps.capacity.load_capacity_memory(story.now).values()
    assert not failure.is_queue
    assert failure.until - failure.at == timedelta(minutes=30)
    assert story.deps.capacity.load_pool(make_offering_key()).record.has_capacity is False


@pytest.mark.parametrize(
    "text",
    [
        "Unexpected EC2 error while launching instance",
        "ResourceInitializationError: it is not known of what",
        "CannotPullContainerError: i/o timeout",
        "CannotPullContainerError: manifest unknown",
    ],
)
def test_a_task_that_never_had_a_node_never_ends_its_job(text: str):
    story = Story(make_definition(max_failures=0))
    story.offerings.available = (make_offering(capacity_provider=PROVIDER),)
    job_id = story.submit_and_deliver()
    for _ in range(3):
        arn = story.arn(job_id)
        assert story.tasks.tasks[arn].node is None
        failed = {"stop_code": "TaskFailedToStart", "stopped_reason": text, "stopped_at": story.now}
        story.tell(story.tasks.end(arn, None, **failed))
        story.settle()
        job = story.job(job_id)
        assert (job.state, job.totals.failures) == (JobState.WAITING, 0)
        story.reconcile(after=300 * MINUTE)
        story.deliver()
