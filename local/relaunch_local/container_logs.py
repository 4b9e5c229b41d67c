"""Sends the containers' output to CloudWatch Logs of the emulator, in batches, as the awslogs driver does."""

import logging
import queue
import threading
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass

import boto3
from botocore.exceptions import BotoCoreError, ClientError

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 0.2
"""The awslogs driver waits up to five; the local world is in a hurry."""


@dataclass(frozen=True)
class LogLine:
    """A line that a container wrote, with the time in milliseconds since the epoch."""

    group: str
    stream: str
    text: str
    timestamp: int


class ContainerLogs:
    """Collects lines from any thread, and puts them into their log streams in order."""

    def __init__(self, session: boto3.Session, endpoint_url: str) -> None:
        """Start sending to the emulator there."""
        self._logs = session.client("logs", endpoint_url=endpoint_url)
        self._streams: set[tuple[str, str]] = set()
        self._queue: queue.Queue[LogLine | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="container-logs", daemon=True)
        self._thread.start()

    def write(self, group: str, stream: str, text: str) -> None:
        """Take a line; returns before it is sent. CloudWatch refuses empty lines, so they are left out."""
        if text:
            self._queue.put(LogLine(group, stream, text, time.time_ns() // 1_000_000))

    def close(self) -> None:
        """Send what has been taken, and stop."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        is_open = True
        while is_open:
            first = self._queue.get()
            if first is None:
                return
            time.sleep(FLUSH_SECONDS)
            lines, is_open = self._take_waiting(first)
            self._send(lines)

    def _take_waiting(self, first: LogLine) -> tuple[list[LogLine], bool]:
        lines = [first]
        with suppress(queue.Empty):
            while True:
                line = self._queue.get_nowait()
                if line is None:
                    return lines, False
                lines.append(line)
        return lines, True

    def _send(self, lines: list[LogLine]) -> None:
        by_stream: defaultdict[tuple[str, str], list[LogLine]] = defaultdict(list)
        for line in lines:
            by_stream[line.group, line.stream].append(line)
        for (group, stream), batch in by_stream.items():
            try:
                self._create_stream(group, stream)
                self._logs.put_log_events(
                    logGroupName=group,
                    logStreamName=stream,
                    logEvents=[{"timestamp": line.timestamp, "message": line.text} for line in batch],
                )
            except (ClientError, BotoCoreError):
                logger.exception("sending the output of %s", stream)

    def _create_stream(self, group: str, stream: str) -> None:
        if (group, stream) in self._streams:
            return
        with suppress(self._logs.exceptions.ResourceAlreadyExistsException):
            self._logs.create_log_group(logGroupName=group)
        with suppress(self._logs.exceptions.ResourceAlreadyExistsException):
            self._logs.create_log_stream(logGroupName=group, logStreamName=stream)
        self._streams.add((group, stream))
