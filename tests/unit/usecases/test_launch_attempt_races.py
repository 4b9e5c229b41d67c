"""What becomes of a launch when others save the job meanwhile."""

import pytest

from fakes.story import machine
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import LaunchUncertain
from relaunch.ports import StaleWriteError
from relaunch.usecases.launch_attempt import launch_attempt


def test_the_answer_is_carried_into_what_others_saved_meanwhile(story):
    job_id = story.submit()
    original = story.tasks.launch

    def launch(request):
        outcome = original(request)
        story.tell(story.tasks.run(outcome.task_id, machine(), started_at=story.now))
        return outcome

    story.tasks.launch = launch

    story.deliver()

    assert story.job(job_id).state is JobState.RUNNING
    assert story.tasks.stops == []


def test_two_launch_requests_at_once_launch_once(story):
    job_id = story.submit()
    story.launches.request_launch(job_id)

    story.deliver()
    story.launches.request_launch(job_id)
    story.settle()

    assert len(story.tasks.requests) == 1


def test_a_launch_that_somebody_else_was_faster_with_is_left_to_them(story):
    job_id = story.submit()
    offerings = story.offerings.offerings

    def choose_slowly(now, options):
        story.offerings.offerings = offerings
        story.tasks.outcomes.append(LaunchUncertain("no answer to RunTask: read timed out"))
        launch_attempt(job_id, story.deps)
        return offerings(now, options)

    story.offerings.offerings = choose_slowly
    job = launch_attempt(job_id, story.deps)

    assert job is not None
    assert job.state is JobState.LAUNCHING
    assert len(story.tasks.requests) == 1


def test_a_launch_that_lost_a_race_to_another_event_begins_again(story):
    job_id = story.submit()
    story.jobs.fail_next(StaleWriteError("somebody noted something"))

    story.deliver()

    assert story.job(job_id).state is JobState.LAUNCHING
    assert len(story.tasks.requests) == 1


def test_a_launch_that_loses_every_race_is_left_to_the_queue(story):
    job_id = story.submit()
    for _ in range(6):
        story.jobs.fail_next(StaleWriteError("-"))

    with pytest.raises(StaleWriteError, match="6 times"):
        launch_attempt(job_id, story.deps)
