"""What events did not tell is found out by looking."""

from datetime import timedelta
from unittest.mock import Mock

import pytest

from fakes.builders import make_definition
from fakes.jobs import make_unreadable
from fakes.story import MINUTE, SHA, WAITS_FOR_IMAGE, Story, machine, push
from relaunch.core.jobs.attempt import IntentKind, StopKind
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.metrics import Metric
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.reconcile_jobs import reconcile_jobs


def test_what_is_not_due_is_not_looked_at(story):
    story.launch()

    assert story.reconcile(after=9 * MINUTE) == 0


def test_reconciling_begins_with_the_most_overdue_and_ends_when_the_time_is_up(story):
    ids = []
    for number in range(150):
        ids.append(story.submit(push(f"{number:040x}")))
        story.clock.advance(1)
    story.launches.requested.clear()
    story.clock.advance(10 * MINUTE)
    answers = iter([True] * 120 + [False])

    assert reconcile_jobs(story.deps, lambda: next(answers)) == 120
    assert {job_id for job_id, _ in story.launches.requested} == set(ids[:120])
    assert reconcile_jobs(story.deps) == 30
    assert story.metrics.values(Metric.JOBS_OVERDUE) == [30, 0]


def test_a_launch_request_that_got_lost_is_repeated(story):
    job_id = story.submit()
    story.launches.requested.clear()

    assert story.reconcile(after=5 * MINUTE) == 1
    story.settle()

    assert story.job(job_id).state is JobState.LAUNCHING


def test_an_end_that_no_event_told_is_found(story, running_id):
    story.clock.advance(10 * MINUTE)
    story.tasks.end(story.arn(running_id), 0, stopped_at=story.now)

    story.reconcile(after=MINUTE)

    assert story.job(running_id).state is JobState.SUCCEEDED


def test_a_start_that_no_event_told_is_found_before_the_task_is_withdrawn(story, placed_id):
    story.tasks.run(story.arn(placed_id), machine(), started_at=story.now)

    story.reconcile(after=15 * MINUTE)

    assert story.job(placed_id).state is JobState.RUNNING
    assert story.jobs.load_on_instance(machine().instance_id) == [placed_id]


def test_a_task_that_is_not_placed_in_time_is_withdrawn_for_the_next_offering(story, placed_id):
    story.reconcile(after=15 * MINUTE)
    attempt = story.attempt(placed_id)
    assert attempt.intent is not None
    assert attempt.intent.kind is IntentKind.PLACEMENT_WITHDRAWN
    assert story.tasks.stops == [
        (attempt.task_id, "Relaunch: not started within 0:15:00; the cluster says PROVISIONING")
    ]

    story.end(placed_id, None, container="none")
    story.settle()
    attempt = story.attempt(placed_id)
    assert (attempt.number, attempt.placement.number) == (1, 2)
    assert [request.capacity_provider for request in story.tasks.requests] == ["g5-xlarge-spot", "g6-xlarge-spot"]
    assert {request.environment["RELAUNCH_ATTEMPT"] for request in story.tasks.requests} == {"1"}
    assert (story.job(placed_id).totals.failures, story.job(placed_id).totals.interruptions) == (0, 0)


def test_a_task_that_pulls_a_large_image_is_left_to_it(story, placed_id):
    story.clock.advance(5 * MINUTE)
    story.tell(story.tasks.run(story.arn(placed_id), machine(), last_status="PENDING", started_at=None))

    for _ in range(3):
        story.reconcile(after=5 * MINUTE)
    assert story.job(placed_id).state is JobState.LAUNCHING

    story.reconcile(after=10 * MINUTE)
    assert story.job(placed_id).state is JobState.STOPPING


def test_a_task_that_ecs_does_not_know_is_lost_when_it_is_missing_twice_a_grace_apart(story, running_id):
    story.tasks.forget(story.arn(running_id))

    story.reconcile(after=10 * MINUTE)
    assert story.job(running_id).state is JobState.RUNNING
    story.reconcile(after=4 * MINUTE)
    assert story.job(running_id).state is JobState.RUNNING

    story.reconcile(after=MINUTE)
    stop = story.attempt(running_id).stop
    assert stop is not None
    assert stop.kind is StopKind.HOST_LOST
    assert story.job(running_id).state is JobState.WAITING


def test_who_loses_a_task_that_was_never_seen_to_run_resumes_from_what_it_may_have_saved():
    story = Story(make_definition(checkpoint_uri="s3://acme-checkpoints/resnet/"))
    job_id = story.submit_and_deliver()
    story.tasks.forget(story.arn(job_id))
    saved = f"s3://acme-checkpoints/resnet/{job_id}/attempt-1/step-0000100/"
    story.checkpoints.complete[job_id] = saved

    story.reconcile(after=15 * MINUTE)
    for _ in range(3):
        story.reconcile(after=2 * MINUTE)
    story.settle()

    attempt = story.attempt(job_id)
    assert (attempt.number, attempt.placement.resume_uri) == (2, saved)


def test_a_task_that_is_known_again_is_not_lost(story, running_id):
    arn = story.arn(running_id)
    task = story.tasks.tasks.pop(arn)
    story.reconcile(after=10 * MINUTE)

    story.tasks.tasks[arn] = task
    story.reconcile(after=5 * MINUTE)

    assert story.job(running_id).state is JobState.RUNNING
    assert story.attempt(running_id).missing is None


def test_a_running_task_without_a_change_is_looked_at_and_left_alone(story, running_id):
    entries = story.jobs.events_of(running_id)

    for _ in range(5):
        assert story.reconcile(after=10 * MINUTE) == 1

    assert story.job(running_id).state is JobState.RUNNING
    assert story.jobs.events_of(running_id) == entries


def test_an_image_whose_event_got_lost_is_found_in_its_repository():
    story = Story(WAITS_FOR_IMAGE)
    job_id = story.submit()
    story.reconcile(after=2 * MINUTE)
    assert story.job(job_id).state is JobState.WAITING
    assert story.launches.requested == []

    story.images.present.add(("trainer", SHA))
    story.reconcile(after=2 * MINUTE)
    story.settle()

    assert story.job(job_id).state is JobState.LAUNCHING


@pytest.mark.parametrize("trouble", [None, PermanentError("AccessDenied")], ids=["not there", "every look refused"])
def test_an_image_that_never_comes_fails_the_job_though_ecr_refuses_every_look(trouble):
    story = Story(WAITS_FOR_IMAGE)
    job_id = story.submit()

    for _ in range(15):
        story.images.failure = trouble
        story.reconcile(after=2 * MINUTE)

    assert story.job(job_id).state is JobState.FAILED
    assert story.job(job_id).reason == f"waiting for image trainer:{SHA}: it did not come until 09:56:53 UTC"


@pytest.mark.parametrize("trouble", [PermanentError("AccessDenied"), TransientError("ECR does not answer")])
def test_the_wait_for_an_image_goes_on_and_is_looked_at_later_when_ecr_does_not_tell(trouble):
    story = Story(WAITS_FOR_IMAGE)
    job_id = story.submit()
    story.images.failure = trouble

    story.reconcile(after=2 * MINUTE)

    assert story.job(job_id).wake_at == story.now + 2 * MINUTE
    assert "image not looked up" in story.log.decisions


def test_a_wait_does_not_end_while_nobody_knows_whether_the_image_came():
    story = Story(WAITS_FOR_IMAGE)
    job_id = story.submit()

    for _ in range(16):
        story.images.failure = TransientError("ECR does not answer")
        story.reconcile(after=2 * MINUTE)
    assert story.job(job_id).state is JobState.WAITING

    story.images.present.add(("trainer", SHA))
    story.reconcile()
    story.settle()

    assert story.job(job_id).state is JobState.LAUNCHING


def test_a_job_that_is_over_hands_its_slot_on_even_if_its_function_was_killed():
    story = Story(make_definition(max_running_jobs=1))
    first = story.launch()
    second = story.submit(push("b" * 40))
    story.settle()
    story.launches.failure = TransientError("SQS is down")
    with pytest.raises(TransientError):
        story.end(first, 0)
    assert story.job(first).state is JobState.SUCCEEDED
    assert story.launches.requested == []

    story.reconcile(after=5 * MINUTE)
    story.settle()

    assert story.job(second).state is JobState.LAUNCHING
    assert story.job(first).pending == ()
    assert story.jobs.load_due(story.now + timedelta(days=1), 9) == [second]


def test_the_trouble_of_one_job_does_not_keep_the_others_waiting(story):
    first, second = story.submit(), story.submit(push("b" * 40))
    story.launches.requested.clear()
    story.launches.failure = TransientError("SQS is down")

    story.reconcile(after=6 * MINUTE)

    assert "postponed" in story.log.decisions
    assert {job_id for job_id, _ in story.launches.requested} == {second}
    assert story.jobs.load_due(story.now, 9) == [first]
    assert story.metrics.values(Metric.JOBS_OVERDUE) == [1]


@pytest.mark.parametrize("trouble", [PermanentError("it cannot be read"), TransientError("throttled")])
def test_a_job_that_cannot_be_loaded_does_not_keep_the_others_waiting(story, trouble):
    first, second = story.submit(), story.submit(push("b" * 40))
    story.launches.requested.clear()
    make_unreadable(story.jobs, first, trouble)

    story.reconcile(after=6 * MINUTE)

    assert "postponed" in story.log.decisions
    assert {job_id for job_id, _ in story.launches.requested} == {second}


def test_the_end_of_a_host_is_no_end_of_its_task_while_the_cluster_cannot_be_asked(story, running_id):
    story.change_host(story.attempt(running_id).instance_id, "terminated")
    describe, story.tasks.describe = story.tasks.describe, Mock(side_effect=TransientError("no answer"))

    for _ in range(12):
        story.reconcile(after=MINUTE)
    assert story.job(running_id).state is JobState.RUNNING

    story.tasks.describe = describe
    story.tasks.end(story.arn(running_id), None, stopped_at=story.now - 7 * MINUTE)
    story.reconcile(after=MINUTE)

    stop = story.attempt(running_id).stop
    assert stop is not None
    assert (stop.kind, stop.at) == (StopKind.HOST_LOST, story.now - 8 * MINUTE)


def test_tasks_are_described_together(story):
    for number in range(3):
        story.launch(push(f"{number}" * 40))
    story.tasks.describe = Mock(wraps=story.tasks.describe)

    story.reconcile(after=10 * MINUTE)

    assert [len(each.args[0]) for each in story.tasks.describe.call_args_list] == [3]
