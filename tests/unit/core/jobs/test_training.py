"""How far a training is, how fast, when it is done, and what is at risk."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_definition, make_job, make_placement, make_running_attempt, make_running_job
from relaunch.core.jobs.attempt import PlacementState, Stop, StopKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import LONGEST_LEFT, SavedCheckpoint, work_at_risk
from relaunch.core.jobs.reported import Reported, SeriesPoint
from relaunch.core.jobs.reported_lines import ReportedStep
from relaunch.core.jobs.state import JobState, NotedProgress
from relaunch.core.jobs.training import AtRisk, TrainingProgress, measure_training, note_progress

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
STEPS = make_definition(total_steps=1_000)


def running(number: int = 1, **fields) -> Job:
    """Build a job whose attempt runs since NOW."""
    placed = make_placement(state=PlacementState.PLACED, price_usd_per_hour=0.60)
    current = make_running_attempt(number, placement=placed)
    return make_running_job(**{"definition": STEPS, "attempt": current, **fields})


def saved(*steps_and_minutes: tuple[int, float], attempt: int = 1, **said) -> SavedCheckpoint:
    """Build the newest of these checkpoints, with those before it."""
    *earlier, (step, at) = [(step, NOW + minutes * MINUTE) for step, minutes in steps_and_minutes]
    return SavedCheckpoint("s3://b/j/", step, attempt, at, tuple(earlier), Reported(**said))


def line(step: int, minutes: float, **fields) -> ReportedStep:
    return ReportedStep(step, NOW + minutes * MINUTE, **fields)


def measured(newest=None, lines=(), job: Job | None = None, minutes: float = 60) -> TrainingProgress:
    return measure_training(job or running(), newest, lines, NOW + minutes * MINUTE)


def test_before_anything_runs_nothing_is_known():
    assert measured(job=make_job()) == TrainingProgress()


def test_of_what_has_saved_nothing_the_whole_running_time_is_at_risk():
    assert measured() == TrainingProgress(at_risk=AtRisk(HOUR, 0.60))


def test_checkpoints_say_how_far_and_how_fast_without_the_time_to_load():
    found = measured(saved((100, 40), (200, 50), loss=0.5, metrics={"lr": 0.1}))

    assert (found.step, found.at, found.total_steps, found.loss) == (200, NOW + 50 * MINUTE, 1_000, 0.5)
    assert found.metrics == {"lr": 0.1}
    assert found.steps_per_second == pytest.approx(100 / 600)
    assert found.rests_on == "the newest 2 checkpoints"
    assert found.finishes_at == NOW + (50 + 80) * MINUTE
    assert found.checkpoint_age == 10 * MINUTE
    assert found.at_risk == AtRisk(10 * MINUTE, pytest.approx(0.10))
    assert [(each.step, each.at) for each in found.series] == [
        (100, (NOW + 40 * MINUTE).timestamp()),
        (200, (NOW + 50 * MINUTE).timestamp()),
    ]


def test_only_the_newest_checkpoints_say_how_fast_it_is():
    found = measured(saved(*((step, step / 2) for step in range(1, 50)), *((49 + n, 25 + 2 * n) for n in range(1, 5))))

    assert found.steps_per_second == pytest.approx(4 / (33 * 60 - 49 * 30), rel=0.01)
    assert found.rests_on == "the newest 5 checkpoints"


def test_the_series_says_it_more_exactly_and_the_steps_of_other_attempts_are_left_out():
    series = [SeriesPoint(n, (NOW - (100 - n) * MINUTE).timestamp()) for n in range(30)]
    series += [SeriesPoint(100 + n, (NOW + (30 + n) * MINUTE).timestamp()) for n in range(10)]
    newest = saved((100, 20), (109, 39), series=tuple(series))

    found = measured(newest)

    assert found.steps_per_second == pytest.approx(1 / 60)
    assert found.rests_on == "the newest 10 steps that it saved"
    assert found.series == tuple(series)


def test_the_lines_of_the_log_are_the_newest_and_go_beyond_the_checkpoint():
    lines = [line(200 + 10 * n, 50 + n, loss=0.25, total_steps=999) for n in range(1, 8)]

    found = measured(saved((100, 40), (200, 50), loss=0.5), lines)

    assert (found.step, found.loss, found.total_steps) == (270, 0.25, 1_000)
    assert found.rests_on == "the newest 7 lines of its log"
    assert found.finishes_at == NOW + (57 + 73) * MINUTE
    assert [each.step for each in found.series] == [100, 200, 210, 220, 230, 240, 250, 260, 270]
    # A training that saves the same steps again after an interruption has printed older ones than are saved.
    behind = measured(saved((100, 40), (500, 50)), lines)
    assert (behind.step, len(behind.series)) == (500, 2)


def test_lines_alone_say_it_too():
    found = measured(
        None, [line(10, 10, total_steps=40), line(20, 20, total_steps=40)], running(definition=make_definition())
    )

    assert (found.step, found.total_steps, found.finishes_at) == (20, 40, NOW + 40 * MINUTE)
    assert found.checkpoint_age is None


@pytest.mark.parametrize("points", [[(100, 40)], [(100, 40), (100, 50)], [(100, 40), (200, 40)]])
def test_from_no_two_steps_at_two_times_no_rate_follows(points):
    found = measured(saved(*points))

    assert (found.steps_per_second, found.rests_on, found.finishes_at) == (None, "", None)


def test_of_a_new_attempt_the_speed_of_the_one_before_is_expected():
    newest = saved((100, -120), (200, -110))

    found = measured(newest, job=running(2), minutes=5)

    assert found.rests_on == "the newest 2 checkpoints of attempt 1"
    assert found.finishes_at == NOW + 80 * MINUTE
    assert found.at_risk == AtRisk(5 * MINUTE, pytest.approx(0.05))
    assert measured(newest, job=running(2), minutes=-1).at_risk == AtRisk(0 * MINUTE, 0.0)


def test_a_task_that_has_not_started_or_has_stopped_is_done_at_no_time_and_risks_nothing():
    newest = saved((100, 40), (200, 50))
    stopped = make_running_attempt(stop=Stop(StopKind.INTERRUPTION, NOW + HOUR))
    for attempt in (make_running_attempt(started_at=None), stopped):
        found = measured(newest, job=running(attempt=attempt))
        assert (found.step, found.finishes_at, found.at_risk) == (200, None, None)
    ended = measured(newest, job=running(attempt=stopped, state=JobState.SUCCEEDED, ended_at=NOW + HOUR))
    assert ended.checkpoint_age is None


def test_what_nobody_knows_is_not_guessed():
    free = make_running_attempt(placement=make_placement(state=PlacementState.PLACED, price_usd_per_hour=0.0))
    slow = measured(
        saved((1, 0), (2, 10**6), total_steps=10**18), job=running(definition=make_definition()), minutes=10**6
    )

    assert measured(job=running(attempt=free)).at_risk == AtRisk(HOUR, None)
    assert measured(saved((100, 40), (200, 50)), job=running(definition=make_definition())).finishes_at is None
    assert slow.finishes_at == NOW + 10**6 * MINUTE + LONGEST_LEFT


def noted(newest: SavedCheckpoint, minutes: float, job: Job | None = None, before: NotedProgress | None = None):
    return note_progress(replace(job or running(), noted=before), newest, NOW + minutes * MINUTE)


def test_a_loss_costs_the_work_since_the_checkpoint_of_the_task_that_was_noted():
    job = running(2, noted=NotedProgress(200, NOW + 50 * MINUTE, 2))
    stopped = replace(job.current_attempt, stop=Stop(StopKind.INTERRUPTION, NOW + HOUR))

    assert work_at_risk(job, NOW + HOUR) == 10 * MINUTE
    assert work_at_risk(replace(job, noted=NotedProgress(200, NOW, 1)), NOW + HOUR) == HOUR, "since its start"
    assert work_at_risk(replace(job, noted=None), NOW + HOUR) == HOUR
    assert work_at_risk(replace(job, attempt=stopped), NOW + HOUR) is None
    assert work_at_risk(make_job(), NOW) is None


def test_what_lists_show_of_a_job_is_noted():
    newest = saved((100, 40), (200, 50), loss=0.5, save_seconds=3.5)

    assert noted(newest, 60) == NotedProgress(
        step=200,
        at=NOW + 50 * MINUTE,
        attempt=1,
        total_steps=1_000,
        loss=0.5,
        finishes_at=NOW + 130 * MINUTE,
        interval_seconds=2_400.0,
        save_seconds=3.5,
        gaps_seconds=(2_400.0, 600.0),
        steps_per_second=pytest.approx(1 / 6),
    )


def every(minutes: float, *more: tuple[int, float], since: float = 0, attempt: int = 1) -> SavedCheckpoint:
    """Build the newest of four checkpoints that were saved so many minutes apart, and of more."""
    steps = [(100 * number, since + minutes * number) for number in range(1, 5)]
    return saved(*steps, *more, attempt=attempt)


def test_a_training_that_saves_nothing_for_three_times_as_long_as_usual_has_stalled_until_it_saves_again():
    newest = every(20)

    in_time = noted(newest, 140)
    late = noted(newest, 141, before=in_time)
    later = noted(newest, 600, before=late)
    again = noted(every(20, (500, 620)), 625, before=later)

    assert [each.stalled_since for each in (in_time, late, later, again)] == [
        None,
        NOW + 80 * MINUTE,
        NOW + 80 * MINUTE,
        None,
    ]
    # The time that it hung is no usual one.
    assert again.interval_seconds == 20 * 60


def test_a_new_attempt_is_not_one_that_saves_again():
    newest = every(20)
    late = noted(newest, 141)
    relaunched = running(2, attempt=make_running_attempt(2, started_at=NOW + 150 * MINUTE))

    assert noted(newest, 151, relaunched, before=late).stalled_since == NOW + 80 * MINUTE


def test_seconds_between_checkpoints_allow_half_an_hour():
    newest = every(0.5)

    assert [noted(newest, 2 + minutes).stalled_since for minutes in (30, 31)] == [None, NOW + 2 * MINUTE]


def test_until_four_times_are_known_three_hours_are_allowed():
    twice = saved((1, 1), (2, 2))
    seldom = saved((1, 1), (2, 2), (100, 122))

    assert [noted(twice, 2 + minutes).stalled_since for minutes in (180, 181)] == [None, NOW + 2 * MINUTE]
    assert noted(seldom, 482).stalled_since is None
    assert noted(seldom, 483).stalled_since == NOW + 122 * MINUTE


def test_a_new_attempt_has_the_time_of_a_start_more():
    before = noted(every(20, since=-100), -20, running(attempt=make_running_attempt(started_at=NOW - 100 * MINUTE)))
    newest = every(20, since=-100)

    assert [noted(newest, minutes, running(2), before).stalled_since for minutes in (68, 69)] == [
        None,
        NOW - 20 * MINUTE,
    ]


def test_steps_below_a_damaged_checkpoint_that_are_trained_again_are_saved_anew():
    before = noted(every(20), 100)
    relaunched = running(2, attempt=make_running_attempt(2, started_at=NOW + 100 * MINUTE))
    found_damaged = replace(every(20), retrained=((250, NOW + 130 * MINUTE), (300, NOW + 150 * MINUTE)))

    assert noted(found_damaged, 218, relaunched, before).stalled_since is None
    hanging = noted(found_damaged, 219, relaunched, before)
    assert (hanging.step, hanging.at, hanging.stalled_since) == (400, NOW + 80 * MINUTE, NOW + 150 * MINUTE)
    assert noted(found_damaged, 230, relaunched, hanging).stalled_since == NOW + 150 * MINUTE
    further = replace(found_damaged, retrained=(*found_damaged.retrained, (350, NOW + 235 * MINUTE)))
    assert noted(further, 240, relaunched, hanging).stalled_since is None


def test_a_step_below_one_that_is_gone_is_progress_if_the_attempt_gained_it():
    stalled = replace(noted(every(20), 150), stalled_since=NOW + 80 * MINUTE)
    placed = make_placement(state=PlacementState.PLACED, resume_uri="s3://b/j/attempt-1/step-0000200/")
    current = make_running_attempt(2, placement=placed, started_at=NOW + 150 * MINUTE)
    relaunched = running(2, attempt=current)

    of_its_start = saved((200, 151), attempt=2)
    gained = saved((200, 151), (250, 170), attempt=2)

    assert noted(of_its_start, 171, relaunched, stalled).stalled_since == NOW + 80 * MINUTE
    assert noted(gained, 171, relaunched, stalled).stalled_since is None


def test_a_step_that_is_saved_over_and_over_is_no_progress():
    before = noted(every(20), 85)
    again = noted(saved((100, 20), (200, 40), (300, 60), (400, 139)), 140, before=before)

    assert (again.at, again.stalled_since) == (NOW + 80 * MINUTE, None)
    assert noted(every(20), 141, before=again).stalled_since == NOW + 80 * MINUTE


@pytest.mark.parametrize(
    ("job", "newest"),
    [
        pytest.param(running(), saved((0, 1)), id="what it saved at its start says nothing of an interval"),
        pytest.param(running(), saved((900, 1), (1_000, 2)), id="all steps are done"),
        pytest.param(running(state=JobState.STOPPING), saved((100, 1), (200, 2)), id="it is to stop"),
        pytest.param(running(attempt=make_running_attempt(started_at=None)), saved((1, 1), (2, 2)), id="not started"),
        pytest.param(make_job(state=JobState.RUNNING), saved((1, 1), (2, 2)), id="nothing was launched"),
    ],
)
def test_what_is_not_known_to_be_late_has_not_stalled(job, newest):
    assert noted(newest, 6_000, job).stalled_since is None
