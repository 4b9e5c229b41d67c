"""Asks again what was not answered, or not now, ever more seldom; a cancelled workflow waits for nothing more."""

from __future__ import annotations

import random
import signal
import time
from dataclasses import dataclass, field
from typing import Any, Callable, TypeVar

from relaunch_action.errors import UnavailableError

Answer = TypeVar("Answer")

ATTEMPTS = 6
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 16.0
# time.sleep goes on after a signal: how late one is noticed.
_TICK_SECONDS = 0.2


class Cancellation:
    """Whether the workflow run was cancelled.

    The runner sends SIGINT to the process of the step, SIGTERM 7.5 seconds later, and kills it after 2.5 more
    ("Workflow cancellation reference", GitHub Docs).
    """

    def __init__(self) -> None:
        self.is_requested = False

    def watch(self) -> None:
        """Notice SIGINT and SIGTERM from now on, instead of ending by them."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.request)

    def request(self, *_: Any) -> None:
        """Notice a signal."""
        self.is_requested = True


@dataclass
class Patience:
    """The time that passes, and the chance in it; tests bring their own."""

    cancellation: Cancellation = field(default_factory=Cancellation)
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random

    def pause(self, seconds: float) -> None:
        """Wait; end early when the workflow is cancelled."""
        until = self.clock() + seconds
        while not self.cancellation.is_requested and (left := until - self.clock()) > 0:
            self.sleep(min(left, _TICK_SECONDS))

    def insist(self, ask: Callable[[], Answer]) -> Answer:
        """Return the answer of `ask`, which is asked again while it raises UnavailableError.

        After a cancellation it is asked once more at most.

        Raises:
            UnavailableError: the last one.
        """
        pause = _FIRST_PAUSE_SECONDS
        for _ in range(ATTEMPTS - 1):
            was_cancelled = self.cancellation.is_requested
            try:
                return ask()
            except UnavailableError:
                if was_cancelled:
                    raise
            # Jobs of a matrix ask at once: each waits for a time of its own.
            self.pause(pause * (0.5 + self.chance() / 2))
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        return ask()
