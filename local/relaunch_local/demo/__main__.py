"""The demo as a program; see its package.

Exit status: 0 when the story came true, 1 when it did not, 2 when the local world could not be opened, 130 after
Ctrl-C.
"""

import signal
import sys
from types import FrameType

INTERRUPTED = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    """Show the story until its end, or until Ctrl-C."""
    for number in SIGNALS:
        signal.signal(number, interrupt)
    try:
        # Takes a second, in which Ctrl-C must not leave a traceback either.
        from relaunch_local.demo.command import show  # noqa: PLC0415

        sys.exit(show(sys.argv[1:]))
    except KeyboardInterrupt:
        print("demo: interrupted; everything is taken down", file=sys.stderr)
        sys.exit(INTERRUPTED)


def interrupt(_signal: int, _frame: FrameType | None) -> None:
    """End; a second Ctrl-C would only disturb the taking down, which lasts a few seconds at most."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
