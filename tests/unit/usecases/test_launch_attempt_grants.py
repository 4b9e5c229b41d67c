"""Launches of jobs that were accepted when the stack could run more."""

from dataclasses import replace

from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.revisions.revision import TaskDefinitionGrants
from relaunch.usecases.launch_attempt import launch_attempt

NARROWED = StackLimits(task_definitions=TaskDefinitionGrants(("vision-*",), "relaunch/"))


def test_a_job_whose_family_is_not_allowed_any_more_fails_before_anything_is_called(story):
    job_id = story.submit()

    job = launch_attempt(job_id, replace(story.deps, limits=NARROWED))

    assert job.state is JobState.FAILED
    assert job.reason.startswith("the stack may not run task definitions of the family trainer: its parameter")
    assert story.jobs.events_of(job_id)[-1] == "launch impossible"
    assert story.tasks.requests == []
    assert story.registry.active == set()


def test_an_interrupted_job_is_not_launched_again_after_its_family_was_taken_off(story, running_id):
    story.lose_host(running_id)

    job = launch_attempt(running_id, replace(story.deps, limits=NARROWED))

    assert job.state is JobState.FAILED
    assert len(story.tasks.requests) == 1
    assert not job.has_slot
