"""Kills process groups when the process that started the guard has ended, for whatever reason.

Run as a program: each line of standard input adds (`+123`) or removes (`-123`) a process group. At the end of the
input, which the kernel guarantees even after SIGKILL of the writer, every remaining group is killed.
"""

import contextlib
import os
import signal
import sys


def main() -> None:
    """Read until the pipe is closed, then kill the remaining process groups."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        if line.startswith("+"):
            groups.add(group)
        else:
            groups.discard(group)
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
