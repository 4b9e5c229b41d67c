"""What can never be mended for one job must not cost another one its launch, its warning or its reconciliation."""

from datetime import timedelta

import pytest

from fakes.builders import make_definition
from fakes.story import MINUTE, Story, image, machine, push
from fakes.tasks import FakeTasks
from relaunch.core.definitions.definition import GithubTrigger, ImageTrigger, ImageWait
from relaunch.core.jobs.job import JobState, StopKind
from relaunch.core.jobs.limits import StackLimits
from relaunch.ports import PermanentError
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.submit_job import submit_event


class DeniedTasks(FakeTasks):
    """May not stop some tasks, whoever asks and however often."""

    def __init__(self) -> None:
        super().__init__()
        self.denied: set[str] = set()

    def stop(self, task_arn: str, reason: str) -> None:
        if task_arn in self.denied:
            raise PermanentError("AccessDeniedException: stopping a task")
        super().stop(task_arn, reason)


class DeniedCheckpoints:
    """May not list the bucket."""

    def newest_complete(self, checkpoint_uri: str, job_id: str) -> str | None:
        raise PermanentError(f"AccessDenied: listing {checkpoint_uri}{job_id}/")


def two_jobs(machines: int = 1) -> tuple[Story, DeniedTasks, str, str]:
    tasks = DeniedTasks()
    story = Story(tasks=tasks)
    story.tasks = tasks
    job_ids = [story.submit(push(digit * 40)) for digit in "ab"]
    story.deliver()
    for number, job_id in enumerate(job_ids):
        story.run(job_id, machine(1 + number % machines))
    return story, tasks, job_ids[0], job_ids[1]


def test_checkpoints_that_may_not_be_read_end_the_job_at_once_and_say_what_to_change():
    story = Story(checkpoints=DeniedCheckpoints())
    job_id = story.launch()

    story.lose_host(job_id)
    story.settle()

    job = story.job(job_id)
    assert job.state is JobState.FAILED
    assert "AccessDenied" in job.reason
    assert "CheckpointBuckets" in job.reason


def test_a_job_whose_task_may_not_be_stopped_does_not_keep_others_from_being_reconciled():
    story, tasks, troubled, other = two_jobs(machines=2)
    tasks.denied.add(story.arn(troubled))
    with pytest.raises(PermanentError):
        story.warn(machine().instance_id)
    tasks.end(story.arn(other), 0, stopped_at=story.now)

    story.reconcile(after=timedelta(hours=1))

    assert story.job(other).state is JobState.SUCCEEDED
    assert story.job(troubled).state is JobState.STOPPING


def test_however_many_jobs_cannot_be_helped_the_others_are_reconciled():
    tasks = DeniedTasks()
    story = Story(make_definition(max_running_jobs=200), tasks=tasks, limits=StackLimits(max_running_jobs=200))
    story.tasks = tasks
    troubled = [story.submit(push(f"{number:040x}")) for number in range(150)]
    story.deliver()
    for job_id in troubled:
        tasks.denied.add(story.arn(job_id))
        with pytest.raises(PermanentError):
            cancel_job(job_id, "not needed", story.deps)
    story.clock.advance(MINUTE)
    other = story.launch()
    tasks.end(story.arn(other), 0, stopped_at=story.now)

    assert story.reconcile(after=timedelta(hours=1)) == 151

    assert story.job(other).state is JobState.SUCCEEDED


def test_a_waiting_job_that_cannot_be_helped_does_not_keep_the_image_from_its_own_definitions():
    waits = make_definition(triggers=(GithubTrigger("acme/vision", "push", wait_for_image=ImageWait("trainer")),))
    story = Story(waits, make_definition(name="pushed", triggers=(ImageTrigger("trainer", "*"),)))
    first = story.submit()
    load = story.jobs.load_job

    def load_job(job_id: str):
        if job_id == first:
            raise PermanentError(f"job {job_id} cannot be read")
        return load(job_id)

    story.jobs.load_job = load_job
    with pytest.raises(PermanentError, match="cannot be read"):
        submit_event(image(), story.deps)

    assert {each.definition for each in story.jobs.list_jobs(10)[0]} == {"pushed", "resnet"}


def test_tasks_that_may_not_be_described_do_not_stop_the_clock():
    story = Story(make_definition(deadline=timedelta(hours=1)))
    job_id = story.launch()

    def describe(_task_arns):
        raise PermanentError("AccessDeniedException: describing tasks")

    story.tasks.describe = describe
    story.reconcile(after=timedelta(hours=2))

    assert story.job(job_id).state is JobState.STOPPING


def test_every_job_on_the_machine_is_warned_though_one_cannot_be_stopped():
    story, tasks, troubled, other = two_jobs()
    tasks.denied.add(story.arn(troubled))

    with pytest.raises(PermanentError, match="AccessDenied"):
        story.warn(machine().instance_id)

    assert story.arn(other) in {arn for arn, _ in tasks.stops}


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


def test_a_task_that_never_starts_on_its_machine_is_a_failure_of_the_job_and_not_of_the_offering():
    story = Story(make_definition(max_failures=1))
    job_id = story.submit()
    for _ in range(2):
        story.settle()
        story.tell(story.tasks.run(story.arn(job_id), machine(), last_status="PENDING", started_at=None))
        story.reconcile(after=31 * MINUTE)
        story.end(job_id, None, stop_code="UserInitiated")

    job = story.job(job_id)
    assert job.state is JobState.FAILED
    assert job.current_attempt.stop is not None
    assert job.current_attempt.stop.kind is StopKind.NOT_STARTED
    assert story.deps.capacity.load_capacity_memory(story.now) == {}


def test_the_interruption_budget_does_not_end_a_job_that_has_a_deadline():
    story = Story(make_definition(deadline=timedelta(days=5)))
    job_id = story.launch()
    story.lose_host(job_id)

    story.reconcile(after=timedelta(hours=30))

    assert not story.job(job_id).state.is_final


def test_a_task_taken_for_lost_that_comes_back_is_stopped_though_its_attempt_goes_on():
    story = Story()
    job_id = story.submit()
    story.deliver()
    lost = story.arn(job_id)
    kept = story.tasks.tasks[lost]
    story.tasks.forget(lost)
    for _ in range(2):
        story.reconcile(after=10 * MINUTE)
    story.settle()
    assert story.arn(job_id) != lost

    story.tasks.tasks[lost] = kept
    story.tell(story.tasks.run(lost, machine(2)))

    assert lost in {arn for arn, _ in story.tasks.stops}
