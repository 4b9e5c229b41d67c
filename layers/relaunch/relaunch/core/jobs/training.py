"""How far the training of a job is, how fast, when it will be done, and what a loss of its machine would cost now.

The rate is that of the newest steps: of the lines of the log, where they were read; else of the series in the newest
manifest; else of the newest checkpoints. Loading data and compiling are in none of them. An attempt that has saved
nothing yet is expected to be as fast as the one before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta

from relaunch.core.jobs.attempt import Attempt
from relaunch.core.jobs.checkpoint_gaps import ENOUGH_GAPS, has_trained, latest_gaps, retrained_at, usual_gap
from relaunch.core.jobs.cost import attempt_price
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import LONGEST_LEFT, SavedCheckpoint, time_at_risk, total_steps
from relaunch.core.jobs.reported import SeriesPoint, thin
from relaunch.core.jobs.reported_lines import ReportedStep
from relaunch.core.jobs.state import CostBasis, JobState, NotedProgress
from relaunch.core.records import dataclass
from relaunch.core.selection.expected_cost import START_OVERHEAD

RATE_POINTS = 20
"""Over how many of the newest points the rate is measured."""
RATE_CHECKPOINTS = 5
"""Over how many of the newest checkpoints it is measured where there is nothing else."""
STALLED_AFTER = 3
"""How many times as old as the time between two of its checkpoints the newest one may be."""
LEAST_STALL = timedelta(minutes=30)
"""How old it may be anyway: an evaluation, or a restart of a loader, stops a training for minutes."""
LEAST_STALL_AT_FIRST = timedelta(hours=3)
"""How old it may be while fewer than ENOUGH_GAPS are known."""
_LEAST_POINTS = 2


@dataclass(frozen=True, slots=True)
class AtRisk:
    """What is lost if the machine is taken away without a warning: the time since the newest checkpoint, and its cost.

    `usd` is None if the price is not known.
    """

    time: timedelta
    usd: float | None


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """How far a training is, as far as that is known."""

    step: int | None = None
    at: datetime | None = None
    """When that step was done, or saved."""
    total_steps: int | None = None
    loss: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict, hash=False)
    steps_per_second: float | None = None
    rests_on: str = ""
    """What the rate was measured by, in words; empty without one."""
    finishes_at: datetime | None = None
    """When a task that runs will be done, at that rate."""
    checkpoint_age: timedelta | None = None
    """How old the newest checkpoint of a job is that has not ended."""
    at_risk: AtRisk | None = None
    """None of a job without a task that runs."""
    series: tuple[SeriesPoint, ...] = ()
    """The steps of the training, thinned: those in the newest manifest, or else the newest checkpoints; then lines."""


@dataclass(frozen=True, slots=True)
class _Rate:
    """Steps per second, None if that is not known, and what it was measured by."""

    steps_per_second: float | None = None
    rests_on: str = ""


def measure_training(
    job: Job, newest: SavedCheckpoint | None, lines: Sequence[ReportedStep], now: datetime
) -> TrainingProgress:
    """Return how far the training of a job is, by its newest checkpoint and by the newest lines of its current task."""
    attempt = job.attempt
    if attempt is None:
        return TrainingProgress()
    saved = None if newest is None else _as_reported(newest)
    furthest = max(
        (each for each in (saved, *lines[-1:]) if each is not None), key=lambda each: each.step, default=None
    )
    rate = _measure_rate(attempt, newest, lines)
    known = TrainingProgress(
        steps_per_second=rate.steps_per_second,
        rests_on=rate.rests_on,
        checkpoint_age=None if newest is None or job.state.is_final else max(now - newest.saved_at, timedelta(0)),
        at_risk=_at_risk(attempt, newest, now),
        series=_series(newest, lines),
    )
    if furthest is None:
        return known
    total = total_steps(job, newest) or furthest.total_steps
    return replace(
        known,
        step=furthest.step,
        at=furthest.at,
        total_steps=total,
        loss=furthest.loss,
        metrics=furthest.metrics,
        finishes_at=_finishes_at(attempt, furthest, total, rate.steps_per_second),
    )


def _as_reported(newest: SavedCheckpoint) -> ReportedStep:
    said = newest.reported
    return ReportedStep(newest.step, newest.saved_at, said.total_steps, said.loss, said.metrics)


def _measure_rate(attempt: Attempt, newest: SavedCheckpoint | None, lines: Sequence[ReportedStep]) -> _Rate:
    found = _rate_of([(each.step, each.at.timestamp()) for each in lines[-RATE_POINTS:]], "lines of its log")
    if found is not None or newest is None:
        return found or _Rate()
    is_own = newest.attempt == attempt.number
    of_whom = "" if is_own else f" of attempt {newest.attempt}"
    checkpoints = [(step, at.timestamp()) for step, at in (*newest.earlier, (newest.step, newest.saved_at))]
    # The series has the steps of all attempts: between two of them a machine was started.
    began_at = attempt.started_at.timestamp() if is_own and attempt.started_at is not None else checkpoints[0][1]
    own = [(each.step, each.at) for each in newest.reported.series if each.at >= began_at]
    return (
        _rate_of(own[-RATE_POINTS:], f"steps that it saved{of_whom}")
        or _rate_of(checkpoints[-RATE_CHECKPOINTS:], f"checkpoints{of_whom}")
        or _Rate()
    )


def _rate_of(points: Sequence[tuple[int, float]], what: str) -> _Rate | None:
    """Return the rate between the first and the last of these steps and times, None if there is none."""
    if len(points) < _LEAST_POINTS:
        return None
    (first_step, began_at), *_, (last_step, ended_at) = points
    if last_step <= first_step or ended_at <= began_at:
        return None
    return _Rate((last_step - first_step) / (ended_at - began_at), f"the newest {len(points)} {what}")


def _finishes_at(
    attempt: Attempt, furthest: ReportedStep, total: int | None, steps_per_second: float | None
) -> datetime | None:
    """Return when the task that runs is done; None if none does, or that is not known."""
    is_running = attempt.started_at is not None and attempt.stop is None
    if not is_running or attempt.started_at is None or total is None or steps_per_second is None:
        return None
    seconds = min(max(total - furthest.step, 0) / steps_per_second, LONGEST_LEFT.total_seconds())
    return max(furthest.at, attempt.started_at) + timedelta(seconds=seconds)


def _at_risk(attempt: Attempt, newest: SavedCheckpoint | None, now: datetime) -> AtRisk | None:
    is_own = newest is not None and newest.attempt == attempt.number
    time = time_at_risk(attempt, newest.saved_at if newest is not None and is_own else None, now)
    if time is None:
        return None
    price = attempt_price(attempt)
    usd = None if price.basis is CostBasis.UNKNOWN else time / timedelta(hours=1) * price.usd_per_hour
    return AtRisk(time, usd)


def _series(newest: SavedCheckpoint | None, lines: Sequence[ReportedStep]) -> tuple[SeriesPoint, ...]:
    points: list[SeriesPoint] = []
    if newest is not None:
        times = (*newest.earlier, (newest.step, newest.saved_at))
        points += newest.reported.series or [SeriesPoint(step, at.timestamp()) for step, at in times]
    last = points[-1].step if points else -1
    points += [SeriesPoint(each.step, each.at.timestamp(), each.loss) for each in lines if each.step > last]
    return thin(points)


def note_progress(job: Job, newest: SavedCheckpoint, now: datetime) -> NotedProgress:
    """Return what is kept with a job for lists: how far its newest checkpoint is, and since when it saves nothing.

    A step that is saved again is not a newer one.
    """
    before = job.noted
    training = measure_training(job, newest, (), now)
    is_same = before is not None and (before.step, before.attempt) == (newest.step, newest.attempt)
    at = min(before.at, newest.saved_at) if before is not None and is_same else newest.saved_at
    gaps = latest_gaps(job, newest, before)
    noted = NotedProgress(
        step=newest.step,
        at=at,
        attempt=newest.attempt,
        total_steps=training.total_steps,
        loss=training.loss,
        finishes_at=training.finishes_at,
        interval_seconds=usual_gap(gaps),
        save_seconds=newest.reported.save_seconds or 0.0,
        gaps_seconds=gaps,
        steps_per_second=training.steps_per_second,
    )
    since = retrained_at(job, newest) or at
    if before is not None and before.stalled_since is not None and not _saves_again(job, newest, before, since):
        return replace(noted, stalled_since=before.stalled_since)
    return replace(noted, stalled_since=since if _is_stalled(job, noted, since, now) else None)


def _saves_again(job: Job, newest: SavedCheckpoint, before: NotedProgress, since: datetime) -> bool:
    """Return whether a training that had stalled has saved since, if only steps that an attempt before had saved."""
    if newest.step > before.step:
        return True
    is_another = since > newest.saved_at or (newest.attempt != before.attempt and has_trained(job, newest))
    return is_another and before.stalled_since is not None and since > before.stalled_since


def _is_stalled(job: Job, noted: NotedProgress, since: datetime, now: datetime) -> bool:
    """Return whether a task that is paid for has saved nothing for longer than it should take."""
    attempt = job.attempt
    if job.state is not JobState.RUNNING or attempt is None or attempt.started_at is None:
        return False
    if not noted.interval_seconds or (noted.total_steps is not None and noted.step >= noted.total_steps):
        return False
    least = LEAST_STALL if len(noted.gaps_seconds) >= ENOUGH_GAPS else LEAST_STALL_AT_FIRST
    limit = max(STALLED_AFTER * timedelta(seconds=noted.interval_seconds), least)
    if noted.attempt != attempt.number:
        limit += START_OVERHEAD
    return now - max(since, attempt.started_at) > limit
