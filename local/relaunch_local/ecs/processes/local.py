"""Runs containers as processes of this machine, each in its own process group, which never outlive the simulator.

Whatever a container has started ends with it.

One difference from Docker: there, a program without a SIGTERM handler ignores the signal as process 1 unless
`initProcessEnabled` is set, and is killed (137) after the stop timeout; here it ends at once (143).
"""

import contextlib
import os
import secrets
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
"""Called with each line of a container's output: awslogs target, milliseconds since the epoch, text."""

# The shell waits until the guard knows the process group, so that a simulator killed in between leaves no process.
_GATE = ("/bin/sh", "-c", 'read -r _go || exit 125; exec "$@" </dev/null', "sh")
_READER_TIMEOUT_SECONDS = 5.0


class LocalProcesses:
    """Runs the commands of containers and passes their output to a sink, from any thread."""

    def __init__(
        self,
        log_sink: LogSink,
        *,
        base_environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start the guard; `base_environment` (default: PATH only) is set in every container."""
        self._log_sink = log_sink
        self._base_environment = dict(base_environment or {"PATH": os.environ.get("PATH", os.defpath)})
        self._lock = threading.Lock()
        self._running: dict[int, _LocalProcess] = {}
        self._closed = False
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def start(self, spec: ProcessSpec, folder: Path | None = None) -> ProcessHandle:
        """Start a container in a folder; without one in that of this process."""
        command = spec.command
        mark = secrets.token_hex(8)
        environment = {**self._base_environment, **spec.environment, guard.MARK: mark}
        if not command:
            raise ProcessStartError("No command specified")
        # A path is one in the container.
        program = str((folder or Path()) / command[0]) if os.sep in command[0] else command[0]
        if shutil.which(program, path=environment.get("PATH")) is None:
            raise ProcessStartError(f'exec: "{command[0]}": executable file not found in $PATH')
        with self._lock:
            if self._closed:
                raise ProcessStartError("the simulator is closing")
            try:
                popen = subprocess.Popen(
                    [*_GATE, *command],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    cwd=folder,
                    start_new_session=True,
                )
            except OSError as error:
                raise ProcessStartError(str(error)) from error
            process = _LocalProcess(popen, mark, spec, self._log_sink, self._forget)
            self._running[popen.pid] = process
            self._notify_guard("+", process)
        process.open_gate()
        return process

    def close(self) -> None:
        """Kill the running containers without reporting their exit, and wait until they have ended."""
        with self._lock:
            self._closed = True
            running = list(self._running.values())
        for process in running:
            process.is_silent = True
            process.kill()
        for process in running:
            process.wait()
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        self._guard.wait()

    def _forget(self, pid: int) -> None:
        with self._lock:
            if (process := self._running.pop(pid, None)) is not None:
                self._notify_guard("-", process)

    def _notify_guard(self, sign: str, process: "_LocalProcess") -> None:
        if self._guard.stdin is not None and not self._guard.stdin.closed:
            self._guard.stdin.write(f"{sign}{process.pid} {process.mark}\n")
            self._guard.stdin.flush()


class _LocalProcess:
    """A container: its main process, its process group, and the threads that read its output and wait for it."""

    def __init__(
        self,
        popen: subprocess.Popen[bytes],
        mark: str,
        spec: ProcessSpec,
        log_sink: LogSink,
        forget: Callable[[int], None],
    ) -> None:
        self.is_silent = False
        self.pid = popen.pid
        self.mark = mark
        self._is_over = False
        self._popen = popen
        self._spec = spec
        self._log_sink = log_sink
        self._forget = forget
        self._reader = threading.Thread(target=self._read, name=f"container-output-{popen.pid}", daemon=True)
        self._waiter = threading.Thread(target=self._wait, name=f"container-exit-{popen.pid}", daemon=True)

    def open_gate(self) -> None:
        """Let the command run, now that the guard knows its process group."""
        if self._popen.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._popen.stdin.write(b"go\n")
                self._popen.stdin.close()
        self._reader.start()
        self._waiter.start()

    def terminate(self) -> None:
        """Send SIGTERM to the main process only, as Docker does."""
        self._popen.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to all its processes, as the kernel does when a container's namespace ends."""
        # Once it is over, the process id may have been reused.
        if not self._is_over:
            guard.kill_container(self.pid, self.mark)

    def wait(self) -> None:
        """Wait until the process has ended."""
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
        # No process of a container outlives its main process.
        self.kill()
        self._is_over = True
        self._reader.join(_READER_TIMEOUT_SECONDS)
        self._forget(self._popen.pid)
        if not self.is_silent:
            self._spec.on_exit(code if code >= 0 else 128 - code, None)
