"""Looks at processes of this machine."""

import time
from collections.abc import Callable
from pathlib import Path


def is_alive(process: int) -> bool:
    """Return whether a process has not ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in ("Z", "X")


def becomes(condition: Callable[[], bool], timeout_seconds: float = 300.0) -> bool:
    """Return whether a condition becomes true; SIGKILL takes effect with a delay."""
    deadline = time.monotonic() + timeout_seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()
