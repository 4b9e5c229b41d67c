"""What comes of RunTask, and when it is not called."""

from dataclasses import replace
from datetime import timedelta
from unittest.mock import DEFAULT, Mock

import pytest

from fakes.builders import make_definition, make_failed_placement, make_offering_key
from fakes.story import MINUTE, WAITS_FOR_IMAGE, Story, push
from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.jobs.effects import CountRun, RequestLaunch
from relaunch.core.jobs.job import STACK_SLOT
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.launches.launch import LaunchConflict, LaunchDeferred, LaunchRefused
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.launch_attempt import launch_attempt


def test_a_launch_chooses_the_cheapest_freezes_it_and_notes_its_task(story):
    job_id = story.submit()

    story.deliver()

    job = story.job(job_id)
    assert job.state is JobState.LAUNCHING
    assert job.current_attempt.placement.offering == make_offering_key()
    assert job.current_attempt.placement.state is PlacementState.PLACED
    assert job.current_attempt.task_id in story.tasks.tasks
    assert job.has_slot
    assert story.launches.requested == []


def test_a_launch_needs_one_read_of_the_job_two_writes_and_one_that_its_change_was_sent(story):
    story.submit()
    story.jobs.decisions.clear()
    story.jobs.load_job = Mock(wraps=story.jobs.load_job)

    story.deliver()

    assert story.jobs.load_job.call_count == 1
    assert [len(decision.job.outbox.unsent) for decision in story.jobs.decisions] == [1, 1, 0]


def test_a_job_that_is_not_there_is_nobodys(story):
    assert launch_attempt("gone", story.deps) is None
    assert story.log.lines == [("ignored", {"job_id": "gone", "reason": "no such job"})]


def test_failures_of_placement_go_on_to_the_next_offering_in_the_same_attempt(launching):
    story, job_id = launching(make_failed_placement("RESOURCE:GPU"), make_failed_placement("ATTRIBUTE"))

    story.settle()

    attempt = story.attempt(job_id)
    assert [request.capacity_provider for request in story.tasks.requests] == [
        "g5-xlarge-spot",
        "g6-xlarge-spot",
        "g5-xlarge-on-demand",
    ]
    assert (attempt.number, attempt.placement.number) == (1, 3)
    assert [each.outcome for each in attempt.closed_placements] == [
        "the cluster placed nothing: RESOURCE:GPU",
        "the cluster placed nothing: ATTRIBUTE",
    ]
    assert {request.environment["RELAUNCH_ATTEMPT"] for request in story.tasks.requests} == {"1"}
    assert len(set(story.launched_placements)) == 3


def test_a_failed_offering_is_avoided_by_other_jobs_too(launching):
    story, _ = launching(make_failed_placement("RESOURCE:GPU"))
    story.settle()

    story.submit(push("b" * 40))
    story.settle()

    assert story.tasks.requests[-1].capacity_provider == "g6-xlarge-spot"


def test_a_deferred_launch_is_sent_again_the_same_after_a_while(launching):
    story, job_id = launching(LaunchDeferred("ThrottlingException: Rate exceeded"))

    story.deliver()
    assert story.job(job_id).state is JobState.LAUNCHING
    assert story.job(job_id).reason == "ThrottlingException: Rate exceeded"
    ((asked, delay_seconds),) = story.launches.requested
    assert asked == job_id
    assert 15 <= delay_seconds <= 45

    story.settle()
    assert story.tasks.requests[0] == story.tasks.requests[1]
    assert len(story.tasks.tasks) == 1


@pytest.mark.parametrize("count", [10_000, TransientError("SQS is down")], ids=["counted", "not counted"])
def test_the_more_launches_wait_the_later_a_deferred_one_is_sent_again(launching, count):
    story, _ = launching(LaunchDeferred("ThrottlingException: Rate exceeded"))
    story.launches.count_requests = Mock(side_effect=[count])

    story.deliver()

    ((_, delay_seconds),) = story.launches.requested
    assert (delay_seconds > 200) is (count == 10_000)


def test_however_long_ecs_throttles_each_answer_asks_for_one_more_launch(launching):
    story, job_id = launching(*[LaunchDeferred("ThrottlingException: Rate exceeded")] * 12)

    for _ in range(12):
        assert story.deliver() == 1

    assert len(story.launches.requested) == 1
    assert story.deliver() == 1
    assert story.arn(job_id)


def test_a_refused_launch_fails_the_job_and_gives_its_slot_back(launching):
    story, job_id = launching(LaunchRefused("InvalidParameterException: TaskDefinition is inactive"))

    story.deliver()

    assert story.job(job_id).state is JobState.FAILED
    assert (
        story.job(job_id).reason
        == "the cluster refuses the launch: InvalidParameterException: TaskDefinition is inactive"
    )
    assert story.jobs.slots["*"] == 0


def test_a_request_beyond_ecs_limits_fails_the_job_and_says_which(launching):
    story, job_id = launching(PermanentError("launching: the overrides have 9000 characters, ECS takes 8192"))

    story.deliver()

    assert story.job(job_id).state is JobState.FAILED
    assert "the overrides have 9000 characters" in story.job(job_id).reason


def test_a_conflict_names_the_task_that_is_there(launching):
    story, job_id = launching(LaunchConflict(("arn:task/7",)))

    story.deliver()

    assert story.arn(job_id) == "arn:task/7"


@pytest.mark.parametrize(("of_definition", "of_stack", "slot"), [(1, 2, "resnet"), (2, 1, STACK_SLOT)])
def test_a_job_without_a_slot_waits_for_that_which_is_taken(of_definition, of_stack, slot):
    story = Story(make_definition(max_running_jobs=of_definition))
    story.deps = replace(story.deps, limits=replace(story.deps.limits, max_running_jobs=of_stack))
    story.launch()
    job_id = story.submit(push("b" * 40))

    story.settle()

    job = story.job(job_id)
    assert (job.waiting.reason, job.waiting.slot) == (WaitReason.SLOT, slot)
    assert not job.has_slot
    assert len(story.tasks.requests) == 1


def test_a_relaunch_needs_no_second_slot():
    story = Story(make_definition(max_running_jobs=1))
    job_id = story.launch()

    story.lose_host(job_id)
    story.settle()

    assert story.job(job_id).state is JobState.LAUNCHING
    assert story.jobs.slots["resnet"] == 1


def test_a_pause_after_a_failure_is_kept_even_when_a_launch_is_asked_for(story, running_id):
    story.end(running_id, 1)

    launch_attempt(running_id, story.deps)
    assert len(story.tasks.requests) == 1

    story.clock.advance(timedelta(seconds=26))
    launch_attempt(running_id, story.deps)
    assert len(story.tasks.requests) == 2


def test_a_job_that_waits_for_its_image_is_not_launched():
    story = Story(WAITS_FOR_IMAGE)
    job_id = story.submit()

    launch_attempt(job_id, story.deps)

    assert story.job(job_id).state is JobState.WAITING
    assert story.tasks.requests == []


def test_what_is_still_to_be_done_is_done_before_the_launch(story, running_id):
    count_run = story.deps.capacity.count_run
    story.deps.capacity.count_run = Mock(wraps=count_run, side_effect=[TransientError("throttled"), DEFAULT])
    with pytest.raises(TransientError):
        story.lose_host(running_id)
    assert [type(effect) for effect in story.job(running_id).pending] == [CountRun, RequestLaunch]

    launch_attempt(running_id, story.deps)

    assert story.tasks.requests[-1].capacity_provider == "g6-xlarge-spot"
    assert story.job(running_id).pending == ()


def test_the_newest_checkpoint_is_looked_for_only_when_there_can_be_one():
    story = Story(make_definition(checkpoint_uri=None))
    job_id = story.launch()
    story.checkpoints.complete[job_id] = "s3://somebody/elses/"

    story.lose_host(job_id)
    story.settle()

    assert "RELAUNCH_RESUME_URI" not in story.tasks.requests[-1].environment


def test_a_cancelled_job_whose_launch_is_under_way_is_not_launched_again(launching):
    story, job_id = launching(LaunchDeferred("ThrottlingException"))
    story.deliver()
    cancel_job(job_id, "not needed", story.deps)

    story.clock.advance(3 * MINUTE)
    story.settle()

    assert story.job(job_id).state is JobState.CANCELLED
    assert len(story.tasks.requests) == 1
