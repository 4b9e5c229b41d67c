"""Caps on running jobs: they hold, who waits is said to wait, and each end lets the next one in."""

from dataclasses import replace

import pytest

from fakes.builders import make_definition
from fakes.jobs import InMemoryJobs
from fakes.story import MINUTE, Story, push, upload
from relaunch.core.definitions.definition import GithubTrigger, S3Trigger
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.launches.launch import LaunchRefused
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.launch_attempt import launch_attempt

UPLOADS = make_definition(triggers=(S3Trigger("acme-datasets", "images/", ".manifest"),), max_running_jobs=5)


def in_state(story: Story, ids: list[str], state: JobState) -> list[str]:
    return [job_id for job_id in ids if story.job(job_id).state is state]


def test_of_5000_uploads_at_once_the_cap_lets_five_run_and_the_rest_is_said_to_wait():
    story = Story(replace(UPLOADS, max_waiting_jobs=5000))
    ids = [story.submit(upload(f"images/{number}.manifest")) for number in range(5000)]
    story.settle()

    waiting = in_state(story, ids, JobState.WAITING)

    assert len(set(ids)) == 5000
    assert len(in_state(story, ids, JobState.LAUNCHING)) == len(story.tasks.tasks) == 5
    assert {story.job(job_id).reason for job_id in waiting} == {
        "definition resnet has no free slot of its 5 (max_running_jobs)"
    }
    assert {story.job(job_id).waiting.reason for job_id in waiting} == {WaitReason.SLOT}
    assert all(story.job(job_id).wake_at for job_id in waiting)
    assert story.launches.requested == []


def test_each_end_lets_the_next_one_in_until_all_have_run_in_the_order_they_came():
    story = Story(UPLOADS)
    ids = []
    for number in range(60):
        ids.append(story.submit(upload(f"images/{number}.manifest")))
        story.clock.advance(1)
    story.settle()
    launched = in_state(story, ids, JobState.LAUNCHING)

    while launching := in_state(story, ids, JobState.LAUNCHING):
        assert len(launching) <= 5
        story.run(launching[0])
        story.end(launching[0], 0)
        story.settle()
        launched += [job_id for job_id in in_state(story, ids, JobState.LAUNCHING) if job_id not in launched]

    assert in_state(story, ids, JobState.SUCCEEDED) == ids
    assert launched == ids
    assert story.jobs.slots == {"resnet": 0, "*": 0}


@pytest.mark.parametrize("ending", ["failed", "cancelled", "refused"])
def test_every_way_to_end_lets_the_next_one_in(ending):
    story = Story(make_definition(max_running_jobs=1, max_failures=0))
    if ending == "refused":
        story.tasks.outcomes.append(LaunchRefused("ClientException"))
    first, second = story.submit(), story.submit(push("b" * 40))
    launch_attempt(first, story.deps)
    if ending != "refused":
        launch_attempt(second, story.deps)
        assert story.job(second).state is JobState.WAITING
        story.launches.requested.clear()
        if ending == "cancelled":
            cancel_job(first, "not needed", story.deps)
        story.end(first, 1)

    story.settle()

    assert story.job(first).state.is_final
    assert story.job(second).state is JobState.LAUNCHING


class BehindTheTable(InMemoryJobs):
    """The index of waiting jobs still knows those that have been let in a moment ago."""

    def __init__(self) -> None:
        super().__init__()
        self.remembered: dict[str, list[str]] = {}

    def load_waiting(self, slot: str, limit: int) -> list[str]:
        stale = self.remembered.get(slot, [])[:1]
        now = super().load_waiting(slot, limit + 1)
        self.remembered[slot] = now
        return [*stale, *(job_id for job_id in now if job_id not in stale)][:limit]


@pytest.mark.parametrize("jobs", [InMemoryJobs, BehindTheTable])
def test_several_ends_at_once_let_as_many_in(jobs):
    story = Story(UPLOADS, jobs=jobs())
    ids = [story.submit(upload(f"images/{number}.manifest")) for number in range(12)]
    story.settle()

    for job_id in in_state(story, ids, JobState.LAUNCHING):
        story.end(job_id, 0)
    story.settle()

    assert len(in_state(story, ids, JobState.LAUNCHING)) == 5


def test_the_stack_has_a_cap_of_its_own_over_all_definitions():
    other = make_definition(name="bert", triggers=(GithubTrigger("acme/text", "push"),))
    story = Story(make_definition(), other, limits=StackLimits(max_running_jobs=2))
    first, _ = story.submit(), story.submit(push(repository="acme/text"))
    third = story.submit(push("b" * 40, "acme/text"))
    story.settle()

    assert story.job(third).waiting is not None
    assert story.job(third).waiting.slot == "*"
    assert story.jobs.slots["*"] == 2

    story.end(first, 0)
    story.settle()
    assert story.job(third).state is JobState.LAUNCHING


def test_a_stack_slot_that_the_oldest_cannot_use_goes_to_the_next():
    """The oldest that waits for the stack may not run because of its own definition's cap."""
    small = make_definition(max_running_jobs=1)
    other = make_definition(name="bert", triggers=(GithubTrigger("acme/text", "push"),))
    story = Story(small, other, limits=StackLimits(max_running_jobs=2))
    berts = [story.submit(push(f"{number}" * 40, "acme/text")) for number in range(2)]
    story.settle()
    waiting = []
    for event in (push("a" * 40), push("b" * 40), push("c" * 40, "acme/text")):
        story.clock.advance(1)
        waiting.append(story.submit(event))
        story.settle()
    assert {story.job(job_id).waiting.slot for job_id in waiting} == {"*"}

    story.end(berts[0], 0)
    story.settle()
    assert in_state(story, waiting, JobState.LAUNCHING) == waiting[:1]

    story.end(berts[1], 0)
    story.settle()
    assert in_state(story, waiting, JobState.LAUNCHING) == [waiting[0], waiting[2]]
    assert story.job(waiting[1]).waiting.slot == "resnet"


def test_a_slot_whose_hand_over_got_lost_is_found_by_looking():
    story = Story(make_definition(max_running_jobs=1))
    first, second = story.submit(), story.submit(push("b" * 40))
    story.settle()
    story.end(first, 0)
    story.launches.requested.clear()

    story.reconcile(after=15 * MINUTE)
    story.settle()

    assert story.job(second).state is JobState.LAUNCHING
