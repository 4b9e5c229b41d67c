"""Child processes that never outlive this process: each runs under a guard that reads a pipe from this process.

The guard runs the command in a new process group. When the pipe closes, because it was closed or because this process
has ended, the guard kills the group and removes the command's folder. This works for SIGKILL and for grandchildren,
which PR_SET_PDEATHSIG does not.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

STOP_SECONDS = 60.0


@dataclass(frozen=True)
class GuardedProcess:
    """A command that runs under a guard."""

    guard: subprocess.Popen[bytes]

    def exit_code(self) -> int | None:
        """Return the command's exit code, or None while it runs."""
        return self.guard.poll()

    def wait(self) -> int:
        """Wait for the command to end and return its exit code."""
        code = self.guard.wait()
        self._close_pipe()
        return code

    def stop(self) -> None:
        """Kill the command and its descendants; its folder is removed unless it had ended by itself."""
        self._close_pipe()
        try:
            self.guard.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.guard.kill()
            self.guard.wait()

    def _close_pipe(self) -> None:
        if self.guard.stdin is not None:
            self.guard.stdin.close()


def start_guarded(
    command: Sequence[str | Path], *, environment: Mapping[str, str], folder: Path, log: Path
) -> GuardedProcess:
    """Start a command that ends with this process, upon which `folder` is removed; its output is appended to `log`."""
    guard = [sys.executable, "-I", "-S", __file__, "--folder", str(folder), "--", *map(str, command)]
    with log.open("ab") as output:
        return GuardedProcess(
            subprocess.Popen(
                guard,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C reaches the whole foreground process group; the guard must wait for the pipe.
                start_new_session=True,
            )
        )


def main() -> None:
    """Run the command until it ends by itself or the pipe on standard input closes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    command = subprocess.Popen(arguments.command, stdin=subprocess.DEVNULL, process_group=0)
    ending = threading.Event()

    def end(_signal: int = 0, _frame: FrameType | None = None) -> None:
        ending.set()
        kill_group(command)
        shutil.rmtree(arguments.folder, ignore_errors=True)
        os._exit(0)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    threading.Thread(target=report_end, args=(command, ending), daemon=True).start()
    # Nothing is written to the pipe: the read returns when the other end is closed.
    os.read(sys.stdin.fileno(), 1)
    end()


def report_end(command: subprocess.Popen[bytes], ending: threading.Event) -> None:
    """Wait for the command to end by itself; its folder is kept, to find out why it ended."""
    code = command.wait()
    if not ending.is_set():
        kill_group(command)
        os._exit(code if code >= 0 else 128 - code)


def kill_group(command: subprocess.Popen[bytes]) -> None:
    """Kill the command and its descendants."""
    # The group is gone if the command and its descendants have ended.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(command.pid, signal.SIGKILL)
    command.wait()


if __name__ == "__main__":
    main()
