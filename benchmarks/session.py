"""What the benchmarks of one run share: how often they measure, and the story that several of them replay."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import TypeVar

from benchmarks.recording import Recording, record_calls

T = TypeVar("T")

PUSHES = 1_000
TIMEOUT_SECONDS = 110.0


def rotated(cases: Sequence[T], number: int) -> list[T]:
    """Return the cases beginning with another one in each round: none always follows the same."""
    start = number % len(cases)
    return [*cases[start:], *cases[:start]]


class Session:
    """One run of some benchmarks.

    `rounds` is how often each case is measured. Cases are interleaved: what slows the machine slows all of them.
    `resources` ends, when it is closed, what the session started.
    """

    def __init__(self, rounds: int, resources: ExitStack) -> None:
        self.rounds = rounds
        self._resources = resources

    def counted(self) -> Iterator[bool]:
        """Tell of each round whether it counts: the first of several warms the page cache, and does not.

        On a busy machine there are fewer rounds than were asked for, so that an end can be foreseen.
        """
        started = time.monotonic()
        if self.rounds > 1:
            yield False
        for number in range(self.rounds):
            if number and time.monotonic() - started > TIMEOUT_SECONDS:
                return
            yield True

    @property
    def pushes(self) -> int:
        """How many events are decided on where one takes milliseconds."""
        return min(PUSHES, 100 * self.rounds)

    @cached_property
    def recording(self) -> Recording:
        """The recorded recording, reported when it is first asked for.

        Raises:
            NotBuiltError: the application is not built, or has changed since.
        """
        return self._resources.enter_context(record_calls())
