"""Runs the demo.

Exit status: 0 if both stories ended as expected, 1 if not, 2 if the local world could not be opened, 130 after
Ctrl-C.
"""

import signal
import sys
from types import FrameType

INTERRUPTED = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    """Run the demo until its end or Ctrl-C."""
    for number in SIGNALS:
        signal.signal(number, raise_keyboard_interrupt)
    try:
        # The import takes a second, in which Ctrl-C must not print a traceback either.
        from relaunch_local.demo.command import run  # noqa: PLC0415

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        print("demo: interrupted; the local world is removed", file=sys.stderr)
        sys.exit(INTERRUPTED)


def raise_keyboard_interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, and ignore further signals: removing the local world takes a few seconds."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
