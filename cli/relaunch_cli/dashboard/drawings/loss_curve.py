"""The loss of one training over its steps, with its checkpoints."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from relaunch.core.jobs.reported import thin
from relaunch_cli.dashboard.drawings.known_checkpoints import (
    MOST_DRAWN,
    KnownCheckpoint,
    find_checkpoints,
    finite,
    point_time,
)
from relaunch_cli.dashboard.drawings.scale import WIDTH, NumberScale, Tick, format_number, scale_of

if TYPE_CHECKING:
    from relaunch.core.jobs.progress import SavedCheckpoint
    from relaunch.core.jobs.reported import SeriesPoint
    from relaunch.core.jobs.training import TrainingProgress
    from relaunch.ports import JobHistory

LOGARITHMIC_ABOVE = 50.0
"""How many times the lowest loss the highest one is where the axis is logarithmic."""
_LEAST_POINTS = 2
_MOST_LISTED = 60


@dataclass(frozen=True, slots=True)
class LossPoint:
    """The loss after a step, and where that is in the drawing, in permille from its left and its top."""

    step: int
    loss: float | None
    at: datetime | None
    x: float
    y: float
    is_checkpoint: bool = False

    @property
    def title(self) -> str:
        """Return what it is in words."""
        what = "checkpoint of step" if self.is_checkpoint else "step"
        loss = f", loss {self.loss:.6g}" if self.loss is not None else ""
        return f"{what} {self.step:,}{loss}"


@dataclass(frozen=True, slots=True)
class LossCurve:
    """The curve; without points there is none, and the summary says why."""

    summary: str
    points: tuple[LossPoint, ...] = ()
    checkpoints: tuple[LossPoint, ...] = ()
    step_ticks: tuple[Tick, ...] = ()
    loss_ticks: tuple[Tick, ...] = ()
    is_logarithmic: bool = False
    total_steps: int | None = None

    @property
    def line(self) -> str:
        """Return the points as a polyline has them."""
        return " ".join(f"{each.x:g},{each.y:g}" for each in self.points)

    @property
    def listed(self) -> tuple[LossPoint, ...]:
        """Return the points and checkpoints of the table, evenly spread where there are many."""
        points = thin(self.points, _MOST_LISTED)
        return tuple(sorted((*points, *self.checkpoints), key=lambda each: (each.step, each.is_checkpoint)))


def make_loss_curve(
    history: "JobHistory", training: "TrainingProgress", saved: "SavedCheckpoint | None" = None
) -> LossCurve:
    """Return the curve of what a training says about itself; `saved` is its newest checkpoint, as far as it is known.

    Steps without a loss, or with one that is no number, are left out.
    """
    known = find_checkpoints(history.job, history.attempts, training.series, saved)
    return draw_losses(training.series, known, training.total_steps)


def draw_losses(
    series: "Sequence[SeriesPoint]", checkpoints: Sequence[KnownCheckpoint], total_steps: int | None
) -> LossCurve:
    """Return the curve of these steps."""
    by_step = {each.step: (loss, point_time(each)) for each in series if (loss := finite(each.loss)) is not None}
    if len(by_step) < _LEAST_POINTS:
        one = "one step of it" if by_step else "none of its steps"
        return LossCurve(f"No curve: the training has said the loss of {one}; two are needed.")
    steps = sorted(by_step)
    last = max(total_steps or 0, steps[-1])
    across = NumberScale(0.0 if steps[0] <= last / 2 else float(steps[0]), float(last))
    up = scale_of([loss for loss, _ in by_step.values()], logarithmic_above=LOGARITHMIC_ABOVE)
    points = tuple(
        LossPoint(step, loss, at, across.position(step), _from_top(up, loss))
        for step, (loss, at) in ((each, by_step[each]) for each in steps)
    )
    ends = (by_step[steps[0]][0], by_step[steps[-1]][0])
    return LossCurve(
        _summarize(ends, steps[-1], total_steps, is_logarithmic=up.is_logarithmic),
        points,
        _dots(checkpoints, points),
        step_ticks=across.ticks,
        loss_ticks=tuple(Tick(round(WIDTH - each.position, 1), each.label) for each in up.ticks),
        is_logarithmic=up.is_logarithmic,
        total_steps=total_steps,
    )


def _from_top(up: NumberScale, loss: float) -> float:
    return round(WIDTH - up.position(loss), 1)


def _dots(checkpoints: Sequence[KnownCheckpoint], points: Sequence[LossPoint]) -> tuple[LossPoint, ...]:
    """Return the checkpoints that lie on the curve: between two of its points where their own loss is not known."""
    newest = {each.step: each for each in checkpoints}
    within = [each for step, each in sorted(newest.items()) if points[0].step <= step <= points[-1].step]
    return tuple(_dot(each, points) for each in thin(within, MOST_DRAWN))


def _dot(checkpoint: KnownCheckpoint, points: Sequence[LossPoint]) -> LossPoint:
    right = points[bisect_left(points, checkpoint.step, key=lambda each: each.step)]
    if right.step == checkpoint.step:
        return LossPoint(right.step, right.loss, right.at, right.x, right.y, is_checkpoint=True)
    left = points[bisect_left(points, checkpoint.step, key=lambda each: each.step) - 1]
    share = (checkpoint.step - left.step) / (right.step - left.step)
    x = round(left.x + share * (right.x - left.x), 1)
    y = round(left.y + share * (right.y - left.y), 1)
    return LossPoint(checkpoint.step, checkpoint.loss, checkpoint.at, x, y, is_checkpoint=True)


def _summarize(ends: tuple[float, float], step: int, total_steps: int | None, *, is_logarithmic: bool) -> str:
    of_all = f" of {total_steps:,}" if total_steps else ""
    scale = "; the axis of the loss is logarithmic" if is_logarithmic else ""
    return f"Loss {format_number(ends[0])} at first, {format_number(ends[1])} after step {step:,}{of_all}{scale}."
