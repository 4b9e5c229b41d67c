"""Concurrency groups: of the jobs of a group one runs at a time, and the newest one wins, whatever comes in between."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import make_definition
from fakes.story import MINUTE, WAITS_FOR_IMAGE, image, push, upload
from fakes.story import Story as StoryOfFakes
from relaunch.core.definitions.concurrency import Concurrency
from relaunch.core.definitions.definition import GithubTrigger, InputRule, S3Trigger
from relaunch.core.jobs.effects import AdmitWaiting, RequestLaunch
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.lifecycle.explanation import explain
from relaunch.core.lifecycle.groups import slot_of
from relaunch.core.triggers.events import DirectRequest
from relaunch.ports import StaleWriteError, TransientError
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.launch_attempt import launch_attempt
from relaunch.usecases.retry_job import retry_job
from relaunch.usecases.submit_job import submit_direct, submit_event

MAIN = GithubTrigger("acme/vision", "push")
WAITS = make_definition(triggers=(MAIN,), concurrency=Concurrency("{branch}"))
CANCELS = replace(WAITS, concurrency=Concurrency("{branch}", cancel_in_progress=True))
ONE, TWO, THREE = (letter * 40 for letter in "123")


class Story(StoryOfFakes):
    """A story in which no two events come at the same time."""

    def submit(self, event: Any = None) -> str:
        self.clock.advance(1)
        return super().submit(event)


def pushed(sha: str, seconds: float = 0.0, branch: str = "main", story: Story | None = None) -> Any:
    at = None if story is None else story.now + timedelta(seconds=seconds)
    return replace(push(sha), ref=f"refs/heads/{branch}", pushed_at=at)


def states(story: Story, *job_ids: str) -> list[JobState]:
    return [story.job(job_id).state for job_id in job_ids]


def slot_in(story: StoryOfFakes, job_id: str) -> str:
    return slot_of(story.job(job_id))


def replaced_by(newest: str) -> str:
    return f"replaced by job {newest}, the newest of its concurrency group main"


def test_without_a_group_jobs_run_side_by_side():
    story = Story(replace(WAITS, concurrency=None))
    jobs = [story.submit(pushed(sha)) for sha in (ONE, TWO)]
    story.settle()
    assert states(story, *jobs) == [JobState.LAUNCHING] * 2


class TestWhoWaits:
    def test_a_newer_job_waits_until_the_one_in_progress_has_ended(self):
        story = Story(WAITS)
        first = story.launch(pushed(ONE))
        second = story.submit_and_deliver(pushed(TWO))
        story.settle()
        waiting = story.job(second).waiting
        assert states(story, first, second) == [JobState.RUNNING, JobState.WAITING]
        assert waiting is not None
        assert waiting.reason is WaitReason.SLOT
        assert waiting.detail == f"job {first} of its concurrency group main has not ended"
        story.end(first)
        story.settle()
        assert states(story, first, second) == [JobState.SUCCEEDED, JobState.LAUNCHING]

    def test_of_those_that_wait_the_newest_one_stays_and_the_others_name_it(self):
        story = Story(WAITS)
        first = story.launch(pushed(ONE))
        second = story.submit_and_deliver(pushed(TWO))
        third = story.submit_and_deliver(pushed(THREE))
        story.settle()
        assert states(story, first, second, third) == [JobState.RUNNING, JobState.CANCELLED, JobState.WAITING]
        assert story.job(second).reason == replaced_by(third)
        story.end(first)
        story.settle()
        assert states(story, third) == [JobState.LAUNCHING]

    def test_a_job_that_is_interrupted_stays_in_progress(self):
        story = Story(WAITS)
        first = story.launch(pushed(ONE))
        second = story.submit_and_deliver(pushed(TWO))
        story.lose_host(first)
        story.settle()
        assert states(story, first, second) == [JobState.LAUNCHING, JobState.WAITING]
        assert story.attempt(first).number == 2

    def test_other_branches_and_other_definitions_do_not_wait(self):
        story = Story(WAITS, replace(WAITS, name="bert", triggers=(replace(MAIN, repository="acme/text"),)))
        jobs = [
            story.submit(pushed(ONE)),
            story.submit(pushed(TWO, branch="fix")),
            story.submit(replace(pushed(THREE), repository="acme/text")),
        ]
        story.settle()
        assert states(story, *jobs) == [JobState.LAUNCHING] * 3

    def test_what_has_no_branch_is_in_no_group_of_branches(self):
        uploads = S3Trigger("acme-datasets", "images/", ".manifest")
        story = Story(replace(CANCELS, triggers=(MAIN, uploads)))
        jobs = [story.submit(upload(f"images/{number}.manifest")) for number in range(3)]
        tag = story.submit_and_deliver(replace(push("4" * 40), ref="refs/heads/main"))
        story.settle()
        assert {story.job(each).group.name for each in jobs} == {""}
        assert states(story, *jobs, tag) == [JobState.LAUNCHING] * 4

    def test_it_waits_for_the_group_before_it_takes_a_slot_of_its_definition(self):
        story = Story(replace(WAITS, max_running_jobs=2))
        first = story.launch(pushed(ONE))
        story.submit_and_deliver(pushed(TWO))
        other = story.submit_and_deliver(pushed(THREE, branch="fix"))
        assert states(story, first, other) == [JobState.RUNNING, JobState.LAUNCHING]

    def test_a_group_by_an_input_has_the_jobs_with_its_value(self):
        rules = {"model": InputRule("[a-z]+")}
        story = Story(replace(WAITS, inputs=rules, concurrency=Concurrency("{definition} {inputs.model}")))
        jobs = []
        for key, model in (("1", "small"), ("2", "large"), ("3", "small")):
            story.clock.advance(1)
            jobs.append(submit_direct(DirectRequest(f"api:key:{key}", "resnet", {"model": model}), story.deps).job_id)
        story.settle()
        assert [story.job(each).group.name for each in jobs] == ["resnet small", "resnet large", "resnet small"]
        assert states(story, *jobs) == [JobState.CANCELLED, JobState.LAUNCHING, JobState.LAUNCHING]


class TestWhoIsCancelled:
    def test_the_one_in_progress_gets_sigterm_and_the_newer_one_starts_when_it_has_ended(self):
        story = Story(CANCELS)
        first = story.launch(pushed(ONE))
        second = story.submit_and_deliver(pushed(TWO))
        story.settle()
        assert states(story, first, second) == [JobState.STOPPING, JobState.WAITING]
        assert story.tasks.stops == [(story.arn(first), f"Relaunch: {replaced_by(second)}")]
        story.end(first, 0)
        story.settle()
        assert states(story, first, second) == [JobState.CANCELLED, JobState.LAUNCHING]
        assert replaced_by(second) in story.job(first).reason

    def test_one_whose_launch_was_not_answered_is_stopped_when_its_task_is_known(self):
        story = Story(CANCELS)
        first = story.launch_unanswered(takes_effect=True)
        second = story.submit_and_deliver(pushed(TWO))
        story.settle()
        assert story.job(first).cancel_requested == replaced_by(second)
        assert states(story, second) == [JobState.WAITING]
        story.end(first, None)
        story.settle()
        assert states(story, first, second) == [JobState.CANCELLED, JobState.LAUNCHING]

    def test_one_that_waits_for_its_image_is_replaced_at_once(self):
        story = Story(replace(WAITS_FOR_IMAGE, concurrency=Concurrency("{branch}")))
        first = story.submit_and_deliver(pushed(ONE))
        second = story.submit_and_deliver(pushed(TWO))
        story.deliver()
        assert states(story, first, second) == [JobState.CANCELLED, JobState.WAITING]
        story.images.present.add(("trainer", TWO))
        story.reconcile(3 * MINUTE)
        story.settle()
        assert states(story, second) == [JobState.LAUNCHING]

    def test_what_the_newest_job_says_counts(self):
        story = Story(WAITS)
        first = story.launch(pushed(ONE))
        waiting = story.submit_and_deliver(pushed(TWO))
        story.deps.definitions.save_definition(CANCELS)
        newest = story.submit_and_deliver(pushed(THREE))
        story.settle()
        assert states(story, first, waiting, newest) == [JobState.STOPPING, JobState.CANCELLED, JobState.WAITING]

    def test_a_retry_replaces_the_newer_job_and_the_job_that_it_retries_had_its_group(self):
        story = Story(CANCELS)
        first = story.launch(pushed(ONE))
        story.end(first, 1)
        story.settle()
        cancel_job(first, "try it by hand", story.deps)
        story.end(first, 0)
        second = story.launch(pushed(TWO))
        story.clock.advance(1)
        asked = DirectRequest("cli:1", "resnet", caller="ada", requested_at=story.now - timedelta(days=1))
        retried = retry_job(story.job(first), asked, story.deps).job
        assert retried is not None
        story.settle()
        assert story.job(retried.job_id).group.name == "main"
        assert states(story, second, retried.job_id) == [JobState.STOPPING, JobState.WAITING]


class TestOrder:
    def test_a_push_that_is_delivered_late_is_cancelled_and_not_the_newer_one(self):
        story = Story(CANCELS)
        newer = story.launch(pushed(TWO, -10, story=story))
        late = story.submit_and_deliver(pushed(ONE, -60, story=story))
        story.settle()
        assert states(story, newer, late) == [JobState.RUNNING, JobState.CANCELLED]
        assert story.job(late).reason == replaced_by(newer)
        assert "cancelled: replaced by" in story.timeline(late)

    def test_so_it_is_when_the_newer_one_has_ended(self):
        story = Story(WAITS)
        newer = story.launch(pushed(TWO, -10, story=story))
        story.end(newer)
        late = story.submit(pushed(ONE, -60, story=story))
        assert states(story, newer, late) == [JobState.SUCCEEDED, JobState.CANCELLED]

    def test_an_event_from_the_future_is_no_newer_than_its_acceptance(self):
        story = Story(WAITS)
        first = story.submit(pushed(ONE, 86_400, story=story))
        story.clock.advance(61)
        second = story.submit(pushed(TWO, story=story))
        story.settle()
        assert states(story, first, second) == [JobState.CANCELLED, JobState.LAUNCHING]

    def test_an_event_that_comes_twice_changes_nothing(self):
        story = Story(CANCELS)
        first = story.launch(pushed(ONE))
        second = story.submit_and_deliver(pushed(TWO))
        assert story.submit(pushed(ONE)) == first
        story.settle()
        assert story.jobs.load_group(slot_in(story, first)).newest == second

    def test_a_job_that_is_refused_replaces_none(self):
        story = Story(CANCELS)
        first = story.launch(pushed(ONE))
        story.revisions.active.clear()
        refused = story.submit_and_deliver(pushed(TWO))
        story.settle()
        assert states(story, first, refused) == [JobState.RUNNING, JobState.FAILED]

    @pytest.mark.parametrize(("seconds", "newest"), [(-60, 1), (60, 0)])
    def test_of_two_that_are_created_at_once_the_newer_one_wins(self, seconds, newest):
        story = Story(CANCELS)
        load = story.jobs.load_group
        beside = []

        def load_group(slot: str):
            standing = load(slot)
            if not beside:
                beside.append("")
                beside[:] = [story.submit(pushed(TWO, seconds, story=story))]
            return standing

        story.jobs.load_group = load_group
        own = story.submit(pushed(ONE, story=story))
        story.settle()
        jobs = [beside[0], own]
        assert load(slot_in(story, own)).newest == jobs[newest]
        assert states(story, jobs[newest], jobs[1 - newest]) == [JobState.LAUNCHING, JobState.CANCELLED]

    def test_whoever_is_always_too_late_says_so(self):
        story = Story(CANCELS)

        def refuse(*_arguments: object) -> bool:
            raise StaleWriteError("another job")

        story.jobs.create_job = refuse
        with pytest.raises(TransientError, match="were created at the same time"):
            story.submit(pushed(ONE))


class TestDeaths:
    """What a function leaves undone that dies between two writes."""

    @pytest.mark.parametrize("definition", [WAITS, CANCELS])
    def test_what_a_submission_left_undone_is_done_when_its_message_comes_again(self, definition):
        story = Story(definition)
        first = story.submit_and_deliver(pushed(ONE))
        story.launches.requested.clear()
        story.launches.failure = TransientError("no SQS")
        with pytest.raises(TransientError):
            story.submit(pushed(TWO))
        assert story.launches.requested == []
        second = story.submit(pushed(TWO))
        assert {AdmitWaiting(), RequestLaunch()} & set(story.job(second).pending) == set()
        assert {job_id for job_id, _ in story.launches.requested} == {first, second}

    def test_or_by_reconcile(self):
        story = Story(CANCELS)
        first = story.launch(pushed(ONE))
        story.launches.failure = TransientError("no SQS")
        with pytest.raises(TransientError):
            story.submit(pushed(TWO))
        story.reconcile(6 * MINUTE)
        story.settle()
        assert story.job(first).state is JobState.STOPPING

    def test_a_job_whose_cancellation_was_lost_is_never_launched(self):
        story = Story(WAITS)
        first = story.submit(pushed(ONE))
        second = story.submit(pushed(TWO))
        story.launches.requested.clear()
        launch_attempt(first, story.deps)
        assert replaced_by(second) in story.job(first).reason
        launch_attempt(second, story.deps)
        assert states(story, first, second) == [JobState.CANCELLED, JobState.LAUNCHING]

    def test_a_job_that_a_newer_one_overtakes_while_it_is_launched_is_not(self):
        story = Story(WAITS)
        first = story.submit(pushed(ONE))
        find = story.offerings.catalogue
        later = [pushed(TWO)]

        def catalogue():
            if later:
                story.submit(later.pop())
            return find()

        story.offerings.catalogue = catalogue
        snapshot = story.offerings.snapshot

        def look(now):
            if later:
                story.submit(later.pop())
            return snapshot(now)

        story.offerings.snapshot = look
        launch_attempt(first, story.deps)
        assert not later
        assert states(story, first) == [JobState.CANCELLED]
        assert story.launched_placements == []

    def test_a_newest_one_whose_wake_was_lost_looks_again_by_itself(self):
        story = Story(WAITS)
        first = story.launch(pushed(ONE))
        second = story.submit_and_deliver(pushed(TWO))
        story.settle()
        story.end(first)
        story.launches.requested.clear()
        story.reconcile(16 * MINUTE)
        story.settle()
        assert states(story, second) == [JobState.LAUNCHING]

    @pytest.mark.parametrize("is_stored", [True, False])
    def test_a_group_whose_holder_is_over_is_held_by_none(self, is_stored):
        story = Story(WAITS)
        first = story.launch(pushed(ONE))
        slot = slot_in(story, first)
        story.end(first)
        # As after a release that knows no groups has ended it.
        over = first if is_stored else "resnet-of-another-table"
        story.jobs._groups[slot] = replace(story.jobs.load_group(slot), holder=over)
        second = story.submit_and_deliver(pushed(TWO))
        assert states(story, second) == [JobState.LAUNCHING]
        assert story.jobs.load_group(slot).holder == second

    def test_cancelling_the_one_that_waits_leaves_the_group_to_the_one_in_progress(self):
        story = Story(WAITS)
        first = story.launch(pushed(ONE))
        second = story.submit_and_deliver(pushed(TWO))
        cancel_job(second, "not needed", story.deps)
        story.settle()
        assert states(story, first, second) == [JobState.RUNNING, JobState.CANCELLED]
        third = story.submit_and_deliver(pushed(THREE))
        story.end(first)
        story.settle()
        assert states(story, third) == [JobState.LAUNCHING]


class TestExplaining:
    def test_who_waits_is_said_and_what_follows(self):
        story = Story(WAITS)
        first = story.launch(pushed(ONE))
        second = story.submit_and_deliver(pushed(TWO))
        story.settle()
        explanation = explain(story.job(second), story.now)
        assert explanation.waiting_for == (
            f"its concurrency group: job {first} of its concurrency group main has not ended"
        )
        assert "when that job has ended" in explanation.next_step
        assert explanation.next_at == story.job(second).wake_at

    def test_who_was_replaced_is_said_with_the_newer_job(self):
        story = Story(WAITS)
        story.launch(pushed(ONE))
        second = story.submit_and_deliver(pushed(TWO))
        third = story.submit_and_deliver(pushed(THREE))
        story.settle()
        assert explain(story.job(second), story.now).next_step == (f"nothing, the job is over: {replaced_by(third)}")


def test_an_image_that_comes_late_does_not_bring_back_a_replaced_job():
    story = Story(replace(WAITS_FOR_IMAGE, concurrency=Concurrency("{branch}")))
    first = story.submit_and_deliver(pushed(ONE))
    second = story.submit_and_deliver(pushed(TWO))
    story.settle()
    submit_event(image(ONE), story.deps)
    story.settle()
    assert states(story, first, second) == [JobState.CANCELLED, JobState.WAITING]
