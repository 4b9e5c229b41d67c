"""What can never be mended for one job must not cost another one its launch, its warning or its reconciliation."""

from dataclasses import replace
from datetime import timedelta
from unittest.mock import Mock

import pytest

from fakes.builders import make_definition, make_failed_placement
from fakes.jobs import make_unreadable
from fakes.story import MINUTE, WAITS_FOR_IMAGE, Story, image, machine, push
from relaunch.core.definitions.accelerator import PurchasePolicy
from relaunch.core.definitions.definition import ImageTrigger
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.submit_job import submit_event


def deny_stops(story: Story, *job_ids: str) -> None:
    """Let nobody stop the tasks of these jobs, however often."""
    denied = {story.arn(job_id) for job_id in job_ids}
    stop = story.tasks.stop

    def stop_what_is_not_denied(task_id: str, reason: str) -> None:
        if task_id in denied:
            raise PermanentError("AccessDeniedException: stopping a task")
        stop(task_id, reason)

    story.tasks.stop = stop_what_is_not_denied


def two_jobs(machines: int = 1) -> tuple[Story, str, str]:
    """Launch two jobs of which the first may not be stopped."""
    story = Story()
    job_ids = [story.submit(push(digit * 40)) for digit in "ab"]
    story.deliver()
    for number, job_id in enumerate(job_ids):
        story.run(job_id, machine(1 + number % machines))
    deny_stops(story, job_ids[0])
    return story, job_ids[0], job_ids[1]


CHECKPOINTED = make_definition(checkpoint_uri="s3://acme-checkpoints/resnet/")
DENIED = PermanentError("AccessDenied: listing s3://acme-checkpoints/resnet/")


def test_checkpoints_that_may_not_be_read_keep_the_job_waiting_for_days_and_it_resumes_when_they_may():
    story = Story(CHECKPOINTED)
    job_id = story.launch()
    saved = f"s3://acme-checkpoints/resnet/{job_id}/attempt-1/step-100/"
    story.checkpoints.complete[job_id] = saved
    story.checkpoints.refusal = DENIED

    story.lose_host(job_id)
    story.settle()
    for _ in range(100):
        story.reconcile(after=31 * MINUTE)
        story.settle()
    job = story.job(job_id)
    assert (job.state, job.reason) == (JobState.WAITING, str(DENIED))
    assert job.waiting.reason is WaitReason.CHECKPOINT
    assert story.timeline(job_id).count("waiting for checkpoint") == 1
    assert len(story.tasks.requests) == 1

    story.checkpoints.refusal = None
    story.reconcile(after=31 * MINUTE)
    story.settle()
    assert story.job(job_id).state is JobState.LAUNCHING
    assert story.tasks.requests[-1].environment["RELAUNCH_RESUME_URI"] == saved


def test_checkpoints_are_probed_before_anything_is_launched():
    story = Story(CHECKPOINTED)
    story.checkpoints.refusal = DENIED
    job_id = story.submit_and_deliver()

    assert story.job(job_id).waiting.reason is WaitReason.CHECKPOINT
    assert not story.job(job_id).has_slot
    assert story.tasks.requests == []

    story.checkpoints.refusal = None
    story.reconcile(after=6 * MINUTE)
    story.settle()
    assert story.job(job_id).state is JobState.LAUNCHING


def test_a_job_that_waits_for_its_checkpoints_can_be_cancelled():
    story = Story(CHECKPOINTED)
    story.checkpoints.refusal = DENIED
    job_id = story.submit_and_deliver()

    cancel_job(job_id, "not needed", story.deps)

    assert story.job(job_id).state is JobState.CANCELLED


def test_a_deadline_passes_while_checkpoints_cannot_be_read():
    story = Story(replace(CHECKPOINTED, deadline=timedelta(hours=1)))
    story.checkpoints.refusal = DENIED
    job_id = story.submit_and_deliver()

    story.reconcile(after=timedelta(hours=1))

    assert story.job(job_id).state is JobState.TIMED_OUT


def test_checkpoints_that_cannot_be_reached_are_left_to_the_queue():
    story = Story(CHECKPOINTED)
    story.checkpoints.refusal = TransientError("SlowDown")
    job_id = story.submit()

    with pytest.raises(TransientError, match="SlowDown"):
        story.deliver()

    assert story.job(job_id).waiting.reason is WaitReason.LAUNCH


def test_a_job_whose_task_may_not_be_stopped_does_not_keep_others_from_being_reconciled():
    story, troubled, other = two_jobs(machines=2)
    with pytest.raises(PermanentError):
        story.warn(machine().instance_id)
    story.tasks.end(story.arn(other), 0, stopped_at=story.now)

    story.reconcile(after=timedelta(hours=1))

    assert story.job(other).state is JobState.SUCCEEDED
    assert story.job(troubled).state is JobState.STOPPING


def test_however_many_jobs_cannot_be_helped_the_others_are_reconciled():
    story = Story(make_definition(max_running_jobs=200), limits=StackLimits(max_running_jobs=200))
    troubled = [story.submit(push(f"{number:040x}")) for number in range(150)]
    story.deliver()
    deny_stops(story, *troubled)
    for job_id in troubled:
        with pytest.raises(PermanentError):
            cancel_job(job_id, "not needed", story.deps)
    story.clock.advance(MINUTE)
    other = story.launch()
    story.tasks.end(story.arn(other), 0, stopped_at=story.now)

    assert story.reconcile(after=timedelta(hours=1)) == 151

    assert story.job(other).state is JobState.SUCCEEDED


def test_a_waiting_job_that_cannot_be_helped_does_not_keep_the_image_from_its_own_definitions():
    story = Story(WAITS_FOR_IMAGE, make_definition(name="pushed", triggers=(ImageTrigger("trainer", "*"),)))
    first = story.submit()
    make_unreadable(story.jobs, first, PermanentError(f"job {first} cannot be read"))

    with pytest.raises(PermanentError, match="cannot be read"):
        submit_event(image(), story.deps)

    assert {each.definition for each in story.jobs.list_jobs(10)[0]} == {"pushed", "resnet"}


def test_tasks_that_may_not_be_described_do_not_stop_the_clock():
    story = Story(make_definition(deadline=timedelta(hours=1)))
    job_id = story.launch()
    story.tasks.describe = Mock(side_effect=PermanentError("AccessDeniedException: describing tasks"))

    story.reconcile(after=timedelta(hours=2))

    assert story.job(job_id).state is JobState.STOPPING


def test_every_job_on_the_machine_is_warned_though_one_cannot_be_stopped():
    story, _, other = two_jobs()

    with pytest.raises(PermanentError, match="AccessDenied"):
        story.warn(machine().instance_id)

    assert story.arn(other) in {arn for arn, _ in story.tasks.stops}


def test_a_definition_that_cannot_be_started_does_not_keep_the_event_from_the_others():
    story = Story(make_definition(name="broken", task_definition="denied"), make_definition(name="sound"))
    newest = story.revisions.newest_active

    def newest_active(family: str, since=None):
        if family == "denied":
            raise PermanentError("AccessDeniedException: describing denied")
        return newest(family, since)

    story.revisions.newest_active = newest_active
    with pytest.raises(PermanentError, match="describing denied"):
        submit_event(push(), story.deps)

    (summary,) = story.jobs.list_jobs(10)[0]
    (event,) = story.deps.events.list_events(story.now, 10)
    assert summary.definition == "sound"
    assert "broken: cannot be started" in event.outcome


def test_a_task_that_never_starts_on_three_machines_is_held_back_and_no_failure_of_the_offering():
    story = Story(make_definition(max_failures=0))
    job_id = story.submit()
    for number in range(1, 4):
        assert not story.job(job_id).state.is_final
        story.settle()
        story.tell(story.tasks.run(story.arn(job_id), machine(number), last_status="PENDING", started_at=None))
        story.reconcile(after=31 * MINUTE)
        story.end(job_id, None, stop_code="UserInitiated")

    job = story.job(job_id)
    assert job.waiting is not None
    assert (job.state, job.waiting.reason) == (JobState.WAITING, WaitReason.REFUSED)
    assert "3 machines in a row did not start it" in job.waiting.detail
    assert story.deps.capacity.load_capacity_memory(story.now) == {}


def test_a_task_that_one_machine_cannot_start_runs_on_another():
    story = Story(make_definition(max_failures=0))
    job_id = story.submit()
    story.settle()
    bad = machine(1)
    # The events of PROVISIONING and PENDING are lost: the machine is looked up when the task has stopped.
    story.tell(
        story.tasks.change(
            story.tasks.run(story.arn(job_id), bad, last_status="STOPPED", started_at=None).task_id,
            desired_status="STOPPED",
            stop_code="TaskFailedToStart",
            stopped_reason="CannotStartContainerError: nvml error: driver not loaded",
        )
    )

    story.settle()
    assert story.job(job_id).totals.failures == 0
    assert story.tasks.requests[-1].avoided_instances == (bad.instance_id,)
    story.tell(story.tasks.run(story.arn(job_id), machine(2)))
    assert story.job(job_id).state is JobState.RUNNING
    assert story.job(job_id).faults.failed_starts == ()


def test_a_job_that_keeps_off_the_only_machine_of_a_group_waits_and_shuts_the_offering_for_nobody_else():
    story = Story(make_definition(purchase=PurchasePolicy.SPOT))
    job_id = story.submit()
    story.settle()
    story.tell(story.tasks.run(story.arn(job_id), machine(1), last_status="PENDING", started_at=None))
    story.end(job_id, None, stop_code="TaskFailedToStart", stopped_reason="DockerTimeoutError: created")
    story.tasks.outcomes.extend([make_failed_placement("MemberOf placement constraint unsatisfied.")] * 2)
    story.settle()

    job = story.job(job_id)
    assert [request.capacity_provider for request in story.tasks.requests[-2:]] == ["g5-xlarge-spot", "g6-xlarge-spot"]
    assert job.waiting is not None
    assert job.waiting.reason is WaitReason.CAPACITY
    assert story.deps.capacity.load_capacity_memory(story.now) == {}

    other = story.submit(push("b" * 40))
    story.settle()
    assert story.attempt(other).placement.capacity_provider == "g5-xlarge-spot"

    story.reconcile(after=11 * MINUTE)
    story.settle()
    assert story.arn(job_id)


def test_the_interruption_budget_does_not_end_a_job_that_has_a_deadline():
    story = Story(make_definition(deadline=timedelta(days=5)))
    job_id = story.launch()
    story.lose_host(job_id)

    story.reconcile(after=timedelta(hours=30))

    assert not story.job(job_id).state.is_final


def test_a_task_taken_for_lost_that_comes_back_is_stopped_though_its_attempt_goes_on():
    story = Story()
    job_id = story.submit_and_deliver()
    lost = story.arn(job_id)
    kept = story.tasks.tasks[lost]
    story.tasks.forget(lost)
    story.reconcile(after=15 * MINUTE)
    for _ in range(3):
        story.reconcile(after=2 * MINUTE)
    story.settle()
    assert story.arn(job_id) != lost

    story.tasks.tasks[lost] = kept
    story.tell(story.tasks.run(lost, machine(2)))

    assert lost in {arn for arn, _ in story.tasks.stops}
