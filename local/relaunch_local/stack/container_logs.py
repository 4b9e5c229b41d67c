"""Sends the output of containers to CloudWatch Logs in batches, as the awslogs driver does."""

import logging
import queue
import threading
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from relaunch_local.ecs import LogTarget, ProcessStartError
from relaunch_local.stack.emulator import Emulator

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 0.2
"""The awslogs driver flushes every five seconds."""


@dataclass(frozen=True)
class LogLine:
    """A line of a container's output; `timestamp` is in milliseconds since the epoch."""

    target: LogTarget
    timestamp: int
    text: str


class ContainerLogs:
    """Collects lines from any thread and writes them to their log streams in order."""

    def __init__(self, emulator: Emulator) -> None:
        """Start the thread that sends to the emulator."""
        self._logs = emulator.client("logs")
        self._queue: queue.Queue[LogLine | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="container-logs", daemon=True)
        self._thread.start()

    def open(self, target: LogTarget | None) -> None:
        """Create the log stream of a container that is about to start, as the awslogs driver does; it makes no group.

        Raises:
            ProcessStartError: the log group does not exist.
        """
        if target is None:
            return
        with suppress(self._logs.exceptions.ResourceAlreadyExistsException):
            try:
                self._logs.create_log_stream(logGroupName=target.group, logStreamName=target.stream)
            except self._logs.exceptions.ResourceNotFoundException as error:
                raise ProcessStartError(
                    "failed to initialize logging driver: failed to create Cloudwatch log stream: "
                    "ResourceNotFoundException: The specified log group does not exist."
                ) from error

    def write(self, target: LogTarget | None, timestamp: int, text: str) -> None:
        """Queue a line; empty lines, which CloudWatch Logs rejects, are dropped."""
        if target is not None and text:
            self._queue.put(LogLine(target, timestamp, text))

    def close(self) -> None:
        """Send the queued lines and stop the thread."""
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
        by_target: defaultdict[LogTarget, list[LogLine]] = defaultdict(list)
        for line in lines:
            by_target[line.target].append(line)
        for target, batch in by_target.items():
            try:
                self._logs.put_log_events(
                    logGroupName=target.group,
                    logStreamName=target.stream,
                    logEvents=[{"timestamp": line.timestamp, "message": line.text} for line in batch],
                )
            except (ClientError, BotoCoreError):
                logger.exception("sending the output of %s", target.stream)
