"""What happens to a try whose answer is lost, late or never asked for."""

from contextlib import nullcontext
from datetime import timedelta

import pytest

from fakes.story import MINUTE, machine
from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.jobs.job import FailedStart
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import LaunchRefused, LaunchUncertain
from relaunch.core.lifecycle.events import LaunchAnswered
from relaunch.usecases.advance_job import apply_event
from relaunch.usecases.launch_attempt import launch_attempt

NO_ANSWER = LaunchUncertain("no answer to RunTask: read timed out")


def test_a_refusal_of_a_try_that_was_sent_before_is_not_final_for_it_may_have_a_task(launching):
    story, job_id = launching(NO_ANSWER, LaunchRefused("AccessDeniedException: not authorized to perform ecs:RunTask"))

    story.deliver()
    story.deliver()

    assert story.job(job_id).state is JobState.LAUNCHING
    assert story.job(job_id).reason == "AccessDeniedException: not authorized to perform ecs:RunTask"
    assert len(story.launches.requested) == 1

    story.settle()
    assert story.launched_placements == [story.launched_placements[0]] * 3
    assert story.arn(job_id) in story.tasks.tasks


def test_a_refusal_of_a_call_that_the_client_repeated_is_not_final_for_its_first_send_may_have_made_a_task(story):
    launch = story.tasks.launch

    def launch_twice(request):
        story.tasks.launch = launch
        launch(request)
        return LaunchRefused("AccessDeniedException", was_repeated=True)

    story.tasks.launch = launch_twice
    job_id = story.submit()

    story.deliver()
    assert story.job(job_id).state is JobState.LAUNCHING
    assert story.job(job_id).reason == "AccessDeniedException"

    story.settle()
    assert list(story.tasks.tasks) == [story.arn(job_id)]


def test_a_refusal_is_final_however_late_it_comes_if_no_other_function_launched_the_placement(story):
    launch = story.tasks.launch

    def stall(request):
        outcome = launch(request)
        story.clock.advance(timedelta(seconds=50))
        return outcome

    story.tasks.launch = stall
    story.tasks.outcomes.append(LaunchRefused("AccessDeniedException"))
    job_id = story.submit()

    story.deliver()

    assert story.job(job_id).state is JobState.FAILED


def test_of_two_messages_at_once_one_launches_the_placement(story):
    job_id = story.submit()
    launch = story.tasks.launch

    def deliver_meanwhile(request):
        story.tasks.launch = launch
        launch_attempt(job_id, story.deps)
        return launch(request)

    story.tasks.launch = deliver_meanwhile
    story.deliver()

    assert len(story.tasks.requests) == 1
    assert story.job(job_id).current_attempt.placement.senders == 1


@pytest.mark.parametrize("is_answered", [True, False], ids=["whose-answer-is-saved", "whose-answer-is-late"])
def test_a_refusal_is_not_final_beside_another_function_that_launched_the_placement(story, is_answered):
    """The other one loads the job, launches, and saves what it was told before or after the refusal is saved."""
    job_id = story.submit()
    launch, refused = story.tasks.launch, LaunchRefused("AccessDeniedException")

    def refuse_first(request):
        story.tasks.launch = launch if is_answered else launch_and_die
        story.clock.advance(timedelta(seconds=6))
        with nullcontext() if is_answered else pytest.raises(RuntimeError, match="killed"):
            launch_attempt(job_id, story.deps)
        story.tasks.launch = launch
        return refused

    def launch_and_die(request):
        launch(request)
        raise RuntimeError("killed")

    story.tasks.launch = refuse_first
    story.deliver()
    assert story.job(job_id).state is JobState.LAUNCHING

    story.settle()
    assert list(story.tasks.tasks) == [story.arn(job_id)]


def test_a_function_that_finds_the_placement_refused_does_not_launch_it(story):
    """The refusal is saved between its load and its launch."""
    job_id = story.submit()
    story.tasks.outcomes.append(RuntimeError("killed"))
    with pytest.raises(RuntimeError):
        story.deliver()
    placed = story.job(job_id)
    save_job = story.jobs.save_job

    def refuse_meanwhile(decision):
        story.jobs.save_job = save_job
        number = placed.current_attempt.placement.number
        apply_event(placed, LaunchAnswered(1, number, LaunchRefused("AccessDeniedException")), story.deps)
        return save_job(decision)

    story.jobs.save_job = refuse_meanwhile
    story.clock.advance(timedelta(seconds=6))
    job = launch_attempt(job_id, story.deps)

    assert job is not None
    assert job.state is JobState.FAILED
    assert len(story.tasks.requests) == 1
    assert story.tasks.tasks == {}


def test_a_refusal_that_stays_fails_the_job_once_its_try_is_too_old_to_have_a_task_unseen(launching):
    story, job_id = launching(NO_ANSWER, *[LaunchRefused("AccessDeniedException")] * 60)

    story.settle()

    assert story.job(job_id).state is JobState.FAILED
    assert len(set(story.launched_placements)) == 2
    assert timedelta(minutes=50) < story.now - story.job(job_id).accepted_at < timedelta(minutes=65)


@pytest.mark.parametrize("takes_effect", [True, False], ids=["after-it-took-effect", "before-it-took-effect"])
def test_a_launch_without_an_answer_is_sent_again_and_makes_one_task(story, takes_effect):
    job_id = story.launch_unanswered(takes_effect=takes_effect)

    story.settle()

    assert len(story.tasks.tasks) == 1
    assert len(set(story.launched_placements)) == 1
    assert story.arn(job_id) in story.tasks.tasks


def test_an_event_that_comes_before_runtasks_answer_is_stored_is_taken_for_it(story):
    job_id = story.launch_unanswered(takes_effect=True)
    (arn,) = story.tasks.tasks

    story.tell(story.tasks.run(arn, machine(), started_at=story.now))
    story.settle()

    assert story.job(job_id).state is JobState.RUNNING
    assert story.arn(job_id) == arn
    assert len(story.tasks.requests) == 1


def test_a_pending_placement_that_was_never_sent_is_sent_when_it_is_due(launching):
    story, job_id = launching(RuntimeError("killed"))
    with pytest.raises(RuntimeError):
        story.deliver()
    assert story.attempt(job_id).placement.state is PlacementState.PENDING

    story.reconcile(after=5 * MINUTE)
    story.settle()

    assert story.arn(job_id) in story.tasks.tasks
    assert story.attempt(job_id).placement.number == 1
    assert len(set(story.launched_placements)) == 1


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
    assert len(set(story.launched_placements)) == 2


def test_an_expired_placement_whose_task_exists_gets_it(story):
    job_id = story.launch_unanswered(takes_effect=True)
    (arn,) = story.tasks.tasks

    story.clock.advance(51 * MINUTE)
    story.settle()

    assert story.arn(job_id) == arn
    assert len(story.tasks.requests) == 1


def test_a_task_that_had_failed_to_start_when_its_expired_placement_was_looked_for_is_kept_with_its_machine(story):
    job_id = story.launch_unanswered(takes_effect=True)
    (arn,) = story.tasks.tasks
    story.tasks.run(arn, machine(), last_status="STOPPED", started_at=None)
    story.tasks.change(
        arn, desired_status="STOPPED", stop_code="TaskFailedToStart", stopped_reason="DockerTimeoutError"
    )

    story.clock.advance(51 * MINUTE)
    story.deliver()

    assert story.job(job_id).faults.failed_starts == (FailedStart(machine().instance_id, "DockerTimeoutError"),)


def test_a_task_made_by_an_answer_that_came_too_late_is_stopped(story):
    job_id = story.submit()
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
