"""The row of an attempt: how its machine and its task started, how long it trained, what it lost, and how it ended."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from relaunch.core.jobs.attempt import Attempt, StopKind
from relaunch.core.jobs.job import Job
from relaunch.core.lifecycle.restart_policy import describe_stop
from relaunch.core.lifecycle.start_stages import Part, Stage, Start
from relaunch.core.machines.machine import describe_request
from relaunch_cli.dashboard.drawings.drawing import Mark, MarkKind, Row, RowKind, Span, SpanKind
from relaunch_cli.dashboard.drawings.known_checkpoints import KnownCheckpoint, read_folder
from relaunch_cli.views.formatting import format_duration
from relaunch_cli.views.jobs import instances_of

# The clocks of the machine, of the cluster and of Relaunch differ, and a step is noted in whole seconds.
_CLOCKS_DIFFER = timedelta(seconds=10)

_ENDS = {
    StopKind.SUCCESS: (MarkKind.SUCCESS, "finished"),
    StopKind.INTERRUPTION: (MarkKind.STOP, "interrupted"),
    StopKind.HOST_LOST: (MarkKind.STOP, "machine lost"),
    StopKind.MOVED: (MarkKind.MOVE, "moved to spot"),
    StopKind.OVER_BUDGET: (MarkKind.STOP, "stopped by its budget"),
    StopKind.CANCELLED: (MarkKind.CANCELLATION, "cancelled"),
    StopKind.TIME_OUT: (MarkKind.STOP, "out of time"),
    StopKind.NO_CAPACITY: (MarkKind.STOP, "no capacity"),
}


@dataclass(frozen=True, slots=True)
class Lost:
    """The part of a training that the next attempt did not go on from, and how that is known."""

    began_at: datetime
    ended_at: datetime
    why: str


@dataclass(frozen=True, slots=True)
class Run:
    """An attempt that ran: what followed it, and where in time its parts lie.

    `ended_at` is when its task had stopped, None while it has not. `trained_until` is when it was asked to stop, or its
    program ended, None while it trains; `is_asked` says which.
    """

    attempt: Attempt
    following: Attempt | None
    started_at: datetime
    trained_until: datetime | None
    ended_at: datetime | None
    is_asked: bool = False

    @property
    def is_stopping(self) -> bool:
        """Return whether it took time to stop: to save, or until the cluster had stopped the task of its program."""
        if self.trained_until is None:
            return False
        return self.is_asked or self.ended_at is None or self.ended_at - self.trained_until >= _CLOCKS_DIFFER


def find_run(attempt: Attempt, following: Attempt | None, job: Job) -> Run | None:
    """Return when an attempt ran; None if it has not started."""
    started_at = attempt.started_at
    if started_at is None:
        return None
    program_ended_at = attempt.program_ended_at
    ended_at = attempt.stop.at if attempt.stop is not None else None
    if ended_at is None and (following is not None or job.state.is_final):
        # A record of it that was not written; it does not run beside the next one for ever.
        ended_at = program_ended_at or (following.placement.requested_at if following is not None else job.ended_at)
    if ended_at is not None and program_ended_at is not None:
        ended_at = max(ended_at, program_ended_at)
    last = program_ended_at or ended_at
    asked_at = _asked_at(attempt, last)
    if asked_at is not None and asked_at >= started_at and (last is None or asked_at <= last):
        return Run(attempt, following, started_at, asked_at, ended_at, is_asked=True)
    return Run(attempt, following, started_at, last, ended_at)


def _asked_at(attempt: Attempt, last: datetime | None) -> datetime | None:
    """Return when it was asked to stop: a training that looks for notices saves without being asked."""
    if attempt.intent is not None:
        return attempt.intent.at
    return attempt.warned_at if attempt.handover is None and last is not None else None


def find_lost(run: Run, job: Job, checkpoints: Sequence[KnownCheckpoint]) -> Lost | None:
    """Return what the next attempt had to train again; None if that is nothing, or not known.

    The next one was given a checkpoint when it was launched. One that this attempt did not write keeps nothing of it;
    of its own the time has to be known. A definition without `checkpoint` may save where Relaunch does not look.
    """
    until = run.trained_until
    following = run.following
    if until is None or following is None or following.started_at is None or job.definition.checkpoint_uri is None:
        return None
    folder = read_folder(following.placement.resume_uri, job.job_id)
    if folder is None or folder[0] < run.attempt.number:
        given = "from another job's checkpoint" if following.placement.resume_uri else "from the beginning"
        given = f"from step {folder[1]:,}, which it had not saved" if folder is not None else given
        return _lost(run.started_at, until, f"attempt {following.number} began {given}")
    known = (each.at for each in checkpoints if (each.attempt, each.step) == folder)
    saved_at = next(known, None)
    warned_at = run.attempt.warned_at if run.attempt.handover is None else None
    if folder[0] != run.attempt.number or saved_at is None or saved_at >= (warned_at or until):
        return None
    return _lost(max(saved_at, run.started_at), until, f"attempt {following.number} went on from step {folder[1]:,}")


def _lost(began_at: datetime, ended_at: datetime, why: str) -> Lost | None:
    return Lost(began_at, ended_at, why) if ended_at - began_at >= _CLOCKS_DIFFER else None


def make_attempt_row(attempt: Attempt, run: Run | None, lost: Lost | None, start: Start | None, job: Job) -> Row:
    """Return the row of an attempt that ran or that starts."""
    spans = [*start_spans(attempt, start), *(_run_spans(run, lost) if run is not None else ())]
    marks = [*_notices(attempt), *_end(attempt, run, job)]
    began_at = min((each.began_at for each in spans), default=attempt.placement.requested_at)
    return Row(
        RowKind.ATTEMPT,
        f"Attempt {attempt.number}",
        began_at,
        place=_place(attempt),
        outcome=_outcome(attempt, run, lost),
        spans=tuple(spans),
        marks=tuple(marks),
    )


def make_start_row(start: Start) -> Row:
    """Return the row of an attempt whose machine starts, and that is not placed yet."""
    machine = start.record.machine
    place = describe_request(machine) if machine is not None else ""
    return Row(
        RowKind.ATTEMPT,
        f"Attempt {start.record.number}",
        start.began_at,
        place=str(machine.offering) if machine is not None and machine.offering is not None else place,
        outcome="its machine starts",
        spans=tuple(_stage_spans(start)),
    )


def _place(attempt: Attempt) -> str:
    offering = attempt.placement.offering
    zone = attempt.zone or offering.zone
    shown = str(offering)
    return shown if zone is None or zone in shown else f"{shown} {zone}"


def start_spans(attempt: Attempt, start: Start | None) -> Iterator[Span]:
    """Yield how an attempt started, by the stages of its start, or without them from its launch to its start."""
    if start is not None and start.stages:
        yield from _stage_spans(start)
    elif attempt.started_at is not None:
        text = "from its launch until its program started"
        yield Span(SpanKind.BOOTING, attempt.placement.requested_at, attempt.started_at, "starting", text)


def _stage_spans(start: Start) -> Iterator[Span]:
    for stage in start.stages:
        ended_at = stage.ended_at or (None if start.state.value == "starting" else start.until)
        by = f", until {stage.ended_by}" if stage.ended_by else ""
        kind = SpanKind.PULLING if stage.parts == (Part.PULL,) else SpanKind.BOOTING
        parts = _words(stage)
        yield Span(kind, stage.began_at, ended_at, parts, f"{parts}{by}")


_PART_WORDS: Mapping[Part, str] = {
    Part.PULL: "pulling the image",
    Part.START: "starting the program",
    Part.READY: "getting ready",
    Part.PROVIDER: "capacity provider",
}


def _words(stage: Stage) -> str:
    return ", ".join(_PART_WORDS.get(each, each.value) for each in stage.parts)


def _run_spans(run: Run, lost: Lost | None) -> Iterator[Span]:
    until = run.trained_until
    instances = instances_of(run.attempt)
    gpus = f"on {instances}" if instances else ""
    yield Span(SpanKind.TRAINING, run.started_at, until, "training", f"training {gpus}".rstrip())
    if until is not None and run.is_stopping:
        intent = run.attempt.intent
        why = f": {intent.detail}" if intent is not None and intent.detail else ""
        label = "saving" if run.is_asked else "stopping"
        title = f"saving and stopping{why}" if run.is_asked else "its program had ended, its task had not stopped"
        yield Span(SpanKind.SAVING, until, run.ended_at, label, title)
    if lost is not None:
        yield Span(SpanKind.LOST, lost.began_at, lost.ended_at, "lost", f"lost work: {lost.why}")


def _notices(attempt: Attempt) -> Iterator[Mark]:
    handover = attempt.handover
    if attempt.warned_at is not None:
        why = f": {handover.reason}" if handover is not None and not handover.is_move else ""
        yield Mark(MarkKind.WARNING, attempt.warned_at, f"interruption notice{why}")
    elif handover is not None and not handover.is_move:
        yield Mark(MarkKind.WARNING, handover.since, f"notice: {handover.reason}")
    elif handover is not None:
        yield Mark(MarkKind.MOVE, handover.since, f"a machine on spot was requested: {handover.reason}")


def _end(attempt: Attempt, run: Run | None, job: Job) -> Iterator[Mark]:
    if attempt.stop is None:
        return
    kind, words = _ENDS.get(attempt.stop.kind, (MarkKind.FAILURE, "failed"))
    at = run.ended_at if run is not None and run.ended_at is not None else attempt.stop.at
    yield Mark(kind, at, f"{words}: {describe_stop(attempt.stop, job.definition.target)}", is_end=True)


def _outcome(attempt: Attempt, run: Run | None, lost: Lost | None) -> str:
    parts = []
    until = run.trained_until if run is not None else None
    if run is None:
        parts.append("whether it ran is not known" if attempt.placement.is_lost else "starting")
    elif until is not None:
        trained = f" after {format_duration(until - run.started_at)} of training"
        parts.append(f"{_end_words(attempt)}{trained}")
    else:
        parts.append("training")
    if run is None and attempt.stop is not None:
        parts.append(_end_words(attempt))
    if lost is not None:
        parts.append(f"{format_duration(lost.ended_at - lost.began_at)} of work lost")
    return "; ".join(parts)


def _end_words(attempt: Attempt) -> str:
    if attempt.stop is None:
        return "stopping"
    return _ENDS[attempt.stop.kind][1] if attempt.stop.kind in _ENDS else f"failed ({attempt.stop.kind})"
