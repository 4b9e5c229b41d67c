"""Sends the containers' output to CloudWatch Logs of the emulator, in batches, as the awslogs driver does."""

import logging
import queue
import threading
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from relaunch_local.ecs import LogTarget
from relaunch_local.stack.emulator import Emulator

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 0.2
"""The awslogs driver waits up to five; the local world is in a hurry."""


@dataclass(frozen=True)
class LogLine:
    """A line that a container wrote, at a time in milliseconds since 1970."""

    target: LogTarget
    timestamp: int
    text: str


class ContainerLogs:
    """Collects lines from any thread, and puts them into their log streams in order."""

    def __init__(self, emulator: Emulator) -> None:
        """Start sending to the emulator."""
        self._logs = emulator.client("logs")
        self._streams: set[LogTarget] = set()
        self._queue: queue.Queue[LogLine | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="container-logs", daemon=True)
        self._thread.start()

    def write(self, target: LogTarget | None, timestamp: int, text: str) -> None:
        """Take a line; returns before it is sent. CloudWatch refuses empty lines, so they are left out."""
        if target is not None and text:
            self._queue.put(LogLine(target, timestamp, text))

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
        by_target: defaultdict[LogTarget, list[LogLine]] = defaultdict(list)
        for line in lines:
            by_target[line.target].append(line)
        for target, batch in by_target.items():
            try:
                self._create_stream(target)
                self._logs.put_log_events(
                    logGroupName=target.group,
                    logStreamName=target.stream,
                    logEvents=[{"timestamp": line.timestamp, "message": line.text} for line in batch],
                )
            except (ClientError, BotoCoreError):
                logger.exception("sending the output of %s", target.stream)

    def _create_stream(self, target: LogTarget) -> None:
        if target in self._streams:
            return
        exists = self._logs.exceptions.ResourceAlreadyExistsException
        with suppress(exists):
            self._logs.create_log_group(logGroupName=target.group)
        with suppress(exists):
            self._logs.create_log_stream(logGroupName=target.group, logStreamName=target.stream)
        self._streams.add(target)
