"""What a drawing of a job consists of: rows with spans and marks, which have their times and their place."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from relaunch_cli.dashboard.drawings.scale import Tick, TimeScale
from relaunch_cli.views.formatting import format_duration

_TWO_PIXELS = 2.4
"""In permille, of a drawing on a desk."""
_TWO_PIXELS_ON_PHONE = 6.0
_CLOSE = 0.3
_MOST_TITLES = 12
_DENSE = 60
_MOST_LISTED = 150
# In permille of the width: a letter is about 6.5 pixels wide, and a drawing about 850 on a desk, 320 on a phone.
_LETTER = 8.0
_LETTER_ON_PHONE = 21.0
_LONGEST_LABEL = 40


class SpanKind(StrEnum):
    """What a span of time went into; its class in the style sheet is `span-…`."""

    WAITING = "waiting"
    FAILED_START = "failed-start"
    BOOTING = "booting"
    PULLING = "pulling"
    TRAINING = "training"
    SAVING = "saving"
    LOST = "lost"
    IDLE = "idle"


class MarkKind(StrEnum):
    """What happened at a moment; its class in the style sheet is `mark-…`."""

    WARNING = "warning"
    CHECKPOINT = "checkpoint"
    MOVE = "move"
    STOP = "stop"
    FAILURE = "failure"
    CANCELLATION = "cancellation"
    SUCCESS = "success"


@dataclass(frozen=True, slots=True)
class Span:
    """A span of time of one kind; `ended_at` is None while it goes on. `x` and `width` are in permille."""

    kind: SpanKind
    began_at: datetime
    ended_at: datetime | None
    label: str
    title: str
    x: float = 0.0
    width: float = 0.0

    @property
    def what(self) -> str:
        """Return its kind in words."""
        return SPAN_NAMES[self.kind]

    @property
    def is_narrow(self) -> bool:
        """Return whether it is too narrow for a pattern, and for less than two pixels on a phone."""
        return self.width < _TWO_PIXELS_ON_PHONE

    @property
    def is_hairline(self) -> bool:
        """Return whether it has to be drawn wider than it is anywhere."""
        return self.width < _TWO_PIXELS

    @property
    def fits(self) -> str:
        """Return where its label fits into it: `anywhere`, on a `desk` alone, or `nowhere`."""
        letters = len(self.label) + 2
        if letters > _LONGEST_LABEL or letters * _LETTER > self.width:
            return "nowhere"
        return "anywhere" if letters * _LETTER_ON_PHONE <= self.width else "desk"

    def placed(self, scale: TimeScale) -> "Span":
        """Return the span with its place, and its times in UTC."""
        return replace(
            self,
            began_at=self.began_at.astimezone(UTC),
            ended_at=None if self.ended_at is None else self.ended_at.astimezone(UTC),
            x=scale.position(self.began_at),
            width=scale.width(self.began_at, self.ended_at),
        )

    def tooltip(self, now: datetime) -> str:
        """Return what it was, when, and how long it took."""
        until = "until now" if self.ended_at is None else f"to {self.ended_at:%d %b %H:%M:%S}"
        return f"{self.title}\n{self.began_at:%d %b %H:%M:%S} {until} UTC, {self.duration_text(now)}"

    def duration(self, now: datetime) -> timedelta:
        """Return how long it took, or has taken until now; 0 if its end is before its beginning, by another clock."""
        return max((self.ended_at or now) - self.began_at, timedelta(0))

    def duration_text(self, now: datetime) -> str:
        """Return how long it took in words."""
        return format_duration(self.duration(now))


@dataclass(frozen=True, slots=True)
class Mark:
    """What happened at a moment, also at the end of a row; `x` is in permille."""

    kind: MarkKind
    at: datetime
    title: str
    x: float = 0.0
    is_end: bool = False

    @property
    def what(self) -> str:
        """Return its kind in words."""
        return MARK_NAMES[self.kind]

    @property
    def began_at(self) -> datetime:
        """Return when it was, as of a span."""
        return self.at


class RowKind(StrEnum):
    """What a row is of."""

    JOB = "job"
    ATTEMPT = "attempt"
    TRIES = "tries"
    MACHINE = "machine"
    REST = "rest"


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its name, what it was on, how it came out, and what is drawn in it.

    `drawn` are its spans where many are one, which is all that can be seen of them; a table has `spans`.
    """

    kind: RowKind
    name: str
    began_at: datetime
    place: str = ""
    outcome: str = ""
    spans: tuple[Span, ...] = ()
    marks: tuple[Mark, ...] = ()
    drawn: tuple[Span, ...] = field(default=(), compare=False)

    def placed(self, scale: TimeScale) -> "Row":
        """Return the row, of which everything has its place."""
        spans = tuple(each.placed(scale) for each in self.spans)
        marks = tuple(replace(each, at=each.at.astimezone(UTC), x=scale.position(each.at)) for each in self.marks)
        return replace(self, spans=spans, marks=marks, drawn=merge(spans))

    def time_of(self, kind: SpanKind, now: datetime) -> timedelta:
        """Return how long its spans of a kind took together."""
        return sum((each.duration(now) for each in self.spans if each.kind is kind), timedelta(0))

    @property
    def events(self) -> tuple[Span | Mark, ...]:
        """Return its spans and marks in the order of time, for a table: the newest ones of many."""
        events: list[Span | Mark] = [*self.spans, *self.marks]
        return tuple(sorted(events, key=lambda each: each.began_at)[-_MOST_LISTED:])

    @property
    def is_dense(self) -> bool:
        """Return whether it has so many spans that two pixels for each of the short ones would hide the long ones."""
        return len(self.drawn) > _DENSE

    @property
    def unlisted(self) -> int:
        """Return how many are not in the table."""
        return max(len(self.spans) + len(self.marks) - _MOST_LISTED, 0)

    @property
    def sentence(self) -> str:
        """Return what it is in words, for those who do not see it."""
        parts = (part for part in (self.place, self.outcome) if part)
        return f"{self.name}: {'; '.join(parts)}" if self.place or self.outcome else self.name


@dataclass(frozen=True, slots=True)
class Total:
    """How long the spans of a kind took together, for the legend."""

    kind: SpanKind
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The life of a job to scale."""

    began_at: datetime
    ended_at: datetime
    is_over: bool
    summary: str
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    totals: tuple[Total, ...]

    @property
    def mark_kinds(self) -> tuple[MarkKind, ...]:
        """Return the kinds of marks that it has, for the legend."""
        found = {mark.kind for row in self.rows for mark in row.marks}
        return tuple(each for each in MarkKind if each in found)

    @staticmethod
    def mark_name(kind: MarkKind) -> str:
        """Return what a kind of mark is called."""
        return MARK_NAMES[kind]


SPAN_NAMES = {
    SpanKind.WAITING: "waiting",
    SpanKind.FAILED_START: "came to nothing",
    SpanKind.BOOTING: "booting or starting",
    SpanKind.PULLING: "pulling the image",
    SpanKind.TRAINING: "training",
    SpanKind.SAVING: "saving or stopping",
    SpanKind.LOST: "lost work",
    SpanKind.IDLE: "machine unused",
}
MARK_NAMES = {
    MarkKind.WARNING: "interruption notice",
    MarkKind.CHECKPOINT: "checkpoint",
    MarkKind.MOVE: "moved to spot",
    MarkKind.STOP: "stopped",
    MarkKind.FAILURE: "failed",
    MarkKind.CANCELLATION: "cancelled",
    MarkKind.SUCCESS: "finished",
}


def merge(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Return the spans in the order in which they are drawn; narrow ones of a kind in a row, which touch, are one."""
    merged: list[Span] = []
    for kind in SpanKind:
        group: list[Span] = []
        for each in sorted((each for each in spans if each.kind is kind), key=lambda span: span.x):
            if group and not _touch(group[-1], each):
                merged.append(_one_of(group))
                group = []
            group.append(each)
        merged += [_one_of(group)] if group else []
    return tuple(merged)


def _touch(first: Span, second: Span) -> bool:
    is_close = second.x - (first.x + first.width) < _CLOSE
    return is_close and first.is_narrow and second.is_narrow


def _one_of(group: Sequence[Span]) -> Span:
    first = group[0]
    if len(group) == 1:
        return first
    ends = [each.ended_at for each in group if each.ended_at is not None]
    end = max(each.x + each.width for each in group)
    titles = [each.title for each in group[:_MOST_TITLES]]
    more = [f"and {len(group) - _MOST_TITLES} more"] if len(group) > _MOST_TITLES else []
    return replace(
        first,
        ended_at=max(ends) if len(ends) == len(group) else None,
        width=round(end - first.x, 1),
        label=first.kind.value,
        title="\n".join((*titles, *more)),
    )
