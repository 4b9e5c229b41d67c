"""Runs containers' commands on this machine with what a task has on AWS: endpoints, a role, a log stream."""

import os
import sys
from dataclasses import replace
from pathlib import Path

from relaunch_local.ecs import LocalProcesses, LogTarget, ProcessSpec, ProcessStartError
from relaunch_local.ecs.processes.port import ProcessHandle
from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.account import TaskCredentials
from relaunch_local.stack.container_logs import ContainerLogs
from relaunch_local.stack.emulator import Emulator

EXAMPLES = REPOSITORY / "examples"


class Containers:
    """Implements Processes over real ones; the emulator and the tasks' role are there only after the simulator is."""

    def __init__(self) -> None:
        """Run commands in examples/, the content of the trainer's image, with the interpreter that runs us."""
        path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
        self._processes = LocalProcesses(
            self._take_line,
            base_environment={"PATH": path, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            working_directory=EXAMPLES,
        )
        self._logs: ContainerLogs | None = None
        self._environment: dict[str, str] | None = None

    def connect(self, emulator: Emulator, credentials: TaskCredentials, logs: ContainerLogs) -> None:
        """Let containers reach the emulator with the tasks' credentials, and their output reach CloudWatch Logs."""
        self._environment = emulator.environment() | credentials.environment()
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
