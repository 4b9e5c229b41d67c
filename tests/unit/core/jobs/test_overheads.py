"""What a start of a job loses, and what an interruption may lose, measured by its own attempts."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_job, make_placement, make_running_attempt
from relaunch.core.jobs.attempt import Stop, StopKind
from relaunch.core.jobs.job import Job, MeasuredTimes
from relaunch.core.jobs.overheads import Overheads, machine_asked_at, measure_overheads, measured_so_far, with_measured
from relaunch.core.jobs.progress import LONGEST_START, SHORTEST_START, SavedCheckpoint
from relaunch.core.jobs.state import Waiting, WaitReason

MINUTE = timedelta(minutes=1)
RESUMED = "s3://b/j/attempt-1/step-0000100/"


def saved(*steps_and_minutes: tuple[int, float], attempt: int = 2) -> SavedCheckpoint:
    """Return the newest of some checkpoints, each saved so many minutes after the start of the task."""
    *earlier, (step, minutes) = steps_and_minutes
    times = tuple((each, NOW + after * MINUTE) for each, after in earlier)
    return SavedCheckpoint("s3://b/j/", step, attempt, NOW + minutes * MINUTE, times)


def running(requested: float = 3, asked: float | None = None, resume_uri: str | None = None, **fields) -> Job:
    """Build a job whose second attempt runs since NOW, requested so many minutes before."""
    placement = make_placement(requested_at=NOW - requested * MINUTE, resume_uri=resume_uri)
    asked_at = None if asked is None else NOW - asked * MINUTE
    return make_job(attempt=make_running_attempt(2, placement=placement), asked_at=asked_at, **fields)


def start_minutes(job: Job, newest: SavedCheckpoint | None = None) -> float:
    """Return the minutes of the one start that was measured."""
    so_far = measured_so_far(job, newest, NOW)
    assert so_far.starts == 1
    return so_far.start_seconds / 60


def test_without_any_start_the_constants_are_taken():
    assert measure_overheads(make_job(), None, NOW) == Overheads()
    not_started = make_job(attempt=make_running_attempt(started_at=None), measured_starts=1, start_seconds=240.0)
    assert measured_so_far(not_started, None, NOW) == MeasuredTimes(1, 240.0, 0.0)


def test_a_start_takes_from_the_request_until_the_task_runs_and_some_time_to_load():
    assert start_minutes(running(3)) == 3 + 2
    assert start_minutes(running(3, asked=7)) == 7 + 2, "the machine was waited for"
    assert start_minutes(running(-1)) == 2, "by a clock that is late"


@pytest.mark.parametrize(
    ("newest", "resume_uri", "minutes"),
    [
        pytest.param(saved((100, 25), (200, 45)), None, 5.0, id="from the beginning"),
        pytest.param(saved((200, 25), (300, 45)), RESUMED, 5.0, id="resumed"),
        pytest.param(saved((300, 45), (400, 65)), RESUMED, 5.0, id="the first ones are deleted"),
        pytest.param(saved((100, 25), (200, 65)), None, 0.0, id="faster at first"),
        pytest.param(saved((200, 25), (300, 45)), "s3://b/j/other/", 0.0, id="resumed from what has no step"),
        pytest.param(saved((100, 25)), None, 2.0, id="one alone says nothing of the speed"),
        pytest.param(saved((100, 25), (100, 45)), None, 2.0, id="no step in between"),
        pytest.param(saved((100, 25), (200, 25)), None, 2.0, id="no time in between"),
        pytest.param(saved((100, 25), (200, 45), attempt=1), None, 2.0, id="of the attempt before"),
    ],
)
def test_the_steps_and_times_of_checkpoints_say_how_long_a_task_loads(newest, resume_uri, minutes):
    assert start_minutes(running(3, resume_uri=resume_uri), newest) == pytest.approx(3 + minutes)


def test_a_new_attempt_begins_with_what_those_before_it_said():
    job = with_measured(running(3, measured_starts=1, start_seconds=60.0), saved((1, 10), (2, 50)), NOW)

    assert (job.measured.starts, job.measured.start_seconds, job.measured.checkpoint_seconds) == (
        2,
        60.0 + 3 * 60,
        2400.0,
    )
    assert job.progress.kept_seconds == 50 * 60.0


def test_a_machine_is_waited_for_since_it_was_asked_for():
    assert machine_asked_at(make_job(waiting=Waiting(WaitReason.MACHINE, NOW, ""))) == NOW
    assert machine_asked_at(make_job(waiting=Waiting(WaitReason.LAUNCH, NOW, ""))) is None
    assert machine_asked_at(make_job(waiting=None)) is None


def test_the_starts_of_earlier_attempts_and_the_constant_count_alike():
    job = running(6, measured_starts=2, start_seconds=24 * 60.0)

    assert measure_overheads(job, None, NOW).start == (8 + 24 + 8) / 4 * MINUTE


@pytest.mark.parametrize(
    ("job", "start"),
    [(running(600), LONGEST_START), (running(0, measured_starts=99, start_seconds=0.0), SHORTEST_START)],
)
def test_a_start_is_bounded(job, start):
    assert measure_overheads(job, None, NOW).start == start


@pytest.mark.parametrize(
    ("newest", "before", "minutes"),
    [
        pytest.param(None, 0.0, 30.0, id="nothing was saved"),
        pytest.param(saved((1, 10)), 0.0, 30.0, id="one checkpoint"),
        pytest.param(saved((1, 10), (2, 20)), 0.0, 20.0, id="shorter than the constant: half of each"),
        pytest.param(
            saved((1, 0), (2, 0.01)), 0.0, 15.005, id="as if nothing were lost: at least half of the constant"
        ),
        pytest.param(saved((1, 10), (2, 70), (3, 80)), 0.0, 60.0, id="the longest"),
        pytest.param(saved((1, 10), (2, 20)), 5400.0, 90.0, id="longer in an attempt before"),
        pytest.param(saved((1, 10), (2, 20), attempt=1), 0.0, 30.0, id="counted with the attempt before"),
    ],
)
def test_an_interruption_may_lose_the_longest_time_between_two_checkpoints(newest, before, minutes):
    job = running(checkpoint_seconds=before)

    assert measure_overheads(job, newest, NOW).checkpoint_interval == minutes * MINUTE


@pytest.mark.parametrize(
    ("newest", "stopped", "before", "minutes"),
    [
        pytest.param(None, 160, 0.0, 160.0, id="nothing was saved"),
        pytest.param(saved((1, 20), attempt=1), 160, 0.0, 160.0, id="only by the attempt before"),
        pytest.param(saved((1, 100)), 160, 0.0, 60.0, id="since the last checkpoint"),
        pytest.param(saved((1, 10), (2, 30)), 75, 0.0, 45.0, id="longer than between two"),
        pytest.param(saved((1, 10), (2, 70)), 75, 0.0, 60.0, id="shorter than between two"),
        pytest.param(saved((1, 10), (2, 20)), 45, 0.0, 27.5, id="shorter than the constant: half of each"),
        pytest.param(None, 60, 5400.0, 90.0, id="shorter than in an attempt before"),
        pytest.param(None, 0.1, 0.0, 30.0, id="a program that failed at once"),
        pytest.param(saved((1, 10), (2, 100)), 100, 0.0, 90.0, id="saved when it was told to stop"),
        pytest.param(saved((1, 10), (2, 20), (3, 102)), 100, 0.0, 82.0, id="and was reported after the stop"),
    ],
)
def test_the_time_that_a_task_ran_without_a_checkpoint_is_the_least_between_two(newest, stopped, before, minutes):
    stop = Stop(StopKind.INTERRUPTION, NOW + stopped * MINUTE)
    running_still = running(checkpoint_seconds=before)
    job = replace(running_still, attempt=replace(running_still.current_attempt, stop=stop))

    interval = measure_overheads(job, newest, NOW + 600 * MINUTE).checkpoint_interval

    assert interval == minutes * MINUTE
    assert measure_overheads(running_still, newest, stop.at).checkpoint_interval == interval, "so far"
    followed = replace(with_measured(job, newest, stop.at), attempt=None)
    assert measure_overheads(followed, None, stop.at).checkpoint_interval == interval
