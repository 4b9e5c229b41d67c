"""The life of a job to scale: its rows, spans and marks."""

from dataclasses import replace
from datetime import timedelta, timezone

import pytest

from fakes.builders import NOW, make_job
from fakes.job_histories import MINUTE, TrainingStory, after, checkpoint, entry, make_history, ran
from relaunch.core.jobs.attempt import Handover, IntentKind, StopIntent, StopKind
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.core.jobs.reported import SeriesPoint
from relaunch.core.jobs.state import JobState, NotedProgress, Waiting, WaitReason
from relaunch.core.jobs.training import TrainingProgress, measure_training
from relaunch_cli.dashboard.drawings.drawing import MarkKind, RowKind, SpanKind
from relaunch_cli.dashboard.drawings.timeline import MOST_ROWS, make_timeline
from relaunch_cli.job_checkpoints import load_checkpoints
from relaunch_cli.job_starts import load_starts

W = JobState.WAITING
L = JobState.LAUNCHING
R = JobState.RUNNING
S = JobState.STOPPING


def draw(history, now=None, training=None, saved=None):
    return make_timeline(history, (), (), training or TrainingProgress(), now or after(600), saved)


def spans(row, kind=None):
    """Return the spans of a row as (kind, from, until) in minutes after NOW."""
    return [
        (each.kind.value, (each.began_at - NOW) / MINUTE, each.ended_at and (each.ended_at - NOW) / MINUTE)
        for each in row.spans
        if kind in (None, each.kind)
    ]


def marks(row):
    return [(each.kind.value, (each.at - NOW) / MINUTE) for each in row.marks]


def load(story):
    history = story.jobs.load_history(story.job_id)
    now = story.now
    starts = load_starts(history, story.deps.machines, now, is_full=True)
    ids = {each.placement.machine_id for each in history.attempts}
    saved = load_checkpoints(history.job, story.checkpoints).newest
    training = measure_training(history.job, saved, (), now)
    return make_timeline(history, starts, [story.load(each) for each in sorted(ids)], training, now, saved)


@pytest.fixture(scope="module")
def interrupted():
    """Return the timeline of a job that saved when it was warned, lost its next machine, and finished on the third."""
    story = TrainingStory()
    story.boot()
    story.train(40)
    story.warn(story.attempt(story.job_id).instance_id)
    story.settle_all()
    story.clock.advance(50)
    story.save()
    story.end(story.job_id, 143, execution_stopped_at=story.clock.advance(10), stopped_at=story.now)
    story.settle_all()
    story.boot()
    story.train(29)
    story.lose_host(story.job_id, execution_stopped_at=story.now)
    story.reconcile(6 * MINUTE)
    story.boot()
    story.train(20)
    story.end(story.job_id, execution_stopped_at=story.now)
    story.reconcile(2 * MINUTE)
    return load(story)


def test_a_real_job_shows_how_it_booted_trained_and_was_interrupted(interrupted):
    _, first, _, third, _ = interrupted.rows

    # Its last machine stays until it is clear how its task ended.
    assert [each.name for each in interrupted.rows] == ["Job", "Attempt 1", "Attempt 2", "Attempt 3", "Machine"]
    assert [each.kind.value for each in first.spans] == ["booting"] * 5 + ["pulling", "booting", "training", "saving"]
    assert first.time_of(SpanKind.PULLING, NOW) == timedelta(seconds=80)
    assert first.time_of(SpanKind.TRAINING, NOW) == 40 * MINUTE
    assert first.time_of(SpanKind.SAVING, NOW) == MINUTE
    assert [each.kind for each in first.marks] == [MarkKind.CHECKPOINT, MarkKind.WARNING, MarkKind.STOP]
    assert first.outcome == "interrupted after 40m00s of training"
    assert [each.kind for each in third.marks] == [MarkKind.CHECKPOINT, MarkKind.SUCCESS]
    assert interrupted.is_over
    assert interrupted.summary.startswith("Succeeded after ")
    assert "trained 1h29m in 3 attempts" in interrupted.summary
    assert {each.name: each.text for each in interrupted.totals}["training"] == "1h29m"


def test_a_real_job_shows_what_it_lost_with_its_machine(interrupted):
    job, first, second, *_ = interrupted.rows

    (lost,) = (each for each in second.spans if each.kind is SpanKind.LOST)

    assert lost.duration(NOW) == 9 * MINUTE
    assert lost.ended_at == second.marks[-1].at
    assert lost.title == "lost work: attempt 3 went on from step 600"
    assert second.outcome == "machine lost after 29m00s of training; 9m00s of work lost"
    assert first.time_of(SpanKind.LOST, NOW) == timedelta(0)
    assert job.time_of(SpanKind.LOST, NOW) == 9 * MINUTE
    assert "lost 9m00s of work, 2 interruptions" in interrupted.summary


def test_what_a_job_waited_for_is_in_its_row():
    timeline = (
        entry(0, W, "accepted"),
        entry(0, W, "waiting for image", detail="trainer:5e07"),
        entry(10, W, "image arrived"),
        entry(11, W, "waiting for capacity", detail="all failed"),
        entry(12, W, "waiting for capacity"),
        entry(20, W, "machine claimed"),
        entry(25, L, "launching", 1),
        entry(26, R, "running", 1),
        entry(40, S, "interruption warning", 1),
        entry(41, W, "stopped: interruption", 1),
        entry(42, W, "waiting for machine limit", 1),
    )
    job = make_job(waiting=Waiting(WaitReason.MACHINE_LIMIT, after(42), ""))

    row = draw(make_history([ran(1, 25, 41)], timeline, job), after(60)).rows[0]

    assert [(each.label, (each.began_at - NOW) / MINUTE) for each in row.spans] == [
        ("waits for its image", 0),
        ("waits for its launch", 10),
        ("waits for capacity", 11),
        ("its machine starts", 20),
        ("its task starts", 25),
        ("training", 26),
        ("stopping", 40),
        ("waits for its launch", 41),
        ("waits for room for a machine", 42),
    ]
    assert row.spans[2].title == "waits for capacity: all failed"
    assert row.spans[-1].ended_at is None
    assert row.outcome == "waits for room for a machine"


@pytest.mark.parametrize("reason", WaitReason)
def test_every_wait_has_its_words(reason):
    timeline = (entry(0, W, f"waiting for {reason}"),)
    history = make_history((), timeline, make_job(waiting=Waiting(reason, NOW, "")))

    row = draw(history).rows[0]

    assert row.outcome in {row.spans[0].label, "waits for its machine"}


def test_a_warning_without_a_stop_request_begins_the_save_and_a_handover_does_not():
    saving = draw(make_history([ran(1, 0, 30, warned_at=after(28))])).rows[1]
    handover = Handover(after(20), "spot interruption warning", after(29))
    trains_on = ran(1, 0, 30, warned_at=after(20), handover=handover)
    asked = replace(trains_on, intent=StopIntent(IntentKind.INTERRUPTION, after(29), "last moment"))

    assert spans(saving, SpanKind.SAVING) == [("saving", 28, 30)]
    assert spans(draw(make_history([trains_on])).rows[1], SpanKind.SAVING) == []
    assert spans(draw(make_history([asked])).rows[1]) == [("booting", 0, 1), ("training", 1, 29), ("saving", 29, 30)]


def test_the_time_from_the_end_of_a_program_to_that_of_its_task_is_no_training():
    stopped = draw(make_history([ran(1, 0, 30, program_ended_at=after(25))])).rows[1]
    soon = draw(make_history([ran(1, 0, 30, program_ended_at=after(29.9))])).rows[1]
    held = draw(make_history([ran(1, 0, None, program_ended_at=after(25))], state=S)).rows[1]

    assert spans(stopped) == [("booting", 0, 1), ("training", 1, 25), ("saving", 25, 30)]
    assert stopped.outcome == "machine lost after 24m00s of training"
    assert spans(soon, SpanKind.SAVING) == []
    assert spans(held)[1:] == [("training", 1, 25), ("saving", 25, None)]
    assert held.outcome == "stopping after 24m00s of training"


@pytest.mark.parametrize(
    ("kind", "mark", "outcome"),
    [
        (StopKind.SUCCESS, MarkKind.SUCCESS, "finished after 29m00s of training"),
        (StopKind.MOVED, MarkKind.MOVE, "moved to spot after 29m00s of training"),
        (StopKind.CANCELLED, MarkKind.CANCELLATION, "cancelled after 29m00s of training"),
        (StopKind.OUT_OF_MEMORY, MarkKind.FAILURE, "failed (out-of-memory) after 29m00s of training"),
        (StopKind.TIME_OUT, MarkKind.STOP, "out of time after 29m00s of training"),
    ],
)
def test_the_end_of_an_attempt_is_a_mark_with_its_reason(kind, mark, outcome):
    row = draw(make_history([ran(1, 0, 30, kind)])).rows[1]

    assert marks(row) == [(mark.value, 30)]
    assert row.marks[0].is_end
    assert row.outcome == outcome


def test_a_request_to_stop_what_had_ended_is_no_save():
    late = StopIntent(IntentKind.CANCEL, after(31), "asked by ada")

    assert spans(draw(make_history([ran(1, 0, 30, intent=late)])).rows[1]) == [("booting", 0, 1), ("training", 1, 30)]


def test_a_task_that_is_stopped_before_it_ran_saves_nothing():
    timeline = (entry(0, L, "launching", 1), entry(5, S, "start deadline", 1), entry(6, W, "stopped: no-capacity", 1))

    row = draw(make_history((), timeline), after(10)).rows[0]

    assert [(each.kind, each.label) for each in row.spans] == [
        (SpanKind.FAILED_START, "its task starts"),
        (SpanKind.FAILED_START, "its task is withdrawn"),
        (SpanKind.WAITING, "waits for its launch"),
    ]


def test_notices_and_moves_are_marks():
    move = ran(1, 0, None, handover=Handover(after(20), "spot is cheaper", is_move=True))
    rebalance = ran(1, 0, None, handover=Handover(after(20), "rebalance recommendation"))
    warned = ran(1, 0, None, warned_at=after(21), handover=Handover(after(20), "spot interruption warning"))

    found = [draw(make_history([each], state=R)).rows[1].marks for each in (move, rebalance, warned)]

    assert [[(each.kind.value, (each.at - NOW) / MINUTE, each.title) for each in some] for some in found] == [
        [("move", 20, "a machine on spot was requested: spot is cheaper")],
        [("warning", 20, "notice: rebalance recommendation")],
        [("warning", 21, "interruption notice: spot interruption warning")],
    ]


def test_a_job_that_was_cancelled_while_it_waited_has_the_mark_in_its_row():
    ended = make_job(state=JobState.CANCELLED, ended_at=after(5), reason="asked by ada", waiting=None)
    history = make_history((), (entry(0, W, "accepted"), entry(5, JobState.CANCELLED, "cancelled")), ended)

    timeline = draw(history)

    assert timeline.ended_at == after(5)
    assert spans(timeline.rows[0]) == [("waiting", 0, 5)]
    assert [(each.kind, each.title) for each in timeline.rows[0].marks] == [
        (MarkKind.CANCELLATION, "cancelled: asked by ada")
    ]
    assert timeline.summary == "Cancelled after 5m00s: did not train yet, waited 5m00s"


def test_a_job_of_no_time_and_one_whose_clocks_differ_are_drawn_within_the_edges():
    early = ran(1, -9, 30)
    backwards = (entry(0, W, "accepted"), entry(5, L, "launching", 1), entry(3, R, "running", 1))

    nothing = draw(make_history(), NOW)
    timeline = draw(make_history([early], backwards), after(40))

    assert spans(nothing.rows[0]) == [("waiting", 0, None)]
    assert spans(timeline.rows[0]) == [("waiting", 0, 5), ("training", 5, None)]
    training = next(each for each in timeline.rows[1].spans if each.kind is SpanKind.TRAINING)
    assert (training.began_at, training.x, training.width) == (after(-8), 0.0, 750.0)


def test_times_are_in_utc_wherever_they_come_from():
    elsewhere = after(1).astimezone(timezone(timedelta(hours=2)))

    row = draw(make_history([ran(1, 0, 30, started_at=elsewhere, warned_at=elsewhere)])).rows[1]

    assert all(each.began_at.utcoffset() == timedelta(0) for each in row.events)


def test_a_checkpoint_is_marked_at_its_step_and_no_other_step_of_the_series():
    attempts = [ran(1, 0, 30), ran(2, 40, None, resume_uri=checkpoint(20))]
    series = tuple(SeriesPoint(step, after(step).timestamp(), 1.0 / step) for step in (10, 20, 45, 50, 55))
    saved = SavedCheckpoint(checkpoint(55, 2), 55, 2, after(56), earlier=((50, after(51)),))

    _, first, second = draw(make_history(attempts, state=R), training=TrainingProgress(series=series), saved=saved).rows

    assert [(each.title, (each.at - NOW) / MINUTE) for each in first.marks[:1]] == [
        ("checkpoint of step 20, loss 0.05", 20)
    ]
    assert [(each.title, (each.at - NOW) / MINUTE) for each in second.marks] == [
        ("checkpoint of step 50, loss 0.02", 50),
        ("checkpoint of step 55, loss 0.0181818", 55),
    ]


def test_a_step_that_a_later_attempt_did_again_says_nothing_of_the_checkpoint_of_an_earlier_one():
    attempts = [ran(1, 0, 30), ran(2, 40, None, resume_uri=checkpoint(20))]
    again = TrainingProgress(series=(SeriesPoint(20, after(50).timestamp()),))

    rows = draw(make_history(attempts, state=R), training=again).rows

    assert [each.kind for row in rows for each in row.marks] == [MarkKind.STOP]


def test_without_the_newest_checkpoint_the_one_that_was_noted_with_the_job_is_marked():
    history = make_history([ran(1, 0, None)], state=R, noted=NotedProgress(70, after(20), 1))

    assert [each.title for each in draw(history).rows[1].marks] == ["checkpoint of step 70"]


def test_of_many_checkpoints_sixty_are_marked_the_newest_among_them():
    earlier = tuple((step, after(1 + step / 10)) for step in range(1, 1000))
    saved = SavedCheckpoint(checkpoint(1000), 1000, 1, after(101), earlier=earlier)

    found = draw(make_history([ran(1, 0, None)], state=R), saved=saved).rows[1].marks

    assert len(found) == 60
    assert found[-1].title == "checkpoint of step 1,000"


def test_three_hundred_attempts_are_at_most_sixty_rows_of_which_one_has_the_oldest():
    attempts = [ran(number, number * 100, number * 100 + 80) for number in range(1, 301)]

    timeline = draw(make_history(attempts, state=R), after(30_500))

    _, rest, *others = timeline.rows
    assert len(timeline.rows) == MOST_ROWS
    assert (rest.kind, rest.name, rest.place) == (RowKind.REST, "Attempts 1 to 242", "242 rows in one")
    assert rest.outcome == "242 stopped"
    assert [each.name for each in others] == [f"Attempt {number}" for number in range(243, 301)]
    assert rest.time_of(SpanKind.TRAINING, after(0)) == 242 * 79 * MINUTE
    assert rest.spans[1].title.startswith("Attempt 1: training")
    assert (len(rest.events), rest.unlisted) == (150, 242 * 3 - 150)
    assert "trained 16d11h in 300 attempts" in timeline.summary
