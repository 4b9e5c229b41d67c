"""The loss of a training over its steps."""

import math

import pytest

from fakes.builders import NOW, make_running_job
from fakes.job_histories import after, checkpoint, make_history, ran, render
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.core.jobs.reported import SeriesPoint
from relaunch.core.jobs.training import TrainingProgress
from relaunch_cli.dashboard.drawings.known_checkpoints import KnownCheckpoint
from relaunch_cli.dashboard.drawings.loss_curve import draw_losses, make_loss_curve

AT = NOW.timestamp()


def series(*losses: float | None, every: int = 10) -> tuple[SeriesPoint, ...]:
    return tuple(SeriesPoint(index * every, AT + index * 60, loss) for index, loss in enumerate(losses))


def labels(ticks) -> list[str]:
    return [each.label for each in ticks]


def test_the_curve_is_to_scale_and_reaches_to_the_last_step_of_the_training():
    curve = draw_losses(series(2.0, 1.0), (), 40)

    assert [(each.step, each.x) for each in curve.points] == [(0, 0.0), (10, 250.0)]
    assert [each.y for each in curve.points] == [37.0, 963.0]
    assert curve.line == "0,37 250,963"
    assert labels(curve.step_ticks) == ["0", "10", "20", "30", "40"]
    assert labels(curve.loss_ticks) == ["1", "1.2", "1.4", "1.6", "1.8", "2"]
    assert curve.summary == "Loss 2 at first, 1 after step 10 of 40."


@pytest.mark.parametrize(
    ("losses", "words"),
    [((), "none of its steps"), ((None, None), "none of its steps"), ((1.0, None), "one step of it")],
)
def test_fewer_than_two_losses_are_a_sentence(losses, words):
    curve = draw_losses(series(*losses), (), 40)

    assert curve.points == ()
    assert curve.summary == f"No curve: the training has said the loss of {words}; two are needed."
    assert "<svg" not in render("loss_curve(c)", c=curve)
    assert curve.summary in render("loss_curve(c)", c=curve)


def test_steps_without_a_loss_and_losses_that_are_no_numbers_are_left_out():
    curve = draw_losses(series(2.0, None, math.nan, math.inf, -math.inf, 1.0), (), None)

    assert [(each.step, each.loss) for each in curve.points] == [(0, 2.0), (50, 1.0)]
    assert "nan" not in curve.line


def test_losses_of_several_orders_are_on_a_logarithmic_axis_which_says_so():
    curve = draw_losses(series(100.0, 1.0, 0.01), (), None)

    assert curve.is_logarithmic
    assert curve.points[1].y == 500.0
    assert "the axis of the loss is logarithmic" in curve.summary
    assert "logarithmic axis" in render("loss_curve(c)", c=curve)
    assert not draw_losses(series(100.0, 2.0), (), None).is_logarithmic
    assert not draw_losses(series(100.0, 0.0), (), None).is_logarithmic


def test_a_training_that_is_further_than_it_says_ends_at_its_newest_step():
    assert [each.x for each in draw_losses(series(2.0, 1.5, 1.0), (), 15).points] == [0.0, 500.0, 1000.0]


def test_a_training_that_began_with_a_late_step_begins_there():
    late = tuple(SeriesPoint(step, AT, 1.0 / step) for step in (9_000, 9_500, 10_000))

    assert [each.x for each in draw_losses(late, (), 10_000).points] == [0.0, 500.0, 1000.0]


def test_checkpoints_are_dots_on_the_curve_between_its_points_too_and_the_newest_of_many_always():
    known = [KnownCheckpoint(step, 1) for step in (5, 10, 999)]

    dots = draw_losses(series(2.0, 1.0), known, 20).checkpoints
    many = draw_losses(
        series(*[2.0 - index / 1000 for index in range(1000)]),
        [KnownCheckpoint(step, 1) for step in range(9_001)],
        None,
    ).checkpoints

    assert [(each.step, each.x, each.y) for each in dots] == [(5, 250.0, 500.0), (10, 500.0, 963.0)]
    assert [each.title for each in dots] == ["checkpoint of step 5", "checkpoint of step 10, loss 1"]
    assert len(many) == 60
    assert (many[0].step, many[-1].step) == (0, 9_000)


def test_what_is_known_of_the_checkpoints_of_a_job_is_drawn_and_no_other_step_of_its_series():
    attempts = [ran(1, 0, 30), ran(2, 40, None, resume_uri=checkpoint(10))]
    saved = SavedCheckpoint(checkpoint(30, 2), 30, 2, after(50))
    training = TrainingProgress(series=series(2.0, 1.5, 1.2, 1.0), total_steps=100)
    history = make_history(attempts, job=make_running_job(attempt=attempts[-1]))

    assert [each.step for each in make_loss_curve(history, training).checkpoints] == [10]
    assert [each.step for each in make_loss_curve(history, training, saved).checkpoints] == [10, 30]


def test_the_table_has_the_steps_and_checkpoints_and_says_if_there_are_more():
    few = render("loss_curve(c)", c=draw_losses(series(2.0, 1.0), [KnownCheckpoint(10, 1)], 20))
    many = render("loss_curve(c)", c=draw_losses(series(*[1.0 + index for index in range(500)]), (), None))

    assert few.count("<tr>") == 1 + 3
    assert '<time datetime="2026-03-14T09:26:53Z">2026-03-14 09:26:53</time>' in few
    assert "some of many" not in few
    assert many.count("<tr>") == 1 + 60
    assert "some of many" in many


def test_a_thousand_points_are_a_page_of_moderate_size():
    curve = draw_losses(series(*[1.0 + index for index in range(1000)]), (), 20_000)

    assert len(render("loss_curve(c)", c=curve)) < 40_000
