"""What the benchmarks of one run share: how often they measure, and the story that several of them replay."""

from contextlib import ExitStack
from functools import cached_property

from benchmarks.story import Story, told_story

PUSHES = 1_000


class NotMeasurableError(Exception):
    """Something that a benchmark needs is not there; the message says what to run."""


class Session:
    """One run of some benchmarks.

    `rounds` is how often each case is measured. Cases are interleaved: what slows the machine slows all of them.
    `resources` ends, when it is closed, what the session started.
    """

    def __init__(self, rounds: int, resources: ExitStack) -> None:
        self.rounds = rounds
        self._resources = resources

    @property
    def counted(self) -> list[bool]:
        """Whether each round counts: the first of several warms the page cache, and does not."""
        return [True] if self.rounds == 1 else [False, *[True] * self.rounds]

    @property
    def pushes(self) -> int:
        """How many events are decided on where one takes milliseconds."""
        return min(PUSHES, 100 * self.rounds)

    @cached_property
    def story(self) -> Story:
        """The recorded story, told when it is first asked for.

        Raises:
            NotBuiltError: the application is not built, or has changed since.
        """
        return self._resources.enter_context(told_story())
