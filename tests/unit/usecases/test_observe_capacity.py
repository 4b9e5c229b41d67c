"""Warnings and ends of machines reach the jobs on them, in time and only those."""

from datetime import timedelta

import pytest

from fakes.builders import make_offering_key
from fakes.story import MINUTE, Story, machine, push
from relaunch.core.jobs.job import JobState, StopKind
from relaunch.core.launches.launch import InstanceEvent, InstanceEventKind, LaunchUncertain
from relaunch.ports import TransientError
from relaunch.usecases.observe_capacity import observe_capacity

HERE = machine().instance_id


def rebalance(story: Story, instance_id: str = HERE):
    return observe_capacity(InstanceEvent(InstanceEventKind.REBALANCE_RECOMMENDATION, instance_id), story.deps)


def test_machines_that_are_not_ours_are_nobodys_business():
    story = Story()
    story.launch()

    assert story.warn("i-0somebody") == []
    assert story.change_host("i-0somebody", "terminated") == []
    assert rebalance(story, "i-0somebody") == []
    assert story.tasks.stops == []


def test_every_task_on_a_machine_is_stopped():
    story = Story()
    first, second = story.launch(), story.launch(push("b" * 40))

    jobs = story.warn(HERE)

    assert {job.job_id for job in jobs} == {first, second}
    assert [arn for arn, _ in story.tasks.stops] == [story.arn(first), story.arn(second)]


def test_a_machine_that_was_not_noted_yet_is_asked_for_at_ecs():
    story = Story()
    job_id = story.submit()
    story.deliver()
    story.tasks.run(story.arn(job_id), machine())
    assert story.jobs.load_on_instance(HERE) == []

    story.warn(HERE)

    assert story.job(job_id).state is JobState.STOPPING
    assert story.attempt(job_id).instance_id == HERE
    assert story.tasks.stops[0][0] == story.arn(job_id)


def test_a_warning_that_comes_before_runtasks_answer_is_stored_is_heeded():
    story = Story()
    story.tasks.outcomes.append(LaunchUncertain("no answer"))
    story.tasks.places_uncertain = True
    job_id = story.submit()
    story.deliver()
    (arn,) = story.tasks.tasks
    story.tasks.run(arn, machine(), started_at=story.now)

    story.warn(HERE)

    assert story.job(job_id).state is JobState.STOPPING
    assert [stopped for stopped, _ in story.tasks.stops] == [arn]


def test_of_two_tasks_on_a_machine_the_one_that_was_not_noted_yet_is_stopped_too():
    story = Story()
    noted = story.launch()
    unnoted = story.submit(push("b" * 40))
    story.deliver()
    story.tasks.run(story.arn(unnoted), machine())

    story.warn(HERE)

    assert story.job(noted).state is JobState.STOPPING
    assert story.job(unnoted).state is JobState.STOPPING
    assert len(story.tasks.stops) == 2


def test_tasks_of_others_on_our_machine_are_left_alone():
    story = Story()
    job_id = story.launch()
    other = story.tasks.change(story.arn(job_id), started_by="somebody")
    story.tasks.tasks[story.arn(job_id)] = other

    story.warn(HERE)

    assert [job.job_id for job in story.warn(HERE)] == [job_id]


def test_a_second_warning_changes_nothing():
    story = Story()
    job_id = story.launch()
    story.warn(HERE)
    warned = story.job(job_id)

    story.clock.advance(30)
    story.warn(HERE)

    assert story.job(job_id) == warned
    assert len(story.tasks.stops) == 1


def test_a_late_warning_of_the_old_machine_does_not_stop_the_new_attempt():
    story = Story()
    job_id = story.launch()
    story.lose_host(job_id)
    story.settle()
    story.run(job_id, machine(2, "g6.xlarge"))

    story.warn(HERE)
    story.change_host(HERE, "terminated")

    assert story.job(job_id).state is JobState.RUNNING
    assert story.attempt(job_id).warned_at is None
    assert story.attempt(job_id).host_ended_at is None
    assert story.tasks.stops == []


def test_the_trouble_of_one_job_does_not_cost_another_its_two_minutes():
    story = Story()
    first, second = story.launch(), story.launch(push("b" * 40))
    story.tasks.stop_failure = TransientError("ThrottlingException")

    story.tasks.find_on_instance = lambda _instance_id: []

    with pytest.raises(TransientError):
        story.warn(HERE)
    assert [arn for arn, _ in story.tasks.stops] == [story.arn(second)]

    story.warn(HERE)
    assert [arn for arn, _ in story.tasks.stops] == [story.arn(second), story.arn(first)]
    assert story.job(first).state is JobState.STOPPING


def test_a_warned_offering_is_avoided_by_the_next_launch_of_any_job():
    story = Story()
    story.launch()
    story.warn(HERE)

    story.submit(push("b" * 40))
    story.settle()

    assert story.tasks.requests[-1].capacity_provider == "g6-xlarge-spot"


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        pytest.param(StopKind.INTERRUPTION, timedelta(seconds=110), id="answers-the-warning"),
        pytest.param(StopKind.INTERRUPTION, timedelta(seconds=-5), id="ahead-of-the-warning"),
    ],
)
def test_a_program_that_exits_0_about_the_time_of_a_warning_has_not_finished(kind, after):
    story = Story()
    job_id = story.launch()
    story.clock.advance(10 * MINUTE)
    warned_at = story.now
    story.warn(HERE)

    story.end(job_id, 0, stopped_at=warned_at + after, stop_code="EssentialContainerExited")

    stop = story.attempt(job_id).stop
    assert stop is not None
    assert stop.kind is kind
    assert story.job(job_id).state is JobState.WAITING


@pytest.mark.parametrize("state", ["shutting-down", "terminated", "stopping", "stopped"])
def test_the_end_of_a_machine_is_noted_and_its_task_looked_at_soon(state):
    story = Story()
    job_id = story.launch()
    story.clock.advance(MINUTE)

    (job,) = story.change_host(HERE, state)

    assert job.job_id == job_id
    assert story.attempt(job_id).host_ended_at == story.now
    assert story.job(job_id).wake_at == story.now + MINUTE
    assert story.tasks.stops == []


@pytest.mark.parametrize("state", ["pending", "running"])
def test_the_beginning_of_a_machine_means_nothing(state):
    story = Story()
    job_id = story.launch()
    before = story.job(job_id)

    assert story.change_host(HERE, state) == []
    assert story.job(job_id) == before


def test_a_rebalance_recommendation_only_feeds_the_capacity_memory():
    story = Story()
    job_id = story.launch()
    before = story.job(job_id)

    assert [job.job_id for job in rebalance(story)] == [job_id]

    assert story.job(job_id) == before
    failure = story.deps.capacity.load_capacity_memory(story.now)[make_offering_key()]
    assert failure.reason == f"rebalance recommendation for {HERE}"
    assert failure.until == story.now + 10 * MINUTE


def test_a_rebalance_recommendation_for_a_machine_the_job_has_left_is_ignored():
    story = Story()
    job_id = story.launch()
    story.end(job_id, 1)
    story.settle()
    story.run(job_id, machine(2))

    assert rebalance(story) == []
    assert story.deps.capacity.load_capacity_memory(story.now) == {}
