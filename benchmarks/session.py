"""What the benchmarks of a run share: the number of rounds, and the recording."""

import time
from collections.abc import Callable, Mapping, Sequence
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
    `resources` is closed by the caller, which ends what the session has started. With `writes_ratios` the ratios of
    cold starts are written down as those of the last measured version.
    """

    def __init__(self, rounds: int, resources: ExitStack, *, writes_ratios: bool = False) -> None:
        self.rounds = rounds
        self.writes_ratios = writes_ratios
        self._resources = resources

    def collect(self, measure_round: Callable[[int], Mapping[str, T]]) -> dict[str, list[T]]:
        """Measure rounds, given their number; return the samples of each case. The first of several does not count.

        It only warms the page cache. On a busy machine there are fewer rounds than requested, to limit the time.
        """
        started = time.monotonic()
        samples: dict[str, list[T]] = {case: [] for case in measure_round(0)} if self.rounds > 1 else {}
        for number in range(self.rounds):
            if number and time.monotonic() - started > TIMEOUT_SECONDS:
                break
            for case, sample in measure_round(number + (self.rounds > 1)).items():
                samples.setdefault(case, []).append(sample)
        return samples

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
