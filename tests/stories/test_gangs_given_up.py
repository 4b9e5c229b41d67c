"""Placements of several tasks that are given up, of which EC2 and ECS have all, a part or none."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import make_container, make_revision, task_id
from fakes.story import MINUTE
from relaunch.core.jobs.attempt import PlacementState, StopKind
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import LaunchRefused, LaunchUncertain
from relaunch.usecases.cancel_job import cancel_job
from stories.test_gangs import NODES, GangStory


def give_up(placed: int, end: Callable[[GangStory, str], object] = lambda _story, _arn: None) -> tuple[GangStory, str]:
    """Let only the tasks of the first ranks be placed, whose answer is lost, and end; return whose they are."""
    story = GangStory()
    job_id = story.start()
    for each in story.machines(job_id):
        story.register(each)
    story.tasks.places_uncertain = True
    answered = [None] * (placed - 1)
    story.tasks.outcomes.extend([*answered, LaunchUncertain("no answer to RunTask")] * 60)
    story.deliver()
    for number, arn in enumerate(list(story.tasks.tasks)):
        # ECS lists them in no order.
        story.tasks.run(arn, started_at=story.now, created_at=story.now + timedelta(seconds=number))
        end(story, arn)
    story.tasks.tasks = dict(reversed(story.tasks.tasks.items()))
    while story.job(job_id).current_attempt.placement.state is PlacementState.PENDING:
        assert story.deliver()
    return story, job_id


def test_the_tasks_of_a_placement_before_are_not_taken_for_those_of_this_one():
    """None of them has started, so that both are of one attempt."""
    story = GangStory()
    job_id = story.place_all()
    for arn in story.ranks(job_id):
        words = "Host EC2 (instance i-0) terminated."
        story.end_rank(arn, None, stop_code="TerminationNotice", stopped_reason=words)
    for _ in range(3):
        story.reconcile(after=2 * MINUTE)
        story.settle_all()
    for each in story.machines(job_id):
        story.register(each)
    story.tasks.places_uncertain = True
    story.tasks.outcomes.append(LaunchUncertain("no answer to RunTask"))
    story.deliver()
    story.tasks.change(task_id(NODES + 1), created_at=story.now)
    assert (story.attempt(job_id).number, len(story.tasks.tasks)) == (1, NODES + 1)
    cancel_job(job_id, "enough", story.deps)
    for _ in range(20):
        story.clock.advance(timedelta(seconds=30))
        story.deliver()

    assert story.ranks(job_id) == (task_id(NODES + 1),)
    assert story.job(job_id).state is JobState.STOPPING


def end_waiting_in_vain(story: GangStory, arn: str) -> None:
    story.tasks.end(arn, 1, stopped_at=story.now, execution_stopped_at=story.now)


def test_a_part_of_the_ranks_that_has_ended_before_it_is_given_up_is_accounted_for_and_no_failure():
    story, job_id = give_up(2, end_waiting_in_vain)
    for _ in range(3):
        story.reconcile(after=2 * MINUTE)

    stop = story.attempt(job_id).stop
    assert stop is not None
    assert (stop.kind, stop.exit_code) == (StopKind.NOT_STARTED, 1)
    assert story.job(job_id).totals.failures == 0
    assert story.job(job_id).state is JobState.WAITING


@pytest.mark.parametrize("placed", [1, 2])
def test_a_part_of_the_ranks_that_has_ended_is_not_asked_for_once_more(placed: int) -> None:
    story, job_id = give_up(placed, end_waiting_in_vain)

    held = story.attempt(job_id).held
    assert held is not None
    assert held.stop.kind is StopKind.NOT_STARTED


def test_a_part_of_the_ranks_that_lives_is_stopped_in_their_order():
    story, job_id = give_up(2)

    assert story.ranks(job_id) == (task_id(1), task_id(2))
    assert story.stopped == {task_id(1), task_id(2)}
    assert story.job(job_id).state is JobState.STOPPING


def test_ranks_that_are_all_there_though_nobody_was_told_have_trained():
    story, job_id = give_up(NODES, lambda story, arn: story.tasks.end(arn, 0, stopped_at=story.now))
    assert story.ranks(job_id) == (task_id(1), task_id(2), task_id(3))
    story.reconcile(after=2 * MINUTE)

    assert story.job(job_id).state is JobState.SUCCEEDED


INACTIVE = LaunchRefused("InvalidParameterException: TaskDefinition is inactive", is_about_revision=True)


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([None, INACTIVE], id="by-one-function"),
        pytest.param([None, LaunchUncertain("no answer to RunTask"), None, INACTIVE], id="by-two"),
    ],
)
def test_ranks_placed_before_their_revision_was_deregistered_are_stopped_and_the_job_goes_on(answers):
    story = GangStory()
    derived = make_revision(containers=(make_container(stop_timeout_seconds=None),))
    story.revisions.active[:] = [replace(derived, network_mode="host")]
    job_id = story.start()
    for each in story.machines(job_id):
        story.register(each)
    story.tasks.outcomes.extend(answers)
    story.registry.is_active = lambda _arn: False
    while story.tasks.outcomes:
        assert story.deliver()

    assert story.job(job_id).state is JobState.STOPPING
    assert story.stopped == set(story.ranks(job_id)) == {task_id(1)}
    story.end_rank(task_id(1), 143)
    story.settle_all()
    for each in story.machines(job_id):
        story.register(each)
    story.settle_all()
    assert story.job(job_id).state is JobState.LAUNCHING
    assert len(story.ranks(job_id)) == NODES
    assert story.job(job_id).totals.failures == 0
    assert "was deregistered" in story.timeline(job_id)


def launch_unlisted(*answers: LaunchUncertain | None) -> tuple[GangStory, str]:
    """Let tasks of the first ranks be placed that ECS does not list later; return whose they are."""
    story = GangStory()
    job_id = story.start()
    for each in story.machines(job_id):
        story.register(each)
    story.tasks.places_uncertain = True
    story.tasks.outcomes.extend(answers)
    story.deliver()
    for number, arn in enumerate(list(story.tasks.tasks)):
        story.tasks.run(arn, node=story.machines(job_id)[number].node, started_at=story.now)
    story.tasks.find_tasks_of = lambda _attempt: []
    # What is sent again has no answer either.
    story.tasks.outcomes.extend([LaunchUncertain("no answer to RunTask")] * 60)
    return story, job_id


def test_a_task_that_was_named_is_stopped_though_ecs_does_not_list_it():
    story, job_id = launch_unlisted(None, LaunchUncertain("no answer to RunTask"))
    assert story.attempt(job_id).placement.placed_ids == (task_id(1),)
    story.tasks.instances.clear()
    while story.attempt(job_id).placement.state is PlacementState.PENDING:
        assert story.deliver()

    assert story.ranks(job_id) == (task_id(1),)
    assert story.attempt(job_id).placement.placed_ids == ()
    assert story.stopped == {task_id(1)}


def test_a_placement_is_not_given_up_while_its_machines_run_what_ecs_does_not_list_but_for_ten_minutes():
    story, job_id = launch_unlisted(LaunchUncertain("no answer to RunTask"))
    began_at = story.now

    def lasts() -> timedelta:
        while story.attempt(job_id).placement.state is PlacementState.PENDING:
            assert story.deliver()
        return story.now - began_at

    # Ten in which it is sent, six in which an answer may come, and ten.
    assert 26 * MINUTE < lasts() < 28 * MINUTE


def test_a_placement_is_given_up_once_no_answer_can_come_if_its_machines_run_nothing():
    story, job_id = launch_unlisted(LaunchUncertain("no answer to RunTask"))
    began_at = story.now
    story.tasks.end(task_id(1), 1, stopped_at=story.now)
    while story.attempt(job_id).placement.state is PlacementState.PENDING:
        assert story.deliver()

    assert 16 * MINUTE < story.now - began_at < 18 * MINUTE
