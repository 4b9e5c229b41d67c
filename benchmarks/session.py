"""What the benchmarks of a run share: the number of rounds, and the recording."""

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
    """Return the cases in another order for each round."""
    start = number % len(cases)
    return [*cases[start:], *cases[:start]]


class Session:
    """A run of benchmarks.

    Each case is measured `rounds` times. Cases are interleaved, so that a busy machine slows all of them.
    `resources` is closed by the caller, which ends what the session has started.
    """

    def __init__(self, rounds: int, resources: ExitStack) -> None:
        self.rounds = rounds
        self._resources = resources

    def counted(self) -> Iterator[bool]:
        """Yield for each round whether it counts: the first of several only warms the page cache.

        On a busy machine there are fewer rounds than requested, to limit the time.
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
        """The number of events where one takes milliseconds."""
        return min(PUSHES, 100 * self.rounds)

    @cached_property
    def recording(self) -> Recording:
        """The recording, which is made when it is first used.

        Raises:
            NotBuiltError: the application is not built, or has changed since.
        """
        return self._resources.enter_context(record_calls())
