"""Containers as real processes of this machine, each in a group of its own, none of which outlives the simulator.

One difference from Docker: there a program without a SIGTERM handler ignores the signal as process 1, unless
`initProcessEnabled` is set, and is killed with 137 after the stop timeout; here it ends at once with 143.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from relaunch_local.ecs.processes import guard
from relaunch_local.ecs.processes.port import LogTarget, ProcessHandle, ProcessSpec, ProcessStartError

LogSink = Callable[[LogTarget | None, int, str], None]
"""Gets a container's output line by line: where awslogs would send it, milliseconds since 1970, the line."""

# The shell waits until the lifeline knows the group: a simulator killed in between leaves no process behind.
_GATE = ("/bin/sh", "-c", 'read -r _go || exit 125; exec "$@" </dev/null', "sh")
_READER_PATIENCE_SECONDS = 5.0


def drop_line(_target: LogTarget | None, _timestamp_ms: int, _line: str) -> None:
    """Let a line of output go."""


class LocalProcesses:
    """Runs containers' commands with the given base environment and hands their output to a sink, from any thread."""

    def __init__(
        self,
        log_sink: LogSink = drop_line,
        *,
        base_environment: Mapping[str, str] | None = None,
        working_directory: Path | None = None,
        image_commands: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        """Take what every container gets (default: only PATH) and the commands of images that bring their own."""
        self._log_sink = log_sink
        self._base_environment = dict(base_environment or {"PATH": os.environ.get("PATH", os.defpath)})
        self._working_directory = working_directory
        self._image_commands = dict(image_commands or {})
        self._lock = threading.Lock()
        self._running: dict[int, _LocalProcess] = {}
        self._closed = False
        self._lifeline = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def start(self, spec: ProcessSpec) -> ProcessHandle:
        command = spec.command or self._image_commands.get(spec.image, ())
        environment = {**self._base_environment, **spec.environment}
        if not command:
            message = "No command specified"
            raise ProcessStartError(message)
        if shutil.which(command[0], path=environment.get("PATH")) is None:
            message = f'exec: "{command[0]}": executable file not found in $PATH'
            raise ProcessStartError(message)
        return self._start(spec, command, environment)

    def close(self) -> None:
        """Kill everything that still runs, without reporting it, and wait until it is gone."""
        with self._lock:
            self._closed = True
            running = list(self._running.values())
        for process in running:
            process.is_silent = True
            process.kill()
        for process in running:
            process.wait()
        if self._lifeline.stdin is not None:
            self._lifeline.stdin.close()
        self._lifeline.wait()

    def _start(self, spec: ProcessSpec, command: tuple[str, ...], environment: Mapping[str, str]) -> "_LocalProcess":
        with self._lock:
            if self._closed:
                message = "the simulator is closing"
                raise ProcessStartError(message)
            try:
                popen = subprocess.Popen(
                    [*_GATE, *command],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env=dict(environment),
                    cwd=self._working_directory,
                    start_new_session=True,
                )
            except OSError as error:
                raise ProcessStartError(str(error)) from error
            process = _LocalProcess(popen, spec, self._log_sink, self._forget)
            self._running[popen.pid] = process
            self._tell_lifeline("+", popen.pid)
        process.open_gate()
        return process

    def _forget(self, pid: int) -> None:
        with self._lock:
            if self._running.pop(pid, None) is not None:
                self._tell_lifeline("-", pid)

    def _tell_lifeline(self, sign: str, pid: int) -> None:
        if self._lifeline.stdin is not None and not self._lifeline.stdin.closed:
            self._lifeline.stdin.write(f"{sign}{pid}\n")
            self._lifeline.stdin.flush()


class _LocalProcess:
    """One container: its main process, the group around it, and the threads that read and wait."""

    def __init__(
        self, popen: subprocess.Popen[bytes], spec: ProcessSpec, log_sink: LogSink, forget: Callable[[int], None]
    ) -> None:
        self.is_silent = False
        self._is_over = False
        self._popen = popen
        self._spec = spec
        self._log_sink = log_sink
        self._forget = forget
        self._reader = threading.Thread(target=self._read, name=f"container-output-{popen.pid}", daemon=True)
        self._waiter = threading.Thread(target=self._wait, name=f"container-exit-{popen.pid}", daemon=True)

    def open_gate(self) -> None:
        """Let the command run, now that somebody will end it in any case."""
        if self._popen.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._popen.stdin.write(b"go\n")
                self._popen.stdin.close()
        self._reader.start()
        self._waiter.start()

    def terminate(self) -> None:
        """SIGTERM to the main process only, as Docker does."""
        self._popen.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to the whole group, as the end of a container's namespace does."""
        if self._is_over:
            # The number may belong to somebody else by now.
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait until it is gone."""
        self._waiter.join()

    def _read(self) -> None:
        if self._popen.stdout is None:
            return
        with self._popen.stdout as output:
            for line in output:
                text = line.decode(errors="replace").rstrip("\r\n")
                self._log_sink(self._spec.log_target, time.time_ns() // 1_000_000, text)

    def _wait(self) -> None:
        code = self._popen.wait()
        # Nothing of a container outlives its main process.
        self.kill()
        self._is_over = True
        self._reader.join(_READER_PATIENCE_SECONDS)
        self._forget(self._popen.pid)
        if not self.is_silent:
            self._spec.on_exit(code if code >= 0 else 128 - code, None)
