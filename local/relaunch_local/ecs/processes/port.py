"""The port for container processes, and an implementation that follows scripts on a clock."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from relaunch_local.ecs.clock import Clock, Timer

SIGTERM_EXIT = 143
SIGKILL_EXIT = 137
"""128 plus the signal number, as Docker reports a process that was ended by a signal."""


class ProcessStartError(Exception):
    """The container could not be started."""


@dataclass(frozen=True, slots=True)
class LogTarget:
    """The log group and log stream of a container's output."""

    group: str
    stream: str


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """A container to start."""

    task_arn: str
    family: str
    container: str
    image: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    on_exit: Callable[[int, str | None], None]
    """Called once, from any thread, with the exit code and Docker's reason, if any."""
    log_target: LogTarget | None = None
    instance_id: str = ""
    started_by: str = ""
    has_entry_point: bool = False
    """Whether the task definition has an entry point, in the place of the image's."""
    address: str = ""
    """The private address at which other machines reach it: that of its instance in the network mode `host`."""
    has_init: bool = False
    """Whether an init process passes signals on (`initProcessEnabled`): else the program is the container's PID 1."""


class ProcessHandle(Protocol):
    """A started container."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def kill(self) -> None:
        """Send SIGKILL."""


class Processes(Protocol):
    """Starts containers."""

    def start(self, spec: ProcessSpec) -> ProcessHandle:
        """Start a container.

        `on_exit` is not called before `start` has returned.

        Raises:
            ProcessStartError: The command cannot be started.
        """

    def close(self) -> None:
        """Kill the running containers without reporting their exit."""


@dataclass(frozen=True, slots=True)
class Script:
    """The behaviour of a scripted container."""

    runtime_seconds: float | None = 60.0
    """Time until it exits by itself; None: never."""
    exit_code: int = 0
    reason: str | None = None
    """Docker's, such as `OutOfMemoryError: Container killed due to memory usage`."""
    sigterm_delay_seconds: float | None = 0.0
    """Time from SIGTERM to its exit; None: it ignores SIGTERM."""
    sigterm_exit_code: int = SIGTERM_EXIT
    start_error: str | None = None


@dataclass(slots=True, eq=False)
class _ScriptedProcess:
    clock: Clock
    script: Script
    spec: ProcessSpec
    timer: Timer | None = None
    is_over: bool = False

    def exit_after(self, seconds: float, code: int, reason: str | None = None) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = self.clock.call_later(seconds, lambda: self._exit(code, reason))

    def terminate(self) -> None:
        if not self.is_over and self.script.sigterm_delay_seconds is not None:
            self.exit_after(self.script.sigterm_delay_seconds, self.script.sigterm_exit_code)

    def kill(self) -> None:
        if not self.is_over:
            self.exit_after(0.0, SIGKILL_EXIT)

    def _exit(self, code: int, reason: str | None) -> None:
        if not self.is_over:
            self.is_over = True
            self.spec.on_exit(code, reason)


@dataclass(slots=True)
class ScriptedProcesses:
    """Containers that follow the scripts that a function returns for them."""

    clock: Clock
    script_of: Callable[[ProcessSpec], Script] = lambda _spec: Script()
    started: list[ProcessSpec] = field(default_factory=list)
    """The started containers, in order."""

    def start(self, spec: ProcessSpec) -> ProcessHandle:
        script = self.script_of(spec)
        if script.start_error is not None:
            raise ProcessStartError(script.start_error)
        self.started.append(spec)
        process = _ScriptedProcess(self.clock, script, spec)
        if script.runtime_seconds is not None:
            process.exit_after(script.runtime_seconds, script.exit_code, script.reason)
        return process

    def close(self) -> None:
        """Do nothing: no process runs."""
