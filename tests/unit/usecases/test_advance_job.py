"""Saving on a condition, and finishing what somebody else left."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import make_running_job
from fakes.jobs import InMemoryJobs
from fakes.story import Story
from relaunch.core.jobs.effects import LookForWarning
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.events import CancelAsked, TimePassed
from relaunch.ports import StaleWriteError, TransientError
from relaunch.usecases.advance_job import advance_job
from relaunch.usecases.cancel_job import cancel_job


class Crowded(InMemoryJobs):
    """Somebody else saves the job just before each of the next writes."""

    def __init__(self) -> None:
        super().__init__()
        self.races = 0

    def save_job(self, write: Decision):
        if self.races:
            self.races -= 1
            super().save_job(Decision(self.job(write.job.job_id)))
        return super().save_job(write)


@pytest.mark.parametrize("races", [0, 1, 5])
def test_who_loses_a_race_loads_and_decides_again(races):
    story = Story(jobs=Crowded())
    job_id = story.launch()
    story.jobs.races = races

    advance_job(job_id, lambda _job: CancelAsked("not needed"), story.deps)

    assert story.job(job_id).state is JobState.STOPPING
    assert len(story.tasks.stops) == 1


def test_who_loses_every_race_leaves_the_event_to_its_queue():
    story = Story(jobs=Crowded())
    job_id = story.launch()
    story.jobs.races = 99

    with pytest.raises(StaleWriteError, match="saved by others 6 times"):
        advance_job(job_id, lambda _job: CancelAsked("not needed"), story.deps)


def test_a_write_that_took_effect_without_an_answer_is_no_second_decision(story, running_id):
    story.jobs.fail_next(TransientError("no answer"), after_effect=True)

    with pytest.raises(TransientError):
        cancel_job(running_id, "not needed", story.deps)
    assert story.tasks.stops == []
    cancel_job(running_id, "not needed", story.deps)

    assert len(story.tasks.stops) == 1
    assert story.jobs.events_of(running_id).count("cancelling") == 1


def test_an_event_that_is_none_for_this_job_only_finishes_what_is_pending(story, running_id):
    story.tasks.stop_failure = TransientError("ThrottlingException")
    with pytest.raises(TransientError):
        cancel_job(running_id, "not needed", story.deps)
    assert story.tasks.stops == []

    advance_job(running_id, lambda _job: None, story.deps)

    assert len(story.tasks.stops) == 1
    assert story.job(running_id).pending == ()


@pytest.mark.parametrize("is_late", [False, True])
def test_a_stop_that_is_held_back_counts_from_when_the_target_took_it(story, running_id, *, is_late):
    story.tasks.stop_failure = TransientError("AccessDenied")
    with pytest.raises(TransientError):
        cancel_job(running_id, "not needed", story.deps)
    story.clock.advance(timedelta(minutes=20 if is_late else 0.5))

    advance_job(running_id, lambda _job: None, story.deps)

    sent_at = story.job(running_id).current_attempt.stop_sent_at
    assert sent_at == (story.clock.now() if is_late else None)


def test_effects_that_somebody_else_has_done_meanwhile_are_no_trouble():
    story = Story(jobs=Crowded())
    job_id = story.launch()

    stop = story.tasks.stop

    def stop_before_the_crowd(arn: str, reason: str) -> None:
        stop(arn, reason)
        story.jobs.races = 1

    story.tasks.stop = stop_before_the_crowd
    job = advance_job(job_id, lambda _job: CancelAsked("not needed"), story.deps)

    assert job is not None
    assert job.state is JobState.STOPPING
    assert story.job(job_id).state is JobState.STOPPING


@pytest.mark.parametrize(("is_known", "state"), [(True, JobState.RUNNING), (False, JobState.STOPPING)])
def test_a_stored_warning_says_nothing_to_a_job_that_knows_one_of_its_instance(story, running_id, is_known, state):
    job = story.job(running_id)
    attempt = job.current_attempt
    known = replace(attempt, warned_at=story.now - timedelta(minutes=1) if is_known else None)
    story.jobs.save_job(Decision(replace(job, attempt=known, pending=(LookForWarning(attempt.instance_id),))))
    story.jobs.save_warning(attempt.instance_id, story.now)

    advance_job(running_id, lambda _job: None, story.deps)

    assert story.job(running_id).state is state


def test_an_ignored_event_writes_nothing(story, running_id):
    stopped = story.end(running_id, 0)
    writes = len(story.jobs.decisions)

    story.tell(stopped)
    advance_job(running_id, lambda _job: TimePassed(), story.deps)

    assert len(story.jobs.decisions) == writes
    assert story.log.decisions[-1] == "ignored"
    assert story.log.lines[-1][1]["reason"] == "TimePassed means nothing to a job that is SUCCEEDED"


def test_a_job_without_a_wake_up_is_refused_by_the_store(story):
    with pytest.raises(ValueError, match="has no wake_at"):
        story.jobs.create_job(make_running_job(wake_at=None), ())
