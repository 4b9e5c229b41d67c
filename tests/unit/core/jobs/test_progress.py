"""How much work of a job is done, and how much is left."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_definition, make_job, make_running_attempt
from relaunch.core.jobs.attempt import Stop, StopKind
from relaunch.core.jobs.job import Job, SavedProgress
from relaunch.core.jobs.progress import (
    LONGEST_LEFT,
    Progress,
    SavedCheckpoint,
    kept_time,
    measure_progress,
    share_left,
    total_steps,
)
from relaunch.core.jobs.reported import Reported
from relaunch.core.jobs.state import NotedProgress
from relaunch.core.jobs.trigger_facts import ResumePoint

HOUR = timedelta(hours=1)
SHARED = {"padding": 0.0, "max_runtime": 100 * HOUR}
ESTIMATED = make_definition(estimated_duration=10 * HOUR, **SHARED)
STEPS = make_definition(total_steps=1000, **SHARED)
BOTH = replace(STEPS, estimated_duration=10 * HOUR)


def saved(after: timedelta = HOUR, step: int = 100, attempt: int = 2) -> SavedCheckpoint:
    return SavedCheckpoint(f"s3://b/j/attempt-{attempt}/step-{step:07d}/", step, attempt, NOW + after)


def running(**fields) -> Job:
    """Build a job whose second attempt runs since NOW; of the first one 3 h are kept."""
    return make_job(**{"attempt": make_running_attempt(2), "kept_seconds": 10800.0, **fields})


def stopped(after: timedelta = 2 * HOUR, **fields) -> Job:
    return running(attempt=make_running_attempt(2, stop=Stop(StopKind.INTERRUPTION, NOW + after)), **fields)


@pytest.mark.parametrize(("said", "of"), [(400, 400), (100, 100), (99, None), (None, None)])
def test_the_training_says_how_many_steps_there_are_where_the_definition_does_not(said, of):
    newest = replace(saved(), reported=Reported(total_steps=said))

    assert total_steps(running(definition=make_definition()), newest) == of
    assert total_steps(running(definition=STEPS), newest) == 1000
    assert total_steps(running(definition=make_definition()), None) is None
    measured = measure_progress(running(definition=make_definition()), newest, NOW + HOUR)
    assert measured == (None if of is None else Progress(4 * HOUR, 4 * HOUR * (of - 100) / 100))


@pytest.mark.parametrize(
    ("job", "newest", "kept"),
    [
        pytest.param(make_job(), None, 0 * HOUR, id="before the first launch"),
        pytest.param(make_job(), saved(), 0 * HOUR, id="of a job that was launched under another number"),
        pytest.param(running(), saved(), 4 * HOUR, id="saved by the running attempt"),
        pytest.param(running(), saved(attempt=1), 3 * HOUR, id="saved by the one before"),
        pytest.param(running(), saved(-HOUR), 3 * HOUR, id="saved before the start, by a clock that is late"),
        pytest.param(running(), None, 0 * HOUR, id="checkpoints that are gone"),
        pytest.param(running(attempt=make_running_attempt(2, started_at=None)), saved(), 3 * HOUR, id="not started"),
        pytest.param(stopped(), saved(), 4 * HOUR, id="saved an hour before the stop"),
        pytest.param(stopped(), saved(3 * HOUR), 5 * HOUR, id="reported after the stop"),
    ],
)
def test_what_a_checkpoint_keeps_is_the_time_until_it_was_saved(job, newest, kept):
    assert kept_time(job, newest) == kept


@pytest.mark.parametrize(
    ("job", "newest", "progress"),
    [
        pytest.param(make_job(definition=ESTIMATED), None, Progress(0 * HOUR, 10 * HOUR), id="all of the estimate"),
        pytest.param(make_job(definition=make_definition()), None, None, id="nobody said how much"),
        pytest.param(make_job(definition=STEPS), None, None, id="steps that no checkpoint counted yet"),
        pytest.param(running(definition=ESTIMATED), saved(), Progress(5 * HOUR, 5 * HOUR), id="a running task"),
        pytest.param(stopped(definition=ESTIMATED), saved(), Progress(4 * HOUR, 6 * HOUR), id="its loss is not done"),
        pytest.param(stopped(definition=ESTIMATED), None, Progress(0 * HOUR, 10 * HOUR), id="without checkpoints"),
        pytest.param(
            running(definition=replace(ESTIMATED, estimated_duration=2 * HOUR)),
            saved(),
            Progress(5 * HOUR, 0 * HOUR),
            id="more than was estimated",
        ),
        pytest.param(
            stopped(definition=STEPS), saved(step=400), Progress(4 * HOUR, 6 * HOUR), id="steps at their own speed"
        ),
        pytest.param(
            stopped(definition=BOTH), saved(step=800), Progress(4 * HOUR, HOUR), id="steps rather than the estimate"
        ),
        pytest.param(
            stopped(definition=BOTH), saved(step=40), Progress(4 * HOUR, 9.6 * HOUR), id="too few steps to go by"
        ),
        pytest.param(
            stopped(definition=STEPS), saved(step=10), Progress(4 * HOUR, 396 * HOUR), id="few steps, and no estimate"
        ),
        pytest.param(
            running(definition=BOTH), saved(step=800), Progress(5 * HOUR, 0 * HOUR), id="steps since the checkpoint"
        ),
        pytest.param(stopped(definition=BOTH), saved(step=2000), Progress(4 * HOUR, 0 * HOUR), id="all steps"),
        pytest.param(stopped(definition=BOTH), saved(step=0), Progress(4 * HOUR, 6 * HOUR), id="no step yet"),
        pytest.param(
            stopped(definition=STEPS, first_step=600), saved(step=800), Progress(4 * HOUR, 4 * HOUR), id="a retry"
        ),
        pytest.param(
            stopped(definition=BOTH, first_step=600),
            saved(step=800),
            Progress(4 * HOUR, 4 * HOUR),
            id="and an estimate",
        ),
        pytest.param(
            stopped(definition=BOTH, resume_from=(ResumePoint("resnet-1", "s3://b/"),)),
            saved(step=800),
            Progress(4 * HOUR, 2 * HOUR),
            id="a retry of which it is not known where it began",
        ),
        pytest.param(
            stopped(definition=BOTH, first_step=780),
            saved(step=800),
            Progress(4 * HOUR, 2 * HOUR),
            id="too few steps of its own to go by",
        ),
        pytest.param(
            make_job(definition=BOTH, first_step=800), None, Progress(0 * HOUR, 2 * HOUR), id="a retry that begins"
        ),
        pytest.param(
            running(definition=BOTH, kept_seconds=0.0, first_step=800),
            None,
            Progress(2 * HOUR, 0 * HOUR),
            id="a retry that saved nothing yet",
        ),
        pytest.param(make_job(definition=STEPS, first_step=800), None, None, id="steps of a job that it retries alone"),
        pytest.param(
            stopped(definition=STEPS, first_step=800), saved(step=800), None, id="a retry that saved no step of its own"
        ),
    ],
)
def test_work_left_is_what_steps_or_the_estimate_leave(job, newest, progress):
    assert measure_progress(job, newest, NOW + 2 * HOUR) == progress


@pytest.mark.parametrize("total", [10**6, 10**12, 10**400])
def test_the_first_step_of_a_trillion_leaves_no_more_than_a_century(total):
    job = stopped(300 * HOUR, definition=replace(STEPS, total_steps=total), kept_seconds=0.0)

    progress = measure_progress(job, saved(300 * HOUR, step=1), NOW)

    assert progress == Progress(300 * HOUR, LONGEST_LEFT)
    assert NOW + progress.at_most_left(0.5) > NOW


def test_a_step_that_is_a_time_leaves_nothing():
    progress = measure_progress(stopped(definition=STEPS), saved(step=10**19 - 1), NOW)

    assert progress == Progress(4 * HOUR, timedelta(0))


@pytest.mark.parametrize(("kept_hours", "left_hours"), [(0, 22), (18, 4), (20, 2), (24, 2.4)])
def test_at_most_the_padding_of_the_whole_estimate_is_left_beside_it(kept_hours, left_hours):
    definition = replace(ESTIMATED, estimated_duration=20 * HOUR, padding=0.1)
    job = stopped(kept_hours * HOUR, definition=definition, kept_seconds=0.0)

    progress = measure_progress(job, saved(kept_hours * HOUR), NOW + 30 * HOUR)

    assert progress is not None
    assert progress.done == kept_hours * HOUR
    assert progress.at_most_left(0.1) == left_hours * HOUR


@pytest.mark.parametrize(
    ("total_steps", "fields", "left"),
    [
        pytest.param(None, {}, 1.0, id="nobody said how many steps there are"),
        pytest.param(100, {}, 1.0, id="it has saved nothing"),
        pytest.param(100, {"progress": SavedProgress(first_step=40)}, 0.6, id="it goes on from another job"),
        pytest.param(100, {"noted": NotedProgress(75, NOW, 1, 50)}, 0.25, id="as its definition says"),
        pytest.param(None, {"noted": NotedProgress(75, NOW, 1, 150)}, 0.5, id="as its training says"),
        pytest.param(None, {"noted": NotedProgress(75, NOW, 1, 50)}, 0.0, id="it is further than it says"),
    ],
)
def test_the_share_that_is_left_is_that_of_the_steps_that_were_noted(total_steps, fields, left):
    assert share_left(make_job(definition=make_definition(total_steps=total_steps), **fields)) == left
