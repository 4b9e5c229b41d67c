"""Cancelling in every state, also while nobody knows whether a task exists."""

import pytest

from fakes.builders import make_definition, make_failed_placement
from fakes.story import MINUTE, Story, machine, push
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import LaunchDeferred
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.launch_attempt import launch_attempt


def test_a_waiting_job_is_cancelled_at_once(story):
    job_id = story.submit()

    job = cancel_job(job_id, "not needed", story.deps)

    assert job is not None
    assert (job.state, job.reason) == (JobState.CANCELLED, "not needed")
    story.settle()
    assert story.tasks.requests == []


def test_a_running_job_is_cancelled_when_its_task_has_stopped(story, running_id):
    cancel_job(running_id, "not needed", story.deps)
    assert story.job(running_id).state is JobState.STOPPING
    assert story.tasks.stops == [(story.arn(running_id), "Relaunch: not needed")]

    story.end(running_id, 0)
    assert story.job(running_id).state is JobState.CANCELLED
    assert story.jobs.slots["*"] == 0


def test_a_task_that_is_placed_but_does_not_run_yet_is_stopped(story, placed_id):
    cancel_job(placed_id, "not needed", story.deps)
    story.end(placed_id, None, stop_code="UserInitiated")

    assert story.job(placed_id).state is JobState.CANCELLED
    assert story.jobs.job(placed_id).totals.run_seconds == 0


def test_a_job_cancelled_during_an_interruption_is_not_launched_again(story, running_id):
    story.warn(machine().instance_id)

    cancel_job(running_id, "not needed", story.deps)
    story.end(running_id, 0)
    story.settle()

    assert story.job(running_id).state is JobState.CANCELLED
    assert len(story.tasks.requests) == 1


def test_a_job_that_is_over_is_left_as_it_is(story, running_id):
    story.end(running_id, 0)
    over = story.job(running_id)

    assert cancel_job(running_id, "too late", story.deps) == over


def test_an_unknown_job_cannot_be_cancelled(story):
    assert cancel_job("gone", "not needed", story.deps) is None


def test_a_task_that_turns_out_to_exist_is_found_and_stopped(story):
    job_id = story.launch_unanswered(takes_effect=True)

    cancel_job(job_id, "not needed", story.deps)
    story.settle()

    assert story.job(job_id).state is JobState.STOPPING
    assert story.tasks.stops == [(story.arn(job_id), "Relaunch: not needed")]
    assert len(story.tasks.requests) == 1
    story.end(job_id, None)
    assert story.job(job_id).state is JobState.CANCELLED


def test_a_task_that_was_never_made_is_waited_for_as_long_as_ecs_may_take_to_list_it(story):
    job_id = story.launch_unanswered(takes_effect=False)
    story.clock.advance(20 * MINUTE)
    cancel_job(job_id, "not needed", story.deps)

    for _ in range(2):
        story.deliver()
        assert story.job(job_id).state is JobState.LAUNCHING
        story.clock.advance(2.5 * MINUTE)

    story.clock.advance(MINUTE)
    story.settle()
    assert story.job(job_id).state is JobState.CANCELLED
    assert len(story.tasks.requests) == 1
    assert story.jobs.slots["*"] == 0


def test_a_second_cancel_does_not_put_the_end_off(story):
    job_id = story.launch_unanswered(takes_effect=False)
    cancel_job(job_id, "not needed", story.deps)
    story.clock.advance(3 * MINUTE)

    cancel_job(job_id, "really", story.deps)
    story.settle()

    assert story.job(job_id).state is JobState.CANCELLED
    assert story.job(job_id).reason == "not needed"


@pytest.mark.parametrize(
    "outcome", [LaunchDeferred("ThrottlingException"), make_failed_placement("RESOURCE:GPU"), None], ids=str
)
def test_a_cancel_while_runtask_is_being_answered_holds_whatever_the_answer(story, outcome):
    job_id = story.submit()
    launch = story.tasks.launch

    def cancel_meanwhile(request):
        story.tasks.launch = launch
        cancel_job(job_id, "not needed", story.deps)
        return outcome or launch(request)

    story.tasks.launch = cancel_meanwhile
    launch_attempt(job_id, story.deps)
    story.clock.advance(3 * MINUTE)
    story.settle()
    if story.job(job_id).state is JobState.STOPPING:
        story.end(job_id, None)

    assert story.job(job_id).state is JobState.CANCELLED
    assert len(story.tasks.requests) == int(outcome is None)


def test_a_cancelled_job_lets_the_next_one_in():
    story = Story(make_definition(max_running_jobs=1))
    first = story.launch()
    second = story.submit(push("b" * 40))
    story.settle()

    cancel_job(first, "not needed", story.deps)
    story.end(first, 143)
    story.settle()

    assert story.job(second).state is JobState.LAUNCHING
