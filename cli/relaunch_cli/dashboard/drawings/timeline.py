"""The life of one job to scale: a row for the job, and one for each attempt, with its spans and marks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from relaunch.core.jobs.reported import thin
from relaunch_cli.dashboard.drawings.attempt_rows import Run, find_lost, find_run, make_attempt_row, make_start_row
from relaunch_cli.dashboard.drawings.drawing import SPAN_NAMES, Mark, MarkKind, Row, RowKind, SpanKind, Timeline, Total
from relaunch_cli.dashboard.drawings.job_row import describe_state, make_job_row
from relaunch_cli.dashboard.drawings.known_checkpoints import MOST_DRAWN, KnownCheckpoint, find_checkpoints
from relaunch_cli.dashboard.drawings.machine_rows import make_machine_row
from relaunch_cli.dashboard.drawings.scale import TimeScale
from relaunch_cli.dashboard.drawings.tries import Try, find_failed, is_open_start, make_rest_row, make_tries_row
from relaunch_cli.views.formatting import format_count, format_duration

if TYPE_CHECKING:
    from relaunch.core.jobs.attempt import Attempt
    from relaunch.core.jobs.job import Job
    from relaunch.core.jobs.progress import SavedCheckpoint
    from relaunch.core.jobs.training import TrainingProgress
    from relaunch.core.lifecycle.start_stages import Start
    from relaunch.core.machines.machine import Machine
    from relaunch.ports import JobHistory

MOST_ROWS = 60
_LEGEND = {SpanKind.FAILED_START: "starts that came to nothing"}


def make_timeline(
    history: "JobHistory",
    starts: "Sequence[Start]",
    machines: "Sequence[Machine]",
    training: "TrainingProgress",
    now: datetime,
    saved: "SavedCheckpoint | None" = None,
) -> Timeline:
    """Return the drawing of a job from its acceptance until its end, or until now.

    `starts` are all of them, `machines` the machines of our own on which its attempts were. `saved` is its newest
    checkpoint; without it fewer checkpoints are known.
    """
    job = history.job
    scale = TimeScale.between(job.accepted_at, job.ended_at or now)
    checkpoints = find_checkpoints(job, history.attempts, training.series, saved)
    maker = _RowMaker(history, starts, checkpoints)
    rows = maker.rows(machines, (scale.began_at, scale.ended_at))
    lost = [span for each in rows for span in each.spans if span.kind is SpanKind.LOST]
    rows = [make_job_row(history, maker.failed, lost), *_at_most(rows, MOST_ROWS - 1)]
    return Timeline(
        began_at=scale.began_at,
        ended_at=scale.ended_at,
        is_over=job.ended_at is not None,
        summary=_summarize(history, rows, len(maker.failed), now),
        rows=tuple(each.placed(scale) for each in rows),
        ticks=scale.ticks,
        totals=tuple(_totals(rows, now)),
    )


class _RowMaker:
    """Makes the rows of a job below its own."""

    def __init__(
        self, history: "JobHistory", starts: "Sequence[Start]", checkpoints: Sequence[KnownCheckpoint]
    ) -> None:
        self._history = history
        self._starts = starts
        self._checkpoints = checkpoints
        started = [each for each in history.attempts if each.started_at is not None]
        self._runs = {each.number: find_run(each, _after(each, started), history.job) for each in history.attempts}
        self._shown = [each for each in history.attempts if self._has_row(each)]
        self.failed = find_failed(history.timeline, starts, {each.number for each in self._shown})

    def rows(self, machines: "Sequence[Machine]", scale: tuple[datetime, datetime]) -> list[Row]:
        """Return all of them in the order of time."""
        shown = {each.number: self._attempt_row(each) for each in self._shown}
        own = [*shown.values(), *(make_start_row(each) for each in self._starts if is_open_start(each, self._job))]
        # A machine comes after the first attempt on it.
        beside = [row for each in machines if (row := self._machine_row(each, shown, scale)) is not None]
        rows = sorted([*own, *beside], key=lambda each: each.began_at)
        return list(_with_tries(rows, self.failed))

    @property
    def _job(self) -> "Job":
        return self._history.job

    def _has_row(self, attempt: "Attempt") -> bool:
        """Return whether it ran, may have run, or may run yet."""
        may_run = attempt.stop is None and not self._job.state.is_final and attempt is self._history.attempts[-1]
        return attempt.is_number_used or (may_run and attempt.placement.state.value != "CLOSED")

    def _attempt_row(self, attempt: "Attempt") -> Row:
        run = self._runs[attempt.number]
        lost = find_lost(run, self._job, self._checkpoints) if run is not None else None
        start = next((each for each in self._starts if each.record.attempt == attempt), None)
        row = make_attempt_row(attempt, run, lost, start, self._job)
        return replace(row, marks=(*self._checkpoint_marks(attempt), *row.marks))

    def _checkpoint_marks(self, attempt: "Attempt") -> Iterator[Mark]:
        drawn = thin([each for each in self._checkpoints if each.at is not None], MOST_DRAWN)
        for each in drawn:
            if each.attempt == attempt.number and each.at is not None:
                loss = f", loss {each.loss:.6g}" if each.loss is not None else ""
                yield Mark(MarkKind.CHECKPOINT, each.at, f"checkpoint of step {each.step:,}{loss}")

    def _machine_row(
        self, machine: "Machine", shown: Mapping[int, Row], scale: tuple[datetime, datetime]
    ) -> Row | None:
        on_it = [
            each
            for each in self._history.attempts
            if machine.machine_id in (rank.machine_id for rank in each.placement.ranks)
        ]
        runs: list[tuple[Run, datetime]] = []
        for each in on_it:
            run = self._runs[each.number]
            if run is not None and each.number in shown:
                runs.append((run, shown[each.number].began_at))
        return make_machine_row(machine, runs, scale) if runs else None


def _after(attempt: "Attempt", started: "Sequence[Attempt]") -> "Attempt | None":
    """Return the next attempt that started."""
    return next((each for each in started if each.number > attempt.number), None)


def _with_tries(rows: Sequence[Row], failed: Sequence[Try]) -> Iterator[Row]:
    """Yield the rows, and between them one for the tries of the time between them."""
    left = list(failed)
    for row in rows:
        before = [each for each in left if each.began_at <= row.began_at]
        if before:
            yield make_tries_row(before)
        left = left[len(before) :]
        yield row
    if left:
        yield make_tries_row(left)


def _at_most(rows: Sequence[Row], most: int) -> list[Row]:
    """Return the newest rows, and before them one for all others if there are too many."""
    if len(rows) <= most:
        return list(rows)
    kept = most - 1
    return [make_rest_row(rows[:-kept]), *rows[-kept:]]


def _totals(rows: Sequence[Row], now: datetime) -> Iterator[Total]:
    for kind in SpanKind:
        time = _time_of(kind, rows, now)
        if time:
            yield Total(kind, _LEGEND.get(kind, SPAN_NAMES[kind]), format_duration(time))


def _time_of(kind: SpanKind, rows: Sequence[Row], now: datetime) -> timedelta:
    """Return the time of a kind: the job waits, and its attempts do everything else."""
    of = {SpanKind.WAITING: RowKind.JOB, SpanKind.IDLE: RowKind.MACHINE}.get(kind)
    counted = [
        each for each in rows if each.kind is of or (of is None and each.kind not in (RowKind.JOB, RowKind.MACHINE))
    ]
    return sum((each.time_of(kind, now) for each in counted), timedelta(0))


def _summarize(history: "JobHistory", rows: Sequence[Row], failed: int, now: datetime) -> str:
    """Return the life of a job in a sentence."""
    job = history.job
    until = job.ended_at or now
    ran = sum(each.started_at is not None for each in history.attempts)
    trained = _time_of(SpanKind.TRAINING, rows, now)
    lost = _time_of(SpanKind.LOST, rows, now)
    parts = [
        f"trained {format_duration(trained)} in {format_count(ran, 'attempt')}" if ran else "did not train yet",
        f"waited {format_duration(_time_of(SpanKind.WAITING, rows, now))}",
        *([f"{format_count(failed, 'start')} came to nothing"] if failed else []),
        *([f"lost {format_duration(lost)} of work"] if lost else []),
        *([format_count(job.totals.interruptions, "interruption")] if job.totals.interruptions else []),
        *([format_count(job.totals.failures, "failure")] if job.totals.failures else []),
    ]
    took = f"{'after' if job.ended_at else 'for'} {format_duration(until - job.accepted_at)}"
    state = describe_state(job)
    return f"{state[:1].upper()}{state[1:]} {took}: {', '.join(parts)}"
