"""Logs of tasks on Kubernetes: those of the containers of their pods, by the Kubernetes API.

A cluster keeps the log of a pod as long as the pod: of one that was evicted or deleted there is none.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from relaunch.adapters.kubernetes.api.errors import NotFoundError
from relaunch.adapters.kubernetes.gang_observation import rank_of
from relaunch.adapters.kubernetes.labels import select_tasks
from relaunch_cli.job_logs import MOST_EMPTY_PAGES, LogDestination, Tail
from relaunch_cli.log_positions import LogEvent

if TYPE_CHECKING:
    from relaunch.adapters.kubernetes.api.models import Pod

# `2026-03-14T09:26:53.589793238Z`: as many digits as a time of Python has.
_MICROSECONDS = 26


class PodReader(Protocol):
    """What is read of the Kubernetes API (adapters.kubernetes.api.client)."""

    def list_pods(self, label_selector: str = "") -> "Iterator[Sequence[Pod]]": ...

    def read_log(self, pod: str, container: str, *, since_time: datetime | None = None) -> Iterator[str]: ...


class PodLogs:
    """Implements PodLogSource for the tasks of a stack; a token is the time of the last line that was read."""

    def __init__(self, pods: PodReader, stack: str, rank: int = 0) -> None:
        self._pods = pods
        self._stack = stack
        self._rank = rank

    def of_rank(self, rank: int) -> "PodLogs":
        return PodLogs(self._pods, self._stack, rank)

    def destination(self, revision_arn: str, container: str) -> LogDestination:
        return LogDestination(container, revision_arn)

    def read(
        self,
        destination: LogDestination,
        stream: str,
        token: str | None,
        since: datetime | None = None,
        *,
        until: datetime | None = None,  # noqa: ARG002 - it comes whole
    ) -> tuple[list[LogEvent], str | None]:
        selector = select_tasks(self._stack, [stream.rsplit("/", 1)[-1]])
        pods = [pod for page in self._pods.list_pods(selector) for pod in page]
        names = [pod.metadata.name for pod in pods if rank_of(pod) == self._rank]
        start = _read_time(token) if token else since
        read: list[tuple[str, str]] = []
        for name in names:
            try:
                read += [_split(line) for line in self._pods.read_log(name, destination.group, since_time=start)]
            except NotFoundError:
                # It was deleted meanwhile.
                continue
        new = [(at, message) for at, message in read if at and (token is None or at > token)]
        events = [LogEvent(_read_time(at), message) for at, message in new]
        # The server counts in whole seconds.
        wanted = [event for event in events if since is None or event.at >= since]
        return wanted, max((at for at, _ in new), default=token)

    def tail(
        self,
        destination: LogDestination,
        stream: str,
        count: int,
        since: datetime | None = None,
        *,
        until: datetime | None = None,
        most_empty: int = MOST_EMPTY_PAGES,  # noqa: ARG002 - it has no pages
    ) -> Tail:
        events, token = self.read(destination, stream, None, since, until=until)
        return Tail(events[-count:] if count else [], token)

    def kept_for(self, destination: LogDestination) -> timedelta | None:  # noqa: ARG002 - it is kept with its pod
        return None


def _split(line: str) -> tuple[str, str]:
    at, _, message = line.rstrip("\n").partition(" ")
    return at, message


def _read_time(text: str) -> datetime:
    return datetime.fromisoformat(text.rstrip("Z")[:_MICROSECONDS] + "+00:00")
