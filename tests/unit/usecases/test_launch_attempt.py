"""What comes of RunTask, and what happens to a try whose answer is lost."""

from datetime import timedelta
from unittest.mock import DEFAULT, Mock

import pytest

from fakes.builders import make_definition, make_offering_key
from fakes.story import MINUTE, WAITS_FOR_IMAGE, Story, machine, push
from relaunch.core.jobs.job import CountRun, JobState, PlacementState, RequestLaunch, WaitReason
from relaunch.core.launches.launch import (
    LaunchConflict,
    LaunchDeferred,
    LaunchRefused,
    LaunchUncertain,
    PlacementFailed,
)
from relaunch.ports import PermanentError, StaleWriteError, TransientError
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.launch_attempt import launch_attempt

NO_ANSWER = LaunchUncertain("no answer to RunTask: read timed out")


def launching(*outcomes) -> tuple[Story, str]:
    story = Story()
    story.tasks.outcomes.extend(outcomes)
    return story, story.submit()


def tokens(story: Story) -> list[str]:
    return [request.client_token for request in story.tasks.requests]


def test_a_launch_chooses_the_cheapest_freezes_it_and_notes_its_task():
    story, job_id = launching()

    story.deliver()

    job = story.job(job_id)
    assert job.state is JobState.LAUNCHING
    assert job.current_attempt.placement.offering == make_offering_key()
    assert job.current_attempt.placement.state is PlacementState.PLACED
    assert job.current_attempt.task_arn in story.tasks.tasks
    assert job.has_slot
    assert story.launches.requested == []


def test_a_launch_needs_one_read_of_the_job_and_two_writes():
    story, _ = launching()
    story.jobs.load_job = Mock(wraps=story.jobs.load_job)

    story.deliver()

    assert story.jobs.load_job.call_count == 1
    assert len(story.jobs.decisions) == 2


def test_a_job_that_is_not_there_is_nobodys(story):
    assert launch_attempt("gone", story.deps) is None
    assert story.log.lines == [("ignored", {"job_id": "gone", "reason": "no such job"})]


def test_failures_of_placement_go_on_to_the_next_offering_in_the_same_attempt():
    story, job_id = launching(PlacementFailed(("RESOURCE:GPU",)), PlacementFailed(("ATTRIBUTE",)))

    story.settle()

    attempt = story.attempt(job_id)
    assert [request.capacity_provider for request in story.tasks.requests] == [
        "g5-xlarge-spot",
        "g6-xlarge-spot",
        "g5-xlarge-on-demand",
    ]
    assert (attempt.number, attempt.placement.number) == (1, 3)
    assert [each.outcome for each in attempt.closed_placements] == [
        "ECS placed nothing: RESOURCE:GPU",
        "ECS placed nothing: ATTRIBUTE",
    ]
    assert {request.environment["RELAUNCH_ATTEMPT"] for request in story.tasks.requests} == {"1"}
    assert len(set(tokens(story))) == 3


def test_a_failed_offering_is_avoided_by_other_jobs_too():
    story, _ = launching(PlacementFailed(("RESOURCE:GPU",)))
    story.settle()

    story.submit(push("b" * 40))
    story.settle()

    assert story.tasks.requests[-1].capacity_provider == "g6-xlarge-spot"


def test_a_deferred_launch_is_sent_again_the_same_after_a_while():
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
def test_the_more_launches_wait_the_later_a_deferred_one_is_sent_again(count):
    story, _ = launching(LaunchDeferred("ThrottlingException: Rate exceeded"))
    story.launches.count_requests = Mock(side_effect=[count])

    story.deliver()

    ((_, delay_seconds),) = story.launches.requested
    assert (delay_seconds > 200) is (count == 10_000)


def test_however_long_ecs_throttles_each_answer_asks_for_one_more_launch():
    story, job_id = launching(*[LaunchDeferred("ThrottlingException: Rate exceeded")] * 12)

    for _ in range(12):
        assert story.deliver() == 1

    assert len(story.launches.requested) == 1
    assert story.deliver() == 1
    assert story.arn(job_id)


def test_a_refused_launch_fails_the_job_and_gives_its_slot_back():
    story, job_id = launching(LaunchRefused("InvalidParameterException: TaskDefinition is inactive"))

    story.deliver()

    assert story.job(job_id).state is JobState.FAILED
    assert story.job(job_id).reason == "ECS refuses the launch: InvalidParameterException: TaskDefinition is inactive"
    assert story.jobs.slots["*"] == 0


def test_a_refusal_of_a_try_that_was_sent_before_is_not_final_for_it_may_have_a_task():
    story, job_id = launching(NO_ANSWER, LaunchRefused("AccessDeniedException: not authorized to perform ecs:RunTask"))

    story.deliver()
    story.deliver()

    assert story.job(job_id).state is JobState.LAUNCHING
    assert story.job(job_id).reason == "AccessDeniedException: not authorized to perform ecs:RunTask"
    assert len(story.launches.requested) == 1

    story.settle()
    assert tokens(story) == [tokens(story)[0]] * 3
    assert story.arn(job_id) in story.tasks.tasks


def test_a_refusal_that_stays_fails_the_job_once_its_try_is_too_old_to_have_a_task_unseen():
    story, job_id = launching(NO_ANSWER, *[LaunchRefused("AccessDeniedException")] * 60)

    story.settle()

    assert story.job(job_id).state is JobState.FAILED
    assert len(set(tokens(story))) == 2
    assert timedelta(minutes=50) < story.now - story.job(job_id).accepted_at < timedelta(minutes=65)


def test_a_request_beyond_ecs_limits_fails_the_job_and_says_which():
    story, job_id = launching(PermanentError("launching: the overrides have 9000 characters, ECS takes 8192"))

    story.deliver()

    assert story.job(job_id).state is JobState.FAILED
    assert "the overrides have 9000 characters" in story.job(job_id).reason


def test_a_conflict_names_the_task_that_is_there():
    story, job_id = launching(LaunchConflict(("arn:task/7",)))

    story.deliver()

    assert story.arn(job_id) == "arn:task/7"


@pytest.mark.parametrize("takes_effect", [True, False], ids=["after-it-took-effect", "before-it-took-effect"])
def test_a_launch_without_an_answer_is_sent_again_and_makes_one_task(story, takes_effect):
    job_id = story.launch_unanswered(takes_effect=takes_effect)

    story.settle()

    assert len(story.tasks.tasks) == 1
    assert len(set(tokens(story))) == 1
    assert story.arn(job_id) in story.tasks.tasks


def test_an_event_that_comes_before_runtasks_answer_is_stored_is_taken_for_it(story):
    job_id = story.launch_unanswered(takes_effect=True)
    (arn,) = story.tasks.tasks

    story.tell(story.tasks.run(arn, machine(), started_at=story.now))
    story.settle()

    assert story.job(job_id).state is JobState.RUNNING
    assert story.arn(job_id) == arn
    assert len(story.tasks.requests) == 1


def test_the_answer_is_carried_into_what_others_saved_meanwhile():
    story, job_id = launching()
    original = story.tasks.launch

    def launch(request):
        outcome = original(request)
        story.tell(story.tasks.run(outcome.task_arn, machine(), started_at=story.now))
        return outcome

    story.tasks.launch = launch

    story.deliver()

    assert story.job(job_id).state is JobState.RUNNING
    assert story.tasks.stops == []


def test_two_launch_requests_at_once_launch_once():
    story, job_id = launching()
    story.launches.request_launch(job_id)

    story.deliver()
    story.launches.request_launch(job_id)
    story.settle()

    assert len(story.tasks.requests) == 1


def test_a_pending_placement_that_was_never_sent_is_sent_when_it_is_due():
    story, job_id = launching(RuntimeError("killed"))
    with pytest.raises(RuntimeError):
        story.deliver()
    assert story.attempt(job_id).placement.state is PlacementState.PENDING

    story.reconcile(after=5 * MINUTE)
    story.settle()

    assert story.arn(job_id) in story.tasks.tasks
    assert story.attempt(job_id).placement.number == 1
    assert len(set(tokens(story))) == 1


def test_an_expired_placement_is_never_sent_but_looked_for_and_closed(story):
    job_id = story.launch_unanswered(takes_effect=False)

    # For five minutes ECS may not list what a function, which may take a minute, has just made.
    for step in (51 * MINUTE, 4 * MINUTE):
        story.clock.advance(step)
        story.deliver()
        assert len(story.tasks.requests) == 1
        assert story.attempt(job_id).placement.state is PlacementState.PENDING

    story.clock.advance(2 * MINUTE)
    story.settle()
    attempt = story.attempt(job_id)
    assert attempt.closed_placements[0].outcome == "never sent"
    assert (attempt.number, attempt.placement.number) == (1, 2)
    assert len(story.tasks.tasks) == 1
    assert len(set(tokens(story))) == 2


def test_an_expired_placement_whose_task_exists_gets_it(story):
    job_id = story.launch_unanswered(takes_effect=True)
    (arn,) = story.tasks.tasks

    story.clock.advance(51 * MINUTE)
    story.settle()

    assert story.arn(job_id) == arn
    assert len(story.tasks.requests) == 1


def test_a_task_made_by_an_answer_that_came_too_late_is_stopped():
    story, job_id = launching()
    launch = story.tasks.launch

    def launch_slowly(request):
        story.tasks.launch = launch
        story.clock.advance(53 * MINUTE)
        launch_attempt(job_id, story.deps)
        story.settle()
        return launch(request)

    story.tasks.launch = launch_slowly
    story.deliver()

    assert story.attempt(job_id).placement.number == 2
    (orphan,) = set(story.tasks.tasks) - {story.arn(job_id)}
    assert [arn for arn, _ in story.tasks.stops] == [orphan]
    assert "orphaned task" in story.jobs.events_of(job_id)


def test_a_launch_that_somebody_else_was_faster_with_is_left_to_them(story):
    job_id = story.submit()
    offerings = story.offerings.offerings

    def choose_slowly(now):
        story.offerings.offerings = offerings
        story.tasks.outcomes.append(NO_ANSWER)
        launch_attempt(job_id, story.deps)
        return offerings(now)

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


def test_a_job_without_a_slot_waits_and_says_so():
    story = Story(make_definition(max_running_jobs=1))
    story.launch()
    job_id = story.submit(push("b" * 40))

    story.settle()

    job = story.job(job_id)
    assert job.waiting is not None
    assert job.waiting.reason is WaitReason.SLOT
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


def test_a_cancelled_job_whose_launch_is_under_way_is_not_launched_again():
    story, job_id = launching(LaunchDeferred("ThrottlingException"))
    story.deliver()
    cancel_job(job_id, "not needed", story.deps)

    story.clock.advance(3 * MINUTE)
    story.settle()

    assert story.job(job_id).state is JobState.CANCELLED
    assert len(story.tasks.requests) == 1
