"""What ECS says of a task reaches its job, and nobody else's does."""

from dataclasses import replace
from unittest.mock import DEFAULT, Mock, call

import pytest

from fakes.builders import make_observation
from fakes.story import MINUTE, machine
from relaunch.core.jobs.job import FailedStart
from relaunch.core.jobs.state import JobState
from relaunch.ports import NotGrantedError, TransientError
from relaunch.usecases.observe_task import observe_task, task_seen
from relaunch.usecases.sweep_cluster import sweep_cluster


@pytest.mark.parametrize("started_by", ["", "ecs-svc/abc", "ecs-svc/9223370494312345678", "somebody", "/1", "batch/"])
def test_other_peoples_tasks_are_nobodys(story, started_by):
    assert observe_task(make_observation("RUNNING", started_by=started_by), story.deps) is None
    assert story.log.lines == []


def test_a_task_of_no_job_is_said_to_be_none_of_ours(story):
    assert observe_task(make_observation("RUNNING", started_by="bert-00000000/7"), story.deps) is None
    assert story.log.decisions == ["ignored"]


def test_the_machine_is_looked_up_once_and_linked_to_the_job(story, placed_id):
    story.tasks.find_node = Mock(wraps=story.tasks.find_node)

    story.run(placed_id)
    story.tell(story.tasks.change(story.arn(placed_id), last_status="RUNNING"))

    assert story.tasks.find_node.call_args_list == [call(machine().name)]
    assert story.jobs.load_on_instance(machine().instance_id) == [placed_id]
    assert story.attempt(placed_id).instance_id == machine().instance_id


def test_a_machine_that_is_gone_already_keeps_nothing_back(story, placed_id):
    running = story.tasks.run(story.arn(placed_id), machine())
    story.tasks.instances.clear()

    story.tell(running)

    assert story.job(placed_id).state is JobState.RUNNING
    assert story.attempt(placed_id).instance_id is None


@pytest.mark.parametrize("error", [TransientError("ThrottlingException"), NotGrantedError("AccessDeniedException")])
def test_a_machine_that_cannot_be_looked_up_delays_no_observation_and_the_next_event_asks_again(
    story, placed_id, error
):
    running = story.tasks.run(story.arn(placed_id), machine())
    answers = [error, DEFAULT]
    story.tasks.find_node = Mock(wraps=story.tasks.find_node, side_effect=answers)

    story.tell(running)
    assert story.job(placed_id).state is JobState.RUNNING
    assert story.attempt(placed_id).instance_id is None
    assert "machine unknown" in story.log.decisions

    story.tell(story.tasks.change(story.arn(placed_id), last_status="RUNNING"))
    assert story.attempt(placed_id).instance_id == machine().instance_id


@pytest.mark.parametrize("told_by", ["the same event again", "an older event", "a look", "a sweep"])
def test_a_machine_that_was_not_looked_up_is_linked_though_nothing_else_is_new(story, placed_id, told_by):
    older = story.tasks.change(story.arn(placed_id), node=machine().name)
    running = story.tasks.run(story.arn(placed_id), machine())
    answers = [TransientError("ThrottlingException: Rate exceeded"), DEFAULT]
    story.tasks.find_node = Mock(wraps=story.tasks.find_node, side_effect=answers)
    story.tell(running)

    if told_by == "a look":
        story.reconcile(after=10 * MINUTE)
    elif told_by == "a sweep":
        story.clock.advance(10 * MINUTE)
        sweep_cluster(story.deps)
    else:
        story.tell(running if told_by == "the same event again" else older)

    attempt = story.attempt(placed_id)
    assert (attempt.instance_id, attempt.task_version) == (machine().instance_id, running.version)
    assert story.job(placed_id).state is JobState.RUNNING
    assert story.jobs.load_on_instance(machine().instance_id) == [placed_id]


def test_a_task_that_never_ran_is_told_again_until_its_machine_is_known(story, placed_id):
    arn = story.arn(placed_id)
    story.tasks.run(arn, machine(), last_status="STOPPED", started_at=None)
    stopped = story.tasks.change(
        arn,
        desired_status="STOPPED",
        stop_code="TaskFailedToStart",
        stopped_reason="CannotPullContainerError: toomanyrequests",
    )
    answers = [TransientError("ThrottlingException: Rate exceeded"), DEFAULT]
    story.tasks.find_node = Mock(wraps=story.tasks.find_node, side_effect=answers)

    with pytest.raises(TransientError, match="Rate exceeded"):
        story.tell(stopped)
    assert story.job(placed_id).faults.failed_starts == ()

    story.tell(stopped)
    assert story.job(placed_id).faults.failed_starts == (
        FailedStart(machine().instance_id, "CannotPullContainerError"),
    )


def test_no_machine_is_looked_up_for_a_task_whose_stop_means_the_same_on_any(story, placed_id):
    story.tasks.run(story.arn(placed_id), machine())
    story.tasks.find_node = None

    story.end(placed_id, 0, stop_code="UserInitiated", stopped_reason="stopped in the console")

    assert story.job(placed_id).state is JobState.CANCELLED
    assert story.hosts.asked == []


@pytest.mark.parametrize(("late", "state"), [(1 * MINUTE, JobState.WAITING), (5 * MINUTE, JobState.SUCCEEDED)])
def test_a_node_that_ecs_does_not_know_any_more_ended_a_program_that_has_just_left(story, placed_id, late, state):
    story.tasks.run(story.arn(placed_id), machine(), started_at=story.now)
    stopped = story.tasks.end(story.arn(placed_id), 0, stopped_at=story.now)
    story.tasks.instances.clear()
    story.clock.advance(late)

    story.tell(stopped)

    assert story.job(placed_id).state is state
    assert story.job(placed_id).totals.interruptions == (state is JobState.WAITING)


@pytest.mark.parametrize("is_known", [True, False])
def test_the_machine_of_a_task_that_was_not_seen_running_is_looked_at_if_ecs_still_knows_it(story, placed_id, is_known):
    story.tasks.run(story.arn(placed_id), machine(), started_at=story.now)
    if not is_known:
        story.tasks.find_node = Mock(side_effect=TransientError("ECS is throttled"))

    story.end(placed_id, 0)
    assert story.job(placed_id).state is (JobState.SUCCEEDED if is_known else JobState.STOPPING)
    story.reconcile(after=MINUTE)

    assert story.job(placed_id).state is JobState.SUCCEEDED
    assert story.hosts.asked == ([machine().instance_id] if is_known else [])


def test_an_event_whose_effect_failed_is_delivered_again_and_comes_to_the_same_end(story, running_id):
    stopped = story.tasks.end(story.arn(running_id), 1, stopped_at=story.now)
    story.clock.advance(10)
    story.launches.failure = TransientError("SQS is down")

    with pytest.raises(TransientError):
        story.tell(stopped)
    saved = story.job(running_id)
    story.tell(stopped)

    assert story.job(running_id) == saved
    assert story.job(running_id).totals.failures == 1
    assert story.launches.requested == [(running_id, 30)]


def test_the_machine_of_a_task_on_one_of_our_own_is_known_without_a_call(machines):
    job_id = machines.place()
    machine = machines.machine(job_id)
    machines.tasks.find_node = Mock(side_effect=AssertionError("DescribeContainerInstances was called"))

    machines.run(job_id)

    attempt = machines.attempt(job_id)
    assert (attempt.instance_id, attempt.zone) == (machine.instance_id, machine.offering.zone)
    assert machines.jobs.load_on_instance(machine.instance_id) == [job_id]


def test_a_task_that_is_not_known_as_that_of_the_placement_is_looked_up(machines):
    job_id = machines.place()
    node = machines.tasks.instances[f"node-of-{machines.machine(job_id).instance_id}"]
    machines.tasks.find_node = Mock(wraps=machines.tasks.find_node)
    arn = machines.arn(job_id)
    job = machines.job(job_id)
    placement = replace(job.current_attempt.placement, task_id=None)

    task_seen(
        machines.tasks.run(arn, node), replace(job, attempt=replace(job.attempt, placement=placement)), machines.deps
    )

    assert machines.tasks.find_node.call_args_list == [call(node.name)]
