"""Whole lives of jobs, from the event to the end."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import make_capacity_failure, make_definition
from fakes.story import MINUTE, Story, machine, push
from relaunch.core.definitions.definition import RetryRules
from relaunch.core.jobs.attempt import IntentKind
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import Decision


def test_a_push_is_trained_interrupted_resumed_elsewhere_and_finished():
    story = Story()
    job_id = story.submit_and_deliver(push())
    first = story.tasks.requests[0]
    story.run(job_id, machine(1))
    story.clock.advance(60 * MINUTE)
    checkpoint = f"s3://acme-checkpoints/resnet/{job_id}/attempt-1/step-100/"
    story.checkpoints.complete[job_id] = checkpoint

    story.warn(machine(1).instance_id)
    story.clock.advance(MINUTE)
    story.end(job_id, 0)
    story.settle()
    second = story.tasks.requests[1]
    story.run(job_id, machine(2, "g6.xlarge"))
    story.clock.advance(30 * MINUTE)
    story.end(job_id, 0)

    job = story.job(job_id)
    assert job.state is JobState.SUCCEEDED
    assert (first.capacity_provider, second.capacity_provider) == ("g5-xlarge-spot", "g6-xlarge-spot")
    assert first.offering.instance_type == "g5.xlarge"
    assert "RELAUNCH_RESUME_URI" not in first.environment
    assert second.environment["RELAUNCH_RESUME_URI"] == checkpoint
    assert (first.environment["RELAUNCH_ATTEMPT"], second.environment["RELAUNCH_ATTEMPT"]) == ("1", "2")
    assert (job.totals.interruptions, job.totals.failures) == (1, 0)
    assert job.totals.run_seconds == 91 * 60
    assert job.totals.cost_usd == pytest.approx(61 / 60 * 0.40 + 30 / 60 * 0.45)
    assert story.jobs.slots["resnet"] == 0
    assert story.jobs.events_of(job_id) == [
        "accepted",
        "launching",
        "task placed",
        "running",
        "interruption warning",
        "stopped: interruption",
        "launching",
        "task placed",
        "running",
        "succeeded",
    ]


def test_the_intent_is_saved_before_the_task_is_stopped():
    story = Story()
    job_id = story.launch()
    stop = story.tasks.stop
    saved = []

    def stop_and_note_what_is_saved(task_id, reason):
        saved.append(story.attempt(job_id).intent.kind)
        stop(task_id, reason)

    story.tasks.stop = stop_and_note_what_is_saved
    story.warn(machine().instance_id)

    assert saved == [IntentKind.INTERRUPTION]
    assert story.tasks.stops == [
        (story.arn(job_id), f"Relaunch: spot interruption warning for {machine().instance_id}")
    ]


def test_the_next_task_is_not_launched_before_the_last_one_has_stopped():
    story = Story()
    job_id = story.launch()

    story.warn(machine().instance_id)
    story.settle()
    for _ in range(2):
        story.reconcile(after=4 * MINUTE)
        story.settle()
    assert len(story.tasks.requests) == 1
    assert len(story.tasks.stops) == 2

    story.end(job_id, 143)
    story.settle()
    assert len(story.tasks.requests) == 2


def test_events_of_a_task_in_any_order_and_twice_come_to_the_same_end():
    story = Story()
    job_id = story.submit_and_deliver()
    arn = story.arn(job_id)
    pending = story.tasks.change(arn, last_status="PENDING")
    running = story.tasks.run(arn, machine(), started_at=story.now)
    stopped = story.tasks.end(arn, 0, stopped_at=story.now + 5 * MINUTE)

    story.tell(running)
    story.tell(pending)
    story.clock.advance(400)
    for observation in (stopped, running, stopped, pending):
        story.tell(observation)

    assert story.job(job_id).state is JobState.SUCCEEDED
    assert story.job(job_id).totals.run_seconds == 300
    assert story.jobs.events_of(job_id) == ["accepted", "launching", "task placed", "running", "succeeded"]
    assert story.tasks.stops == []


def test_failures_are_tried_again_after_a_growing_pause_until_they_are_too_many():
    story = Story(make_definition(retry=RetryRules(max_early_failures=9), max_failures=2))
    job_id = story.launch()
    pauses = []

    for _ in range(2):
        story.end(job_id, 1)
        pauses.append(story.launches.requested[-1][1])
        story.settle()
        story.run(job_id)
    story.end(job_id, 1)

    job = story.job(job_id)
    assert pauses == [30, 60]
    assert (job.state, job.totals.failures) == (JobState.FAILED, 3)
    assert job.reason == (
        "the program failed (exit code 1; Essential container in task exited); failure 3: max_failures allows 2"
    )
    assert story.attempt(job_id).number == 3


def test_max_runtime_stops_a_job_that_runs_on():
    story = Story(make_definition(max_runtime=timedelta(hours=2)))
    job_id = story.launch()
    for _ in range(11):
        story.reconcile(after=10 * MINUTE)
        assert story.job(job_id).state is JobState.RUNNING

    story.reconcile(after=10 * MINUTE)
    assert story.job(job_id).state is JobState.STOPPING
    assert len(story.tasks.stops) == 1

    story.end(job_id, 0)
    assert story.job(job_id).state is JobState.TIMED_OUT


@pytest.mark.parametrize(("lost_after", "state"), [(118, JobState.WAITING), (120, JobState.TIMED_OUT)])
def test_a_machine_that_was_lost_before_max_runtime_leaves_the_job_the_rest_of_it(lost_after: int, state: JobState):
    story = Story(make_definition(max_runtime=timedelta(hours=2)))
    job_id = story.launch()
    lost_at = story.now + lost_after * MINUTE
    story.reconcile(after=121 * MINUTE)
    assert story.job(job_id).state is JobState.STOPPING

    story.lose_host(job_id, stopped_at=lost_at)

    assert story.job(job_id).state is state
    assert story.job(job_id).totals.interruptions == 1
    assert story.job(job_id).totals.run_seconds == lost_after * 60


def test_the_deadline_ends_a_job_that_waits():
    story = Story(make_definition(deadline=timedelta(hours=1)))
    for offering in story.offerings.available:
        story.offerings.set_price(offering.instance_type.name, offering.purchase, 100.0)
    story.offerings.available = tuple(each for each in story.offerings.available if each.purchase == "spot")
    job_id = story.submit_and_deliver()
    assert story.job(job_id).waiting is not None

    story.reconcile(after=timedelta(hours=1))

    assert story.job(job_id).state is JobState.TIMED_OUT
    assert story.job(job_id).reason == "the deadline of 1h after acceptance has passed"
    assert story.tasks.requests == []


def test_interruptions_are_forgiven_until_they_have_cost_a_day():
    story = Story()
    job_id = story.launch()
    for number in range(1, 6):
        story.clock.advance(60 * MINUTE)
        saved = f"s3://acme-checkpoints/resnet/{job_id}/attempt-{number}/step-{number:07d}/"
        story.checkpoints.complete[job_id] = saved
        story.lose_host(job_id)
        story.settle()
        assert story.job(job_id).state is JobState.LAUNCHING
        story.run(job_id)

    story.lose_host(job_id)
    story.launches.requested.clear()
    story.clock.advance(timedelta(hours=24))
    story.reconcile()

    job = story.job(job_id)
    assert job.state is JobState.FAILED
    assert job.reason.startswith("interrupted 6 times and not running for 24h")


def test_when_every_offering_is_avoided_the_job_waits_and_is_launched_when_the_memory_expires():
    story = Story()
    job_id = story.submit()
    for offering in story.deps.offerings.offerings(story.now):
        until = story.now + 7 * MINUTE
        story.deps.capacity.remember(make_capacity_failure(offering=offering.key, at=story.now, until=until))
    story.settle()

    job = story.job(job_id)
    assert job.state is JobState.WAITING
    assert job.reason.startswith("nothing is available right now: capacity-memory removed the last 4 of 4 offerings")
    assert job.wake_at == story.now + 5 * MINUTE

    story.reconcile(after=5 * MINUTE)
    story.settle()
    assert story.job(job_id).wake_at == story.now + 2 * MINUTE
    story.reconcile(after=2 * MINUTE)
    story.settle()
    assert story.job(job_id).state is JobState.LAUNCHING


def test_a_job_that_is_interrupted_again_and_again_is_launched_each_time():
    story = Story()
    job_id = story.launch()
    for _ in range(6):
        story.lose_host(job_id)
        story.settle()
        assert story.job(job_id).state is JobState.LAUNCHING
        story.run(job_id)


def test_a_success_within_the_warning_is_launched_again_and_finishes_again():
    story = Story()
    job_id = story.launch()

    story.tell(story.tasks.change(story.arn(job_id), last_status="DEACTIVATING", desired_status="STOPPED"))
    story.clock.advance(2)
    story.warn(machine().instance_id)
    story.end(job_id, 0)

    assert story.job(job_id).state is JobState.WAITING
    assert story.tasks.stops == []


def test_a_job_that_is_over_stays_over_whatever_comes():
    story = Story()
    job_id = story.launch()
    stopped = story.end(job_id, 0)
    over = story.job(job_id)

    story.tell(replace(stopped, version=99))
    story.warn(machine().instance_id)
    story.change_host(machine().instance_id, "terminated")
    story.launches.request_launch(job_id)
    story.settle()
    story.reconcile(after=timedelta(days=3))

    assert story.job(job_id) == over


def test_every_line_of_the_log_names_its_job():
    story = Story()
    job_id = story.launch()
    story.end(job_id)

    advanced = [facts for decision, facts in story.log.lines if decision == "advanced"]
    assert [(facts["state"], facts["next_state"]) for facts in advanced] == [
        ("WAITING", "LAUNCHING"),
        ("LAUNCHING", "LAUNCHING"),
        ("LAUNCHING", "RUNNING"),
        ("RUNNING", "SUCCEEDED"),
    ]
    assert {facts["job_id"] for facts in advanced} == {job_id}


def test_a_write_says_which_selection_it_came_of():
    story = Story()
    story.launch()

    selected = [write for write in story.jobs.decisions if write.selection is not None]
    assert [type(write) for write in selected] == [Decision]
    assert selected[0].selected_at == story.now
