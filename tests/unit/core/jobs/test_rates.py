"""How fast an attempt is: only where its checkpoints agree on it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_definition, make_running_attempt, make_running_job
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.job import Job, SavedProgress
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.core.jobs.rates import observe_rate
from relaunch.core.jobs.reported import Reported, SeriesPoint
from relaunch.core.selection.rates import ObservedRate, work_of

MINUTE = timedelta(minutes=1)
RUNNING = make_running_job(
    definition=make_definition(checkpoint_uri="s3://b/j/"),
    attempt=make_running_attempt(2),
    progress=SavedProgress(accelerators="A10G"),
)
STEADY = ((600, 20.0), (1200, 30.0), (1800, 40.0), (2400, 50.0))


def saved(points, series=(), attempt: int = 2) -> SavedCheckpoint:
    """Build the newest of these checkpoints, each a step and the minutes since NOW, when the attempt began."""
    *earlier, (step, at) = [(step, NOW + minutes * MINUTE) for step, minutes in points]
    said = tuple(SeriesPoint(step, (NOW + minutes * MINUTE).timestamp()) for step, minutes in series)
    return SavedCheckpoint("s3://b/j/", step, attempt, at, tuple(earlier), Reported(save_seconds=9.0, series=said))


def rate_of(points, series=(), job: Job = RUNNING) -> float | None:
    found = observe_rate(job, saved(points, series))
    return None if found is None else found.steps_per_second


def test_checkpoints_that_agree_say_how_fast_an_attempt_is_without_its_start() -> None:
    assert observe_rate(RUNNING, saved(STEADY)) == ObservedRate(
        RUNNING.job_id, 2, 2400, NOW + 50 * MINUTE, 1.0, work_of(RUNNING.definition), 9.0
    )


@pytest.mark.parametrize(
    ("points", "series", "rate"),
    [
        pytest.param(STEADY[:3], (), None, id="it has just begun"),
        pytest.param([(each, each / 600) for each in (600, 1200, 1800, 2400)], (), None, id="too short a time"),
        pytest.param([*STEADY, (3000, 400), (3600, 410)], (), 1.0, id="it hung between two"),
        pytest.param([*STEADY, (3000, 61), (3600, 71)], (), 3000 / 3060, id="an evaluation is part of it"),
        pytest.param([(1, 1), (2, 40), (600, 41), (900, 80), (1500, 82)], (), None, id="no two agree"),
        pytest.param([*STEADY[:2], *STEADY[1:]], (), 1.0, id="a step that is saved again"),
        pytest.param(STEADY[-1:], STEADY, 1.0, id="it keeps its newest only, and saves the series"),
        pytest.param(STEADY[-1:], [(0, -90), (600, -80), *STEADY[:3]], None, id="the series of the attempt before"),
        pytest.param([(100 * each, each) for each in range(40)], (), 100 / 60, id="the newest of many"),
    ],
)
def test_what_is_far_from_usual_is_left_out_and_what_is_unsteady_says_nothing(points, series, rate) -> None:
    assert rate_of(points, series) == (None if rate is None else pytest.approx(rate))


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(
            replace(RUNNING, progress=SavedProgress()), id="it shares a GPU, or an earlier version launched it"
        ),
        pytest.param(replace(RUNNING, definition=replace(RUNNING.definition, target=Target.ACK)), id="on a cluster"),
        pytest.param(replace(RUNNING, attempt=None), id="it is launched for the first time"),
        pytest.param(replace(RUNNING, attempt=replace(RUNNING.current_attempt, started_at=None)), id="not started"),
        pytest.param(replace(RUNNING, attempt=replace(RUNNING.current_attempt, number=3)), id="of the attempt before"),
    ],
)
def test_without_a_task_that_has_the_accelerators_for_itself_nothing_is_learned(job: Job) -> None:
    assert rate_of(STEADY, job=job) is None
