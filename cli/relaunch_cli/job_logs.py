"""Logs of a job: those of the tasks of all its attempts, in order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from relaunch.core.jobs.attempt import Attempt
    from relaunch.core.jobs.runs import JobRuns, Run
    from relaunch.ports import JobHistory

# The awslogs driver sends its buffer every five seconds: this long after the end of its task a stream is complete.
DELIVERY_LAG = timedelta(seconds=15)
_POLL_SECONDS = 2.0


class LogEvent(NamedTuple):
    """One log event of CloudWatch Logs."""

    at: datetime
    message: str


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
        self, destination: LogDestination, stream: str, token: str | None, since: datetime | None = None
    ) -> tuple[list[LogEvent], str | None]:
        """Return the next events of a stream and the token to continue from; nothing while there is no stream.

        Events before `since` are left out.
        """
        ...

    def tail(
        self, destination: LogDestination, stream: str, count: int, since: datetime | None = None
    ) -> tuple[list[LogEvent], str | None]:
        """Return the newest events of a stream, at most `count`, and the token to continue from behind them."""
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
        self._tokens: dict[str, str | None] = {}
        self._complete: set[str] = set()
        self._destinations: dict[str, LogDestination] = {}

    def read(self, history: "JobHistory | JobRuns", now: datetime) -> Iterator[LogLine]:
        """Yield the new lines of all attempts, in order."""
        for attempt, task_arn in self._attempts(history):
            if task_arn not in self._complete:
                yield from self._read_attempt(attempt, task_arn, history.job.revision.arn)
                if attempt.stop is not None and now - attempt.stop.at > DELIVERY_LAG:
                    self._complete.add(task_arn)

    def tail(self, history: "JobHistory | JobRuns", count: int) -> list[LogLine]:
        """Return the newest lines of all attempts, at most `count`, in order; `read` yields those after them."""
        lines: list[LogLine] = []
        newest_first = reversed(list(self._attempts(history)))
        for position, (attempt, task_arn) in enumerate(newest_first):
            if position and len(lines) == count:
                self._complete.add(task_arn)
                continue
            destination, stream = self._find_stream(task_arn, history.job.revision.arn)
            events, self._tokens[task_arn] = self._source.tail(destination, stream, count - len(lines), self._since)
            lines = [LogLine(attempt.number, event.at, event.message) for event in events] + lines
        return lines

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

    def _read_attempt(self, attempt: "Attempt | Run", task_arn: str, revision_arn: str) -> Iterator[LogLine]:
        destination, stream = self._find_stream(task_arn, revision_arn)
        while True:
            token = self._tokens.get(task_arn)
            events, following = self._source.read(destination, stream, token, self._since)
            for event in events:
                yield LogLine(attempt.number, event.at, event.message)
            self._tokens[task_arn] = following
            if following is None or following == token:
                return


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
