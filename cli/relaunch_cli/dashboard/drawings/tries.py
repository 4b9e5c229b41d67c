"""The tries of a job that never ran: machines it did not get, launches that came to nothing; one row for several."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from relaunch.core.jobs.changes import cut
from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.start_stages import Start, StartState
from relaunch_cli.dashboard.drawings.drawing import MARK_NAMES, Row, RowKind, Span, SpanKind
from relaunch_cli.terminal import one_line
from relaunch_cli.views.formatting import format_count

_BEGINS = frozenset({"machine claimed", "launching"})
_LONGEST_REASON = 70
_GOES_ON = frozenset({*_BEGINS, "waiting for machine", "agent not connected"})


@dataclass(frozen=True, slots=True)
class Try:
    """A try to run a job, from its machine's request or its launch until it came to nothing, or its program ran.

    `number` is that of its attempt, None if nothing was launched. `why` is why it came to nothing.
    """

    began_at: datetime
    ended_at: datetime | None
    number: int | None
    has_run: bool
    what: str
    why: str


def find_tries(timeline: Sequence[TimelineEntry]) -> list[Try]:
    """Return all tries of a timeline in the order of time; the last one may go on."""
    tries: list[Try] = []
    opened: Try | None = None
    for entry in timeline:
        if opened is None:
            opened = _begin(entry) if entry.event in _BEGINS else None
        elif entry.state is JobState.RUNNING:
            tries.append(_ended(opened, entry, has_run=True))
            opened = None
        elif entry.state.is_final or (entry.state is JobState.WAITING and entry.event not in _GOES_ON):
            tries.append(_ended(opened, entry, has_run=False))
            opened = None
        elif entry.event == "launching":
            opened = Try(opened.began_at, None, entry.attempt_number, has_run=False, what=entry.detail, why="")
    return tries if opened is None else [*tries, opened]


def _begin(entry: TimelineEntry) -> Try:
    number = entry.attempt_number if entry.event == "launching" else None
    return Try(entry.at, None, number, has_run=False, what=entry.detail, why="")


def _ended(opened: Try, entry: TimelineEntry, *, has_run: bool) -> Try:
    why = one_line(entry.detail) or entry.event
    at = max(entry.at, opened.began_at)
    return Try(opened.began_at, at, opened.number, has_run=has_run, what=opened.what, why=why)


def find_failed(timeline: Sequence[TimelineEntry], starts: Sequence[Start], shown: Collection[int]) -> list[Try]:
    """Return the tries that came to nothing: those of the timeline, and machines of which it says nothing.

    Those are next machines, which were requested while a task ran. `shown` are the attempts that have rows of their
    own: of each, the last try is in its row.
    """
    tries = find_tries(timeline)
    in_rows = {each.number: index for index, each in enumerate(tries) if each.number in shown}
    failed = [
        each
        for index, each in enumerate(tries)
        if not each.has_run and each.ended_at is not None and in_rows.get(each.number) != index
    ]
    unplaced = (each for each in starts if each.record.attempt is None and each.state is StartState.STOPPED)
    failed += [_of_machine(each) for each in unplaced if not any(_is_of(each, known) for known in tries)]
    return sorted(failed, key=lambda each: each.began_at)


def _is_of(start: Start, known: Try) -> bool:
    """Return whether the machine was requested in this try: the request and its timeline entry are one moment."""
    ended_at = known.ended_at or start.until
    return known.began_at <= start.until and start.began_at <= ended_at


def _of_machine(start: Start) -> Try:
    why = one_line(start.reason)
    return Try(start.began_at, start.until, None, has_run=False, what="a machine was requested", why=why)


def make_tries_row(tries: Sequence[Try]) -> Row:
    """Return the one row of tries that followed one another; each is a span in it."""
    latest = tries[-1]
    name = "1 try" if len(tries) == 1 else f"{len(tries)} tries"
    same = sum(each.why == latest.why for each in tries)
    why = cut(latest.why, _LONGEST_REASON) or "nothing says why"
    which = "" if len(tries) == 1 else f"{'all' if same == len(tries) else 'the last'}: "
    return Row(
        RowKind.TRIES,
        name,
        tries[0].began_at,
        place="never ran",
        outcome=f"{which}{why}",
        spans=tuple(_span(each) for each in tries),
    )


def _span(each: Try) -> Span:
    title = f"a try that never ran: {each.what}; {each.why}" if each.what else f"a try that never ran: {each.why}"
    return Span(SpanKind.FAILED_START, each.began_at, each.ended_at, "never ran", title)


def make_rest_row(rows: Sequence[Row]) -> Row:
    """Return one row of many: its spans are theirs, and it says how many they are."""
    named = [each.name for each in rows if each.kind is RowKind.ATTEMPT]
    ends = Counter(mark.kind for each in rows for mark in each.marks if mark.is_end)
    return Row(
        RowKind.REST,
        f"Attempts {named[0].rpartition(' ')[2]} to {named[-1].rpartition(' ')[2]}" if named else "Earlier",
        min(each.began_at for each in rows),
        place=f"{format_count(len(rows), 'row')} in one",
        outcome=", ".join(f"{count} {MARK_NAMES[kind]}" for kind, count in ends.items()),
        spans=tuple(replace(span, title=f"{each.name}: {span.title}") for each in rows for span in each.spans),
    )


def is_open_start(start: Start, job: Job) -> bool:
    """Return whether the machine of a start is awaited by the job for its next attempt."""
    return start.record.attempt is None and start.state is StartState.STARTING and not job.state.is_final
