"""Kills containers when the process that started the guard has ended, for whatever reason.

Run as a program: each line of standard input adds (`+123 MARK`) or removes (`-123 MARK`) a container. At the end of the
input, which the kernel guarantees even after SIGKILL of the writer, every remaining one is killed.

A container is the process group 123, and whatever has its mark in the environment: torchrun gives each worker a session
of its own, which outlives the group, while nothing outlives the namespace of a container. Without /proc it is the group
alone.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

MARK = "RELAUNCH_LOCAL_CONTAINER"
"""The variable of a container's processes that says which container it is."""
_SECONDS = 5.0
_PAUSE_SECONDS = 0.01
# A process that is just being started has no environment for a moment: execve closes the files of its caller before it
# has made the new one.
_LOOKS = 5


def main() -> None:
    """Read until the pipe is closed, then kill the remaining containers."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    containers: set[tuple[int, str]] = set()
    for line in sys.stdin:
        group, mark = line[1:].split()
        if line.startswith("+"):
            containers.add((int(group), mark))
        else:
            containers.discard((int(group), mark))
    for each in containers:
        kill_container(*each)


def kill_container(group: int, mark: str) -> None:
    """Kill the processes of a container, and what they start meanwhile, as the kernel does at a namespace's end."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    end = time.monotonic() + _SECONDS
    none_seen = 0
    while none_seen < _LOOKS and time.monotonic() < end:
        found = list(_marked(mark))
        none_seen = 0 if found else none_seen + 1
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_PAUSE_SECONDS)


def _marked(mark: str) -> Iterator[int]:
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        # Those of others cannot be read, and those that have ended have none.
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)


if __name__ == "__main__":
    main()
