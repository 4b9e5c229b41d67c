"""A job has succeeded only if its program finished, and not because something else ended its task."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import make_definition
from fakes.story import Story
from relaunch.core.jobs.job import StopKind
from relaunch.core.jobs.state import JobState

ENDED = {"stop_code": "EssentialContainerExited", "stopped_reason": "Essential container in task exited"}
CODES = {"main": 0, "side": 139}


def launched_with_sidecar() -> tuple[Story, str]:
    story = Story(make_definition(max_failures=1))
    story.run_images("trainer:1", "router:1")
    (revision,) = story.revisions.active
    containers = tuple(replace(each, is_essential=True) for each in revision.containers)
    story.revisions.active[:] = [replace(revision, containers=containers)]
    return story, story.launch()


def tell_end_of(story: Story, job_id: str, **statuses: str) -> None:
    """Let one container end while the other one runs, and tell it."""
    story.tell(story.tasks.change(story.arn(job_id), desired_status="STOPPED", container_statuses=statuses, **ENDED))


@pytest.mark.parametrize("exit_code", [139, 0])
def test_a_training_that_saves_because_its_sidecar_died_is_launched_again(exit_code: int) -> None:
    story, job_id = launched_with_sidecar()

    tell_end_of(story, job_id, main="RUNNING", side="STOPPED")
    story.end(job_id, container_exit_codes={"main": 0, "side": exit_code})

    job = story.job(job_id)
    assert (job.state, job.failures) == (JobState.WAITING, 1)
    assert job.current_attempt.stop is not None
    assert job.current_attempt.stop.kind is StopKind.SIDECAR
    assert f"side (exit code {exit_code}) ended before main did" in job.reason


def test_a_sidecar_that_fails_once_the_training_has_ended_is_harmless() -> None:
    story, job_id = launched_with_sidecar()

    tell_end_of(story, job_id, main="STOPPED", side="RUNNING")
    story.end(job_id, container_exit_codes=CODES)

    assert story.job(job_id).state is JobState.SUCCEEDED


def test_a_sidecar_that_failed_at_no_known_time_is_no_success() -> None:
    story, job_id = launched_with_sidecar()

    story.end(job_id, container_exit_codes=CODES)

    assert story.job(job_id).state is JobState.WAITING
    assert "ECS does not tell whether before main" in story.job(job_id).reason


def test_the_order_is_known_though_its_event_comes_late() -> None:
    story, job_id = launched_with_sidecar()
    arn = story.arn(job_id)

    late = story.tasks.change(
        arn, desired_status="STOPPED", container_statuses={"main": "RUNNING", "side": "STOPPED"}, **ENDED
    )
    story.tell(
        story.tasks.change(arn, last_status="DEPROVISIONING", container_statuses=dict.fromkeys(CODES, "STOPPED"))
    )
    story.tell(late)
    story.end(job_id, container_exit_codes={"main": 0, "side": 0}, stopped_at=story.now + timedelta(seconds=1))

    assert story.job(job_id).state is JobState.WAITING
