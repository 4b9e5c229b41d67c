"""Runs the commands of containers on this machine with a task's environment: endpoints, credentials, log stream."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from relaunch_local.ecs import LocalProcesses, LogTarget, ProcessSpec, ProcessStartError
from relaunch_local.ecs.processes.port import ProcessHandle
from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.emulator import Emulator

EXAMPLES = REPOSITORY / "examples"
MACHINE_ADDRESS = "MACHINE_ADDRESS"
"""The variable of a container on the network of its machine that has the machine's address.

A container on a machine of EC2 sees no address but this one; here it sees all of loopback.
"""


def base_environment() -> dict[str, str]:
    """Return what every container has: this interpreter on PATH, first, and its output at once."""
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
    return {"PATH": path, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}


class LogSink(Protocol):
    """Takes the output of containers, from any thread."""

    def open(self, target: LogTarget | None) -> None:
        """Prepare for the output of a container; raises ProcessStartError if there is no place for it."""

    def write(self, target: LogTarget | None, timestamp: int, text: str) -> None:
        """Take a line; `timestamp` is in milliseconds since the epoch."""


@dataclass(frozen=True)
class ImageFiles:
    """What stands for an image: the files in its working directory, its ENTRYPOINT and CMD, and where programs are."""

    folder: Path
    entry_point: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    path: str = ""


FindImage = Callable[[str], ImageFiles | None]
"""Returns what stands for an image, by its reference; None for one that there is not."""


class Containers:
    """Implements Processes with local processes; they can start once `connect` has been called."""

    def __init__(self, find_image: FindImage = lambda _image: ImageFiles(EXAMPLES)) -> None:
        """Run commands in the files of images, with this interpreter on PATH; examples/ stands for every image."""
        self._find_image = find_image
        environment = base_environment()
        self._path = environment["PATH"]
        self._processes = LocalProcesses(self._take_line, base_environment=environment)
        self._logs: LogSink | None = None
        self._environment: dict[str, str] | None = None

    def connect(self, emulator: Emulator, credentials: dict[str, str], logs: LogSink) -> None:
        """Give containers the emulator's endpoint and the task role's credentials, and send their output to `logs`."""
        self._environment = emulator.environment() | credentials
        self._logs = logs

    def start(self, spec: ProcessSpec) -> ProcessHandle:
        if self._environment is None or self._logs is None:
            raise ProcessStartError("the local world is still being set up")
        self._logs.open(spec.log_target)
        image = self._find_image(spec.image)
        if image is None:
            raise ProcessStartError(f"nothing was pushed as {spec.image}: `relaunch local push` does that")
        environment = {**self._environment, **spec.environment}
        if spec.address:
            environment[MACHINE_ADDRESS] = spec.address
        if image.path:
            environment.setdefault("PATH", os.pathsep.join([image.path, self._path]))
        started = replace(spec, environment=environment, command=_program(spec, image))
        if image.folder == EXAMPLES:
            return self._processes.start(started, EXAMPLES)
        return self._start_in_copy(started, image.folder)

    def close(self) -> None:
        self._processes.close()

    def _start_in_copy(self, spec: ProcessSpec, folder: Path) -> ProcessHandle:
        """Start a container in files of its own, which end with it: a machine has nothing of another one's disk."""
        own = Path(tempfile.mkdtemp(prefix="container-", dir=folder.parent))
        shutil.copytree(folder, own, symlinks=True, dirs_exist_ok=True)
        try:
            return self._processes.start(replace(spec, on_exit=partial(_end, own, spec)), own)
        except ProcessStartError:
            shutil.rmtree(own, ignore_errors=True)
            raise

    def _take_line(self, target: LogTarget | None, timestamp: int, line: str) -> None:
        if self._logs is not None:
            self._logs.write(target, timestamp, line)


def _end(own: Path, spec: ProcessSpec, exit_code: int, reason: str | None) -> None:
    shutil.rmtree(own, ignore_errors=True)
    spec.on_exit(exit_code, reason)


def _program(spec: ProcessSpec, image: ImageFiles) -> tuple[str, ...]:
    """Return what Docker runs: an entry point of the task definition leaves out ENTRYPOINT and CMD, a command CMD."""
    if spec.has_entry_point:
        return spec.command
    return (*image.entry_point, *(spec.command or image.command))
