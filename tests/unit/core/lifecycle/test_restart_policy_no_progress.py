"""Attempts that gain no step: which count, from when on it is said, and when the job ends."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_definition, make_job, make_placement, make_running_attempt, make_running_job
from relaunch.core.definitions.definition import RetryRules
from relaunch.core.jobs.attempt import Attempt, IntentKind, PlacementState, Stop, StopIntent, StopKind
from relaunch.core.jobs.cost import summarize_job
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.events import CheckpointsRead
from relaunch.core.lifecycle.explanation import explain
from relaunch.core.lifecycle.restart_policy import is_to_be_judged, time_to_save
from relaunch.core.lifecycle.table import decide

MINUTE = timedelta(minutes=1)
HALF_AN_HOUR = 30 * MINUTE


def stopped(
    ran: timedelta,
    kind: StopKind = StopKind.INTERRUPTION,
    *,
    number: int = 1,
    resumed: int | None = None,
    **fields: object,
) -> Attempt:
    """Build an attempt that ran so long from NOW on, and resumed from a checkpoint of this step."""
    uri = None if resumed is None else f"s3://b/resnet/attempt-0/step-{resumed:07d}/"
    placement = make_placement(state=PlacementState.CLOSED, resume_uri=uri)
    running = make_running_attempt(number, placement=placement, stop=Stop(kind, NOW + ran))
    return replace(running, **fields)


def waiting(attempt: Attempt, **fields: object) -> Job:
    return make_job(attempt=attempt, first_started_at=NOW, **fields)


def saved(step: int, after: timedelta, *, attempt: int = 1, earlier: tuple[tuple[int, timedelta], ...] = ()):
    times = tuple((each, NOW + at) for each, at in earlier)
    return SavedCheckpoint(f"s3://b/resnet/attempt-{attempt}/step-{step:07d}/", step, attempt, NOW + after, times)


def judged(job: Job, newest: SavedCheckpoint | None = None) -> Decision:
    return decide(job, CheckpointsRead(newest), NOW + timedelta(hours=9), StackLimits())


def count(job: Job, newest: SavedCheckpoint | None = None) -> int:
    return judged(job, newest).job.progress.attempts_without_progress


def test_an_attempt_of_half_an_hour_that_saved_nothing_is_said_from_the_first_on():
    decision = judged(waiting(stopped(45 * MINUTE)))

    assert (decision.job.state, decision.job.progress.attempts_without_progress) == (JobState.WAITING, 1)
    (entry,) = decision.timeline
    assert entry.event == "no progress"
    assert entry.detail == (
        "attempt 1 ran for 45m, longer than the 30m within which one is to save, and gained no step: no checkpoint is "
        "complete; 1 in a row, after 3 the job fails"
    )
    assert decision.job.pending == ()
    said = "its last attempt gained no step; after 3 in a row the job fails"
    assert said in summarize_job(decision.job).reason
    assert explain(decision.job, NOW).advice[0].startswith(said)


def test_a_running_job_says_so_too():
    job = make_running_job(attempts_without_progress=2)

    said = "its last 2 attempts gained no step; after 3 in a row the job fails"
    assert summarize_job(job).reason == said
    assert explain(job, NOW).advice[0] == f"{said}: `relaunch logs {job.job_id}` shows why it saves nothing new"


def test_the_third_in_a_row_ends_the_job_with_that_reason():
    job = waiting(stopped(45 * MINUTE, number=7, resumed=300), attempts_without_progress=2, judged_attempt=6)

    decision = judged(job, saved(300, MINUTE, attempt=2))

    ended = decision.job
    assert (ended.state, ended.progress.attempts_without_progress) == (JobState.FAILED, 3)
    assert decision.timeline[-1].event == "no progress"
    assert ended.reason == (
        "3 attempts in a row gained no step, though each ran for longer than the 30m within which one is to save: its "
        "newest checkpoint is still that of step 300, and retry.max_attempts_without_progress is 3"
    )
    explanation = explain(ended, NOW)
    assert "gained no step" in explanation.next_step
    assert "shows why it saved nothing new" in explanation.advice[0]
    assert summarize_job(ended).reason == ended.reason


def test_a_definition_may_allow_more():
    definition = make_definition(retry=RetryRules(max_attempts_without_progress=4))
    job = waiting(stopped(45 * MINUTE), definition=definition, attempts_without_progress=2)

    assert judged(job).job.state is JobState.WAITING
    assert (
        judged(replace(job, progress=replace(job.progress, attempts_without_progress=3))).job.state is JobState.FAILED
    )


@pytest.mark.parametrize(
    "kind",
    [
        StopKind.INTERRUPTION,
        StopKind.HOST_LOST,
        StopKind.USER_ERROR,
        StopKind.OUT_OF_MEMORY,
        StopKind.MACHINE_FAULT,
        StopKind.MOVED,
    ],
)
def test_it_counts_whatever_ended_it(kind):
    assert count(waiting(stopped(31 * MINUTE, kind))) == 1


@pytest.mark.parametrize("kind", [StopKind.CANCELLED, StopKind.TIME_OUT])
def test_what_was_stopped_on_purpose_says_nothing(kind):
    decision = judged(waiting(stopped(45 * MINUTE, kind), attempts_without_progress=2))

    assert (decision.job.state, decision.job.progress.attempts_without_progress) == (JobState.WAITING, 2)
    assert decision.job.progress.judged_attempt == 1
    assert decision.timeline == ()


def test_a_short_attempt_says_nothing_and_one_that_gains_a_step_that_it_goes_on():
    row = waiting(stopped(10 * MINUTE, number=4, resumed=300), attempts_without_progress=2, judged_attempt=3)

    assert count(row, saved(300, MINUTE)) == 2
    assert count(row, saved(301, MINUTE, attempt=4)) == 0


@pytest.mark.parametrize(
    ("resumed", "newest", "expected"),
    [
        pytest.param(None, None, 1, id="nothing-saved"),
        pytest.param(None, saved(1, MINUTE, attempt=2), 0, id="the-first-step"),
        pytest.param(300, saved(300, MINUTE, attempt=1), 1, id="nothing-new"),
        pytest.param(300, saved(300, MINUTE, attempt=2), 1, id="the-same-step-again"),
        pytest.param(300, saved(301, MINUTE, attempt=2), 0, id="a-step"),
        pytest.param(300, saved(301, MINUTE, attempt=1), 0, id="a-step-that-came-late-of-the-attempt-before"),
        pytest.param(300, saved(200, MINUTE, attempt=1), 1, id="the-best-was-deleted"),
        pytest.param(200, saved(250, MINUTE, attempt=2), 0, id="beyond-what-was-left-after-the-best-was-deleted"),
        pytest.param(0, saved(0, 15 * MINUTE, attempt=2), 0, id="a-program-that-counts-no-steps-saves-again"),
        pytest.param(0, saved(0, 14 * MINUTE, attempt=2), 1, id="a-program-saves-at-its-start-and-no-more"),
        pytest.param(None, saved(0, MINUTE, attempt=2), 1, id="a-program-saves-at-its-first-start-and-no-more"),
        pytest.param(0, saved(0, MINUTE, attempt=1), 1, id="a-program-that-counts-no-steps-saves-nothing"),
    ],
)
def test_what_counts_as_a_step_gained(resumed, newest, expected):
    assert count(waiting(stopped(45 * MINUTE, number=2, resumed=resumed), judged_attempt=1), newest) == expected


def test_a_program_that_saves_step_0_at_its_start_and_nothing_more_ends():
    job = waiting(stopped(120 * MINUTE))
    for number in (1, 2, 3):
        attempt = stopped(120 * MINUTE, number=number, resumed=0 if number > 1 else None)
        job = judged(replace(job, attempt=attempt, pending=()), saved(0, MINUTE, attempt=number)).job

    assert (job.state, job.progress.attempts_without_progress) == (JobState.FAILED, 3)


@pytest.mark.parametrize(
    ("attempt", "newest", "seconds"),
    [
        pytest.param(
            stopped(60 * MINUTE), saved(9, 40 * MINUTE, earlier=((3, 20 * MINUTE), (6, 29 * MINUTE))), 1_200, id="first"
        ),
        pytest.param(
            stopped(60 * MINUTE),
            saved(9, 55 * MINUTE, earlier=((3, 10 * MINUTE), (6, 30 * MINUTE))),
            1_500,
            id="between",
        ),
        pytest.param(stopped(600 * MINUTE), saved(9, 590 * MINUTE), 21_600, id="the-last-of-a-program-that-deletes"),
        pytest.param(
            stopped(60 * MINUTE, warned_at=NOW + 58 * MINUTE),
            saved(9, 59 * MINUTE, earlier=((3, 20 * MINUTE),)),
            1_200,
            id="what-it-saved-because-it-was-told-to-says-nothing",
        ),
        pytest.param(
            stopped(60 * MINUTE, program_ended_at=NOW + 57 * MINUTE),
            saved(9, 56 * MINUTE, earlier=((3, 20 * MINUTE),)),
            1_200,
            id="nobody-noted-when-it-was-warned",
        ),
        pytest.param(
            stopped(60 * MINUTE, StopKind.USER_ERROR),
            saved(9, 60 * MINUTE, earlier=((3, 20 * MINUTE),)),
            2_400,
            id="nobody-warned-it",
        ),
        pytest.param(
            stopped(5 * MINUTE, intent=StopIntent(IntentKind.INTERRUPTION, NOW + 4 * MINUTE, "")),
            saved(9, 5 * MINUTE),
            0,
            id="told-before-it-saved",
        ),
        pytest.param(
            stopped(90 * MINUTE, intent=StopIntent(IntentKind.INTERRUPTION, NOW + 80 * MINUTE, "")),
            saved(9, 81 * MINUTE),
            4_800,
            id="told-long-before-it-saved",
        ),
        pytest.param(stopped(60 * MINUTE, number=2), saved(9, 40 * MINUTE, attempt=1), 0, id="of-another-attempt"),
    ],
)
def test_how_long_an_attempt_takes_until_it_has_saved_is_learned(attempt, newest, seconds):
    assert judged(waiting(attempt, attempts_without_progress=1), newest).job.progress.saving_seconds == seconds


def test_told_before_it_saved_it_keeps_what_is_known():
    attempt = stopped(70 * MINUTE, intent=StopIntent(IntentKind.INTERRUPTION, NOW + 69 * MINUTE, ""))
    job = waiting(attempt, attempts_without_progress=1, saving_seconds=900.0)

    assert judged(job, saved(9, 70 * MINUTE)).job.progress.saving_seconds == 900


@pytest.mark.parametrize(
    ("seconds", "time"), [(0.0, HALF_AN_HOUR), (600.0, 20 * MINUTE), (1_800.0, HALF_AN_HOUR), (7_200.0, 120 * MINUTE)]
)
def test_an_attempt_is_to_outlive_what_the_last_good_one_needed(seconds, time):
    job = waiting(stopped(time), saving_seconds=seconds)

    assert time_to_save(job) == time
    assert count(job) == 1
    assert (
        count(replace(job, attempt=stopped(time - MINUTE), progress=replace(job.progress, attempts_without_progress=1)))
        == 1
    )


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(make_job(), id="never-launched"),
        pytest.param(make_job(attempt=make_running_attempt()), id="not-stopped"),
        pytest.param(waiting(stopped(45 * MINUTE, started_at=None)), id="never-started"),
        pytest.param(
            waiting(stopped(45 * MINUTE), definition=make_definition(checkpoint_uri=None)), id="no-checkpoint"
        ),
        pytest.param(waiting(stopped(45 * MINUTE), judged_attempt=1), id="judged-before"),
        pytest.param(waiting(stopped(14 * MINUTE)), id="too-short-to-count-and-none-before"),
    ],
)
def test_of_others_nothing_is_read(job):
    assert not is_to_be_judged(job)
    assert judged(job).is_ignored


def test_a_short_attempt_is_read_if_the_one_before_gained_nothing():
    assert is_to_be_judged(waiting(stopped(MINUTE, number=2), attempts_without_progress=1, judged_attempt=1))
