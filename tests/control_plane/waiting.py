"""Waits for what a control plane does in its own time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Nothing that waits for a server on a busy machine gives up within minutes.
PATIENCE_SECONDS = 300.0


def wait_for(what: str, ask: Callable[[], T | None], pause_seconds: float = 0.05) -> T:
    """Return what `ask` returns once that is true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = ask()
        if found:
            return found
        assert time.monotonic() < deadline, f"there is still no {what}; last seen: {found!r}"
        time.sleep(pause_seconds)
