"""Runs the commands of containers on this machine with a task's environment: endpoints, credentials, log stream."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from relaunch_local.ecs import LocalProcesses, LogTarget, ProcessSpec, ProcessStartError
from relaunch_local.ecs.processes.port import ProcessHandle
from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.emulator import Emulator

EXAMPLES = REPOSITORY / "examples"


class LogSink(Protocol):
    """Takes the output of containers, from any thread."""

    def write(self, target: LogTarget | None, timestamp: int, text: str) -> None:
        """Take a line; `timestamp` is in milliseconds since the epoch."""


class Containers:
    """Implements Processes with local processes; they can start once `connect` has been called."""

    def __init__(self) -> None:
        """Run commands in examples/, which stands for the trainer's image, with this interpreter on PATH."""
        path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
        self._processes = LocalProcesses(
            self._take_line,
            base_environment={"PATH": path, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            working_directory=EXAMPLES,
        )
        self._logs: LogSink | None = None
        self._environment: dict[str, str] | None = None

    def connect(self, emulator: Emulator, credentials: dict[str, str], logs: LogSink) -> None:
        """Give containers the emulator's endpoint and the task role's credentials, and send their output to `logs`."""
        self._environment = emulator.environment() | credentials
        self._logs = logs

    def start(self, spec: ProcessSpec) -> ProcessHandle:
        if self._environment is None:
            raise ProcessStartError("the local world is still being set up")
        return self._processes.start(replace(spec, environment={**self._environment, **spec.environment}))

    def close(self) -> None:
        self._processes.close()

    def _take_line(self, target: LogTarget | None, timestamp: int, line: str) -> None:
        if self._logs is not None:
            self._logs.write(target, timestamp, line)
