"""The row of a job as a whole: what it waited for, and when it started, trained and stopped, by its timeline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from relaunch.core.jobs.state import JobState, WaitReason
from relaunch_cli.dashboard.drawings.drawing import Mark, MarkKind, Row, RowKind, Span, SpanKind

if TYPE_CHECKING:
    from relaunch.core.jobs.job import Job, TimelineEntry
    from relaunch.ports import JobHistory
    from relaunch_cli.dashboard.drawings.tries import Try

_AWAITED = {
    WaitReason.LAUNCH: "its launch",
    WaitReason.IMAGE: "its image",
    WaitReason.SLOT: "a free slot",
    WaitReason.CAPACITY: "capacity",
    WaitReason.PRICE: "a lower price",
    WaitReason.BACKOFF: "the pause after a failure",
    WaitReason.CHECKPOINT: "its checkpoints to be readable",
    WaitReason.REFUSED: "what is refused to it",
    WaitReason.MARKET: "spot capacity",
    WaitReason.MACHINE: "its machine",
    WaitReason.MACHINE_LIMIT: "room for a machine",
    WaitReason.BUDGET: "its budget",
}
_MACHINE_EVENTS = frozenset({"machine claimed", "waiting for machine", "agent not connected"})
_ENDS = {
    JobState.SUCCEEDED: (MarkKind.SUCCESS, "succeeded"),
    JobState.FAILED: (MarkKind.FAILURE, "failed"),
    JobState.CANCELLED: (MarkKind.CANCELLATION, "cancelled"),
    JobState.TIMED_OUT: (MarkKind.STOP, "timed out"),
}


@dataclass(frozen=True, slots=True)
class _Phase:
    """What a job did from then on."""

    kind: SpanKind
    label: str
    detail: str
    since: datetime


def make_job_row(history: "JobHistory", failed: "Sequence[Try]", lost: "Sequence[Span]") -> Row:
    """Return the row of the job, with its tries that came to nothing, and what its attempts lost."""
    job = history.job
    return Row(
        RowKind.JOB,
        "Job",
        job.accepted_at,
        place=job.definition.name,
        outcome=describe_state(job),
        spans=(*(_of_try(each, failed) for each in _spans(job, history.timeline)), *lost),
        marks=tuple(_end(job)),
    )


def describe_state(job: "Job") -> str:
    """Return the state of a job in words, and what it waits for."""
    if job.state.is_final:
        return _ENDS[job.state][1]
    if job.state is JobState.WAITING and job.waiting is not None:
        return f"waits for {_AWAITED[job.waiting.reason]}"
    return job.state.value.lower()


def _end(job: "Job") -> Iterator[Mark]:
    if job.state.is_final and job.ended_at is not None:
        kind, words = _ENDS[job.state]
        yield Mark(kind, job.ended_at, f"{words}: {job.reason}" if job.reason else words, is_end=True)


def _spans(job: "Job", timeline: "Sequence[TimelineEntry]") -> Iterator[Span]:
    phases = _phases(job, timeline)
    ends = [*(each.since for each in phases[1:]), job.ended_at]
    for phase, ended_at in zip(phases, ends, strict=True):
        if ended_at is None or ended_at > phase.since:
            title = f"{phase.label}: {phase.detail}" if phase.detail else phase.label
            yield Span(phase.kind, phase.since, ended_at, phase.label, title)


def _of_try(span: Span, failed: "Sequence[Try]") -> Span:
    """Return a span of a start, as one that came to nothing if it did."""
    if span.kind is not SpanKind.BOOTING:
        return span
    of = next((each for each in failed if each.ended_at and each.began_at <= span.began_at < each.ended_at), None)
    return span if of is None else replace(span, kind=SpanKind.FAILED_START, title=f"{span.title}; {of.why}")


def _phases(job: "Job", timeline: "Sequence[TimelineEntry]") -> list[_Phase]:
    """Return what a job did in the order of time, equal ones in a row as one, none before it was accepted."""
    phases = [_Phase(SpanKind.WAITING, f"waits for {_AWAITED[WaitReason.LAUNCH]}", "", job.accepted_at)]
    for entry in timeline:
        if entry.state.is_final:
            break
        latest = phases[-1]
        # Entries are by the clocks of several functions.
        phase = replace(_phase(entry, latest), since=max(entry.at, latest.since))
        if (phase.kind, phase.label) == (latest.kind, latest.label):
            phases[-1] = replace(latest, detail=latest.detail or phase.detail)
        else:
            phases.append(phase)
    return phases


def _phase(entry: "TimelineEntry", latest: _Phase) -> _Phase:
    if entry.state is JobState.WAITING:
        return _wait(entry)
    if entry.state is JobState.RUNNING:
        return _Phase(SpanKind.TRAINING, "training", entry.detail, entry.at)
    is_trained = latest.kind in (SpanKind.TRAINING, SpanKind.SAVING)
    if entry.state is JobState.STOPPING:
        kind, label = (SpanKind.SAVING, "stopping") if is_trained else (SpanKind.BOOTING, "its task is withdrawn")
        return _Phase(kind, label, entry.detail, entry.at)
    return _Phase(SpanKind.BOOTING, "its task starts", entry.detail, entry.at)


def _wait(entry: "TimelineEntry") -> _Phase:
    if entry.event in _MACHINE_EVENTS:
        return _Phase(SpanKind.BOOTING, "its machine starts", entry.detail, entry.at)
    named = entry.event.removeprefix("waiting for ").replace(" ", "-")
    reason = next((each for each in WaitReason if each.value == named), WaitReason.LAUNCH)
    return _Phase(SpanKind.WAITING, f"waits for {_AWAITED[reason]}", entry.detail, entry.at)
