"""The times between checkpoints: what a training saves because it is to leave is none of them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_job, make_placement, make_running_attempt, make_running_job
from relaunch.core.jobs.attempt import IntentKind, Stop, StopIntent, StopKind
from relaunch.core.jobs.checkpoint_gaps import has_trained, latest_gaps, retrained_at, usual_gap
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.core.jobs.state import NotedProgress
from relaunch.core.jobs.training import note_progress

MINUTE = timedelta(minutes=1)


def at(minutes: float):
    return NOW + minutes * MINUTE


def saved(*steps_and_minutes: tuple[int, float], attempt: int = 1) -> SavedCheckpoint:
    *earlier, (step, saved_at) = [(step, at(minutes)) for step, minutes in steps_and_minutes]
    return SavedCheckpoint("s3://b/j/", step, attempt, saved_at, tuple(earlier))


def running(number: int = 1, started: float | None = 0, resume: int | None = None, **fields) -> Job:
    """Build a job whose attempt runs since so many minutes, from a step if one is given."""
    uri = None if resume is None else f"s3://b/j/attempt-1/step-{resume:07d}/"
    started_at = None if started is None else at(started)
    attempt = make_running_attempt(number, placement=make_placement(resume_uri=uri), started_at=started_at, **fields)
    return make_running_job(attempt=attempt)


def known(*gaps: float, step: int = 100, minutes: float = 120, attempt: int = 1) -> NotedProgress:
    seconds = tuple(60.0 * gap for gap in gaps)
    return NotedProgress(step, at(minutes), attempt, interval_seconds=usual_gap(seconds), gaps_seconds=seconds)


def gaps(job: Job, newest: SavedCheckpoint, before: NotedProgress | None = None) -> list[float]:
    return [each / 60 for each in latest_gaps(job, newest, before)]


LEFT = saved((120, 120), (125, 125.5))
OWN_STOP = StopIntent(IntentKind.MOVE, at(125), "")


@pytest.mark.parametrize(
    ("job", "newest", "before", "expected"),
    [
        pytest.param(running(), saved((100, 20), (200, 50)), None, [20, 30], id="the start, and what follows"),
        pytest.param(running(started=None), saved((100, 20), (200, 50)), None, [30], id="of an unknown start"),
        pytest.param(make_job(), saved((100, 20), (200, 50), (300, 80)), None, [30], id="of no attempt that is known"),
        pytest.param(running(), saved((0, 5), (200, 50)), None, [45], id="saved at its start"),
        pytest.param(running(resume=90), saved((90, 5), (200, 50)), None, [45], id="saved again at its start"),
        pytest.param(running(), saved((100, 20), (200, 20)), None, [20], id="of no time"),
        pytest.param(running(warned_at=at(125)), LEFT, None, [120], id="after a warning"),
        pytest.param(running(intent=OWN_STOP), LEFT, None, [120], id="after the intent to stop it"),
        pytest.param(running(stop=Stop(StopKind.CANCELLED, at(125))), LEFT, None, [120], id="after its stop"),
        pytest.param(running(2, 135, 125), LEFT, known(120), [120], id="seen when the next attempt runs"),
        pytest.param(running(2, 135, 125), LEFT, known(120, step=125), [120], id="seen before"),
        pytest.param(running(2, 135, 125), LEFT, None, [], id="the whole attempt is over"),
        pytest.param(running(2, 135, 125), saved((125, 125)), known(120), [120], id="only the newest is kept"),
        pytest.param(
            running(2, 135, 125), saved((140, 150), attempt=2), known(120), [120], id="a first one that comes early"
        ),
        pytest.param(
            running(2, 135, 125), saved((250, 265), attempt=2), known(120), [120, 130], id="a first one in time"
        ),
        pytest.param(
            running(2, 135, 125),
            saved((140, 150), (260, 271), attempt=2),
            known(120, step=140, minutes=150, attempt=2),
            [120, 121],
            id="the one after it",
        ),
        pytest.param(
            running(2, 135, 125),
            saved((125, 136), (260, 271), attempt=2),
            known(120, step=125, minutes=136, attempt=2),
            [120, 135],
            id="a first one after what was saved at the start",
        ),
        pytest.param(
            running(2, 135, 125, warned_at=at(300)),
            saved((245, 255), (290, 300.5), attempt=2),
            known(120),
            [120, 120],
            id="one of each",
        ),
        pytest.param(
            running(),
            saved((200, 130)),
            NotedProgress(100, at(120), 1, interval_seconds=7_200),
            [120, 10],
            id="noted by an earlier version",
        ),
        pytest.param(
            running(), saved((200, 180)), known(1, 2, 3, 4, 5), [2, 3, 4, 5, 60], id="the latest five are kept"
        ),
    ],
)
def test_the_times_between_checkpoints_are_those_of_saves_in_its_own_time(job, newest, before, expected):
    assert gaps(job, newest, before) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("times", "usual"),
    [
        ((), 0),
        ((120, 5), 120),
        ((1, 1, 120), 120),
        ((20, 20, 20, 560), 20),
        ((1, 1, 120, 120), 60.5),
        ((20, 20, 60, 60, 60), 60),
    ],
)
def test_the_median_is_usual_once_four_are_known_and_the_longest_before(times, usual):
    assert usual_gap(times) == usual


def test_an_interrupted_training_that_saves_every_two_hours_never_stalls():
    """Three attempts end with a save on SIGTERM after five minutes beyond a save, and reconcile looks every ten."""
    job = running()
    stalls = []
    noted: NotedProgress | None = None
    saves: list[tuple[int, float]] = []
    for number in (1, 2, 3):
        began = 135 * (number - 1)
        job = running(number, began, resume=125 * (number - 1) or None)
        for minute in range(began + 1, began + 126):
            warned = replace(job.current_attempt, warned_at=at(minute)) if minute == began + 125 else None
            job = replace(job, attempt=warned or job.attempt)
            if minute - began in (120, 125):
                saves = [*(saves if minute - began == 125 else []), (minute - 10 * (number - 1), minute)]
            if saves and minute % 10 == 0:
                newest = saved(*saves, attempt=number if minute - began >= 120 else number - 1)
                noted = note_progress(replace(job, noted=noted), newest, at(minute))
                stalls.append(noted.stalled_since)

    assert noted is not None
    assert noted.interval_seconds == 7_200
    assert len(stalls) > 20
    assert set(stalls) == {None}


def test_only_the_current_attempt_trains_steps_again_and_gains_them():
    below = replace(saved((300, 60)), retrained=((100, at(80)), (200, at(90))))

    assert retrained_at(running(2), below) == at(90)
    assert retrained_at(running(2), saved((300, 60))) is None
    assert retrained_at(running(1), below) is None
    assert retrained_at(make_job(), below) is None
    assert not has_trained(make_job(), below)
    assert not has_trained(running(2), below)
    assert not has_trained(running(1, resume=300), below)
    assert has_trained(running(1, resume=200), below)
