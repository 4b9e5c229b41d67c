"""Logs of a job: those of the tasks of all its attempts, in order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, Protocol

from relaunch_cli.log_positions import ExpiredTokenError, LogEvent, Position

if TYPE_CHECKING:
    from relaunch.core.jobs.attempt import Attempt
    from relaunch.core.jobs.runs import JobRuns, Run
    from relaunch.ports import JobHistory

# The awslogs driver sends its buffer every five seconds: this long after the end of its task a stream is complete.
DELIVERY_LAG = timedelta(seconds=15)
_POLL_SECONDS = 2.0
MOST_EMPTY_PAGES = 50
"""After how many pages in a row without an event a stream is read no further.

Pages are empty where a task was silent for hours (dstackai/dstack#2501), and then lines come behind them; but of events
that are kept no longer CloudWatch Logs answers empty pages with ever new tokens (boto/boto3#4591).
"""
# Once the log of an ended attempt had nothing else, that of others is likely to be past retention as well.
_FEW_EMPTY_PAGES = 5
# A machine that was given up may go on writing, and has a clock of its own.
_AFTER_END = timedelta(hours=1)
# A task that writes faster than it is read has no end (GetLogEvents); what comes later is for the next read.
_AHEAD = timedelta(minutes=1)


class Tail(NamedTuple):
    """The newest events of a stream."""

    events: list[LogEvent]
    token: str | None
    """To continue from behind them; None while there is no stream."""
    is_cut: bool = False
    """Whether looking back ended at empty pages, before there were as many as asked for."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a job's log, with the attempt that wrote it."""

    attempt_number: int
    at: datetime
    message: str


@dataclass(frozen=True, slots=True)
class LogDestination:
    """Where a container of a revision logs: CloudWatch Logs by the awslogs driver."""

    group: str
    stream_prefix: str
    region: str | None = None

    def stream(self, container: str, task_arn: str) -> str:
        """Return the stream of a task: `<prefix>/<container>/<task id>` ("Using the awslogs driver", ECS guide)."""
        return f"{self.stream_prefix}/{container}/{task_arn.rsplit('/', 1)[-1]}"


class LogSource(Protocol):
    """Logs of ECS tasks."""

    def destination(self, revision_arn: str, container: str) -> LogDestination:
        """Return where this container of this revision logs.

        Raises:
            CommandError: it does not log to CloudWatch Logs, or its streams have no prefix.
        """

    def read(
        self,
        destination: LogDestination,
        stream: str,
        token: str | None,
        since: datetime | None = None,
        *,
        until: datetime | None = None,
    ) -> tuple[list[LogEvent], str | None]:
        """Return the next events of a stream and the token to continue from; nothing while there is no stream.

        Events before `since` are left out, and none is asked for that is not before `until`.

        Raises:
            ExpiredTokenError: the token is taken no longer.
        """
        ...

    def tail(
        self,
        destination: LogDestination,
        stream: str,
        count: int,
        since: datetime | None = None,
        *,
        until: datetime | None = None,
        most_empty: int = MOST_EMPTY_PAGES,
    ) -> Tail:
        """Return the newest events of a stream, at most `count`; `most_empty` pages in a row end looking back."""
        ...

    def kept_for(self, destination: LogDestination) -> timedelta | None:
        """Return how long events are kept there; None if that is for ever, or not known."""
        ...


class PodLogSource(LogSource, Protocol):
    """Logs of tasks on Kubernetes: of the first pod of a task, or of another one of a job of several nodes."""

    def of_rank(self, rank: int) -> LogSource:
        """Return the logs of the pods of one rank."""


class JobLogs:
    """Reads the logs of a job's attempts; every call of `read` yields only new lines.

    Lines before `since` are left out, and the lines of other attempts than `attempt_number`, if that is given. Of a job
    of several nodes they are those of one `rank`.
    """

    def __init__(
        self,
        source: LogSource,
        container: str,
        attempt_number: int | None = None,
        since: datetime | None = None,
        *,
        rank: int = 0,
    ) -> None:
        self._rank = rank
        self._source = source
        self._container = container
        self._only = attempt_number
        self._since = since
        self._positions: dict[str, Position] = {}
        self._complete: set[str] = set()
        self._cut: set[int] = set()
        self._most_empty = MOST_EMPTY_PAGES
        self._history: JobHistory | JobRuns | None = None
        self._destinations: dict[str, LogDestination] = {}

    def read(self, history: "JobHistory | JobRuns", now: datetime) -> Iterator[LogLine]:
        """Yield the new lines of all attempts, in order."""
        self._history = history
        for attempt, task_arn in self._attempts(history):
            if task_arn not in self._complete:
                yield from self._read_attempt(attempt, task_arn, history.job.revision.arn, now)
                if _is_complete(attempt, now):
                    self._complete.add(task_arn)

    def tail(self, history: "JobHistory | JobRuns", count: int, now: datetime) -> list[LogLine]:
        """Return the newest lines of all attempts, at most `count`, in order; `read` yields those after them."""
        self._history = history
        lines: list[LogLine] = []
        newest_first = reversed(list(self._attempts(history)))
        for place, (attempt, task_arn) in enumerate(newest_first):
            until = _end_of(attempt)
            if (place and len(lines) == count) or _is_nothing_between(self._since, until):
                self._complete.add(task_arn)
                continue
            destination, stream = self._find_stream(task_arn, history.job.revision.arn)
            wanted = count - len(lines)
            # One is read of each, also where none is wanted: reading may have to begin again behind it.
            found = self._source.tail(
                destination, stream, max(wanted, 1), self._since, until=until, most_empty=self._most_empty
            )
            position = self._positions[task_arn] = Position.of_tail(self._since, now)
            position.take(found.events, found.token, now)
            self._note_cut(attempt, position, is_cut=found.is_cut)
            if _is_complete(attempt, now):
                self._complete.add(task_arn)
            shown = found.events if wanted else []
            lines = [LogLine(attempt.number, event.at, event.message) for event in shown] + lines
        return lines

    def notes(self, now: datetime, *, is_followed: bool = False) -> list[str]:
        """Return notes on the attempts whose lines could not be read, or not all, when the job was read last.

        Where the job `is_followed`, the next read goes on with the attempt that runs.
        """
        history = self._history
        if history is None:
            return []
        gone: list[int] = []
        cut: list[int] = []
        for attempt, task_arn in self._attempts(history):
            if self._is_gone(attempt, task_arn, history.job.revision.arn, now):
                gone.append(attempt.number)
            elif attempt.number in self._cut and not (is_followed and attempt.stop is None):
                cut.append(attempt.number)
        notes = []
        if gone:
            destination = self._destinations[history.job.revision.arn]
            days = (self._source.kept_for(destination) or timedelta()).days
            kept = f"{destination.group} keeps events for {days} day{'s' * (days != 1)}"
            notes.append(f"the log of {_named(gone)} is kept no longer: {kept}")
        if cut:
            why = "pages in a row had no line, as where lines are far apart, or kept no longer"
            notes.append(f"the log of {_named(cut)} was not read whole: {why}")
        return notes

    def _is_gone(self, attempt: "Attempt | Run", task_arn: str, revision_arn: str, now: datetime) -> bool:
        """Return whether nothing was read of an attempt that ended longer ago than events are kept."""
        position = self._positions.get(task_arn)
        if position is None or position.last is not None or attempt.stop is None:
            return False
        kept = self._source.kept_for(self._destinations[revision_arn])
        return kept is not None and now - attempt.stop.at > kept

    def _attempts(self, history: "JobHistory | JobRuns") -> "Iterator[tuple[Attempt | Run, str]]":
        """Yield the attempts to read that have a task, with its ARN."""
        for attempt in history.attempts:
            if len(attempt.task_ids) > self._rank and self._only in (None, attempt.number):
                yield attempt, attempt.task_ids[self._rank]

    def _find_stream(self, task_arn: str, revision_arn: str) -> tuple[LogDestination, str]:
        if revision_arn not in self._destinations:
            self._destinations[revision_arn] = self._source.destination(revision_arn, self._container)
        destination = self._destinations[revision_arn]
        return destination, destination.stream(self._container, task_arn)

    def _read_attempt(
        self, attempt: "Attempt | Run", task_arn: str, revision_arn: str, now: datetime
    ) -> Iterator[LogLine]:
        until = _end_of(attempt)
        if _is_nothing_between(self._since, until):
            return
        destination, stream = self._find_stream(task_arn, revision_arn)
        position = self._positions.setdefault(task_arn, Position(self._since))
        position.empty_pages = 0
        position.begin_again_if_old(now)
        # A task that is silent has an empty page at each read: the next read goes on behind it.
        is_next_read = position.is_caught_up and not _is_complete(attempt, now)
        while True:
            events, following = self._read_page(position, destination, stream, until)
            is_end = following is None or following == position.token
            new = position.take(events, following, now)
            for event in new:
                yield LogLine(attempt.number, event.at, event.message)
            if is_end:
                self._note_cut(attempt, position, is_cut=False)
                break
            if (is_next_read and not events) or (until is None and _is_ahead(new, now)):
                break
            is_cut = position.empty_pages >= self._most_empty
            if is_cut and not self._skip_expired(position, destination, until or now, now):
                self._note_cut(attempt, position, is_cut=True)
                break
        position.is_caught_up = True

    def _read_page(
        self, position: Position, destination: LogDestination, stream: str, until: datetime | None
    ) -> tuple[list[LogEvent], str | None]:
        if position.token is not None:
            try:
                return self._source.read(destination, stream, position.token, position.start, until=until)
            except ExpiredTokenError:
                position.begin_again()
        # The clock of a machine that was ahead may have stamped lines after its end.
        if _is_nothing_between(position.start, until):
            return [], None
        return self._source.read(destination, stream, None, position.start, until=until)

    def _skip_expired(self, position: Position, destination: LogDestination, end: datetime, now: datetime) -> bool:
        """Begin with the first events that are still kept, if nothing was read before them; return whether it does."""
        kept = self._source.kept_for(destination) if position.last is None else None
        if kept is None or now - kept >= end or (position.start is not None and position.start >= now - kept):
            return False
        position.begin_at(now - kept)
        return True

    def _note_cut(self, attempt: "Attempt | Run", position: Position, *, is_cut: bool) -> None:
        if not is_cut:
            self._cut.discard(attempt.number)
            return
        self._cut.add(attempt.number)
        if attempt.stop is not None and position.last is None:
            self._most_empty = _FEW_EMPTY_PAGES


def _end_of(attempt: "Attempt | Run") -> datetime | None:
    """Return the time after which an attempt has written nothing; None while it may write."""
    return attempt.stop.at + _AFTER_END if attempt.stop is not None else None


def _is_complete(attempt: "Attempt | Run", now: datetime) -> bool:
    """Return whether all that an attempt has written is delivered."""
    return attempt.stop is not None and now - attempt.stop.at > DELIVERY_LAG


def _is_ahead(events: list[LogEvent], now: datetime) -> bool:
    return bool(events) and events[-1].at > now + _AHEAD


def _is_nothing_between(since: datetime | None, until: datetime | None) -> bool:
    return since is not None and until is not None and since >= until


def _named(numbers: list[int]) -> str:
    return f"attempt{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def follow_logs(
    logs: JobLogs,
    load: Callable[[], "JobHistory | JobRuns"],
    clock: Callable[[], datetime],
    pause: Callable[[float], None],
) -> Iterator[LogLine]:
    """Yield lines as they arrive, across relaunches, until the job has ended and its log is complete."""
    while True:
        history = load()
        yield from logs.read(history, clock())
        ended_at = history.job.ended_at
        if history.job.state.is_final and (ended_at is None or clock() - ended_at > DELIVERY_LAG):
            return
        pause(_POLL_SECONDS)
