"""Child processes that never outlive us, whatever ends us: a pipe to a small guard beside each of them.

The guard runs the command in a process group of its own and reads the pipe. When the pipe closes, because we closed it
or because we are gone, it kills the group and removes the folder that the command worked in. This works for SIGKILL
too, and for grandchildren, which PR_SET_PDEATHSIG would miss.
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
    """A command that runs behind a guard."""

    guard: subprocess.Popen[bytes]

    def exit_code(self) -> int | None:
        """The command's exit code; None while it runs."""
        return self.guard.poll()

    def wait(self) -> int:
        """Wait for the command to end by itself, and give its exit code."""
        code = self.guard.wait()
        self._close_pipe()
        return code

    def stop(self) -> None:
        """Kill the command and all that it started; unless it had ended by itself, its folder is removed too."""
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
    """Start a command that ends with us, and with it goes `folder`; its output goes to `log`."""
    guard = [sys.executable, "-I", "-S", __file__, "--folder", str(folder), "--", *map(str, command)]
    with log.open("ab") as output:
        return GuardedProcess(
            subprocess.Popen(
                guard,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C reaches the whole foreground group; the guard waits for us to say when.
                start_new_session=True,
            )
        )


def main() -> None:
    """Run the guard: the command until it ends by itself or the pipe on standard input closes."""
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
    # Nothing is ever written to the pipe: reading returns when its other end is gone.
    os.read(sys.stdin.fileno(), 1)
    end()


def report_end(command: subprocess.Popen[bytes], ending: threading.Event) -> None:
    """Wait for the command to end by itself; its folder stays, for whoever wants to know why it ended."""
    code = command.wait()
    if not ending.is_set():
        kill_group(command)
        os._exit(code if code >= 0 else 128 - code)


def kill_group(command: subprocess.Popen[bytes]) -> None:
    """Kill the command and all that it started."""
    # Nobody is left when the command has ended and so has all that it started.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(command.pid, signal.SIGKILL)
    command.wait()


if __name__ == "__main__":
    main()
