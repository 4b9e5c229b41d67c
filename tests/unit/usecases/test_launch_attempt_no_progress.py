"""A job whose attempts gain no step: it is said from the first on, and after three no machine is bought any more."""

from datetime import timedelta

import pytest

from fakes.machine_story import MachineStory
from fakes.story import MINUTE
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.lifecycle.explanation import explain
from relaunch.ports import PermanentError

HOUR = timedelta(hours=1)


@pytest.fixture
def story() -> MachineStory:
    return MachineStory()


@pytest.fixture
def job_id(story) -> str:
    job_id = story.submit()
    story.clock.advance(MINUTE)
    story.settle_all()
    return job_id


def start(story: MachineStory, job_id: str) -> None:
    """Let the job's machine register, and its task run there."""
    story.register(story.machine(job_id))
    story.settle_all()
    story.run(job_id)


def train(story: MachineStory, job_id: str, *, ran: timedelta = HOUR, step: int | None = None) -> None:
    """Let the job run on its machine for some time, save a step if one is given, and lose the machine."""
    start(story, job_id)
    story.clock.advance(ran)
    if step is not None:
        number = story.attempt(job_id).number
        story.checkpoints.complete[job_id] = f"s3://acme-checkpoints/resnet/{job_id}/attempt-{number}/step-{step:07d}/"
        story.checkpoints.saved_at = story.now
    story.lose_host(job_id)
    story.settle_all()


def test_the_third_attempt_without_a_step_ends_it_before_another_machine_is_bought(story, job_id):
    train(story, job_id)
    assert "no progress" in story.timeline(job_id)
    assert "its last attempt gained no step" in explain(story.job(job_id), story.now).advice[0]
    train(story, job_id)
    bought = len(story.fleet.requests)
    train(story, job_id)

    job = story.job(job_id)
    assert (job.state, job.machine_id, job.has_slot) == (JobState.FAILED, "", False)
    assert job.reason.startswith("3 attempts in a row gained no step")
    assert len(story.fleet.requests) == bought


def test_a_step_gained_begins_anew(story, job_id):
    train(story, job_id)
    train(story, job_id)
    train(story, job_id, step=100)
    train(story, job_id)
    train(story, job_id)

    assert story.job(job_id).state is JobState.WAITING
    assert story.job(job_id).progress.attempts_without_progress == 2


def test_short_attempts_that_save_nothing_go_on_and_nothing_is_read_for_it(story, job_id):
    for _ in range(4):
        train(story, job_id, ran=10 * MINUTE)

    assert story.job(job_id).state is JobState.WAITING
    assert story.job(job_id).progress.judged_attempt == 0


def test_checkpoints_that_cannot_be_read_are_waited_for(story, job_id):
    start(story, job_id)
    story.clock.advance(HOUR)
    story.checkpoints.refusal = PermanentError("AccessDenied")
    story.lose_host(job_id)
    story.settle_all()

    job = story.job(job_id)
    assert (job.state, job.waiting.reason, job.progress.judged_attempt) == (JobState.WAITING, WaitReason.CHECKPOINT, 0)
    story.checkpoints.refusal = None
    story.reconcile(6 * MINUTE)
    story.settle_all()
    assert story.job(job_id).progress.attempts_without_progress == 1
