"""Kills process groups when the process that started it is gone, however it went.

Run as a program: each line of standard input adds (`+123`) or removes (`-123`) a process group; at the end of the
input, which the kernel guarantees even after SIGKILL of the writer, every group that is left gets SIGKILL.
"""

import contextlib
import os
import signal
import sys


def main() -> None:
    """Read until the writer is gone, then kill what is left."""
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
