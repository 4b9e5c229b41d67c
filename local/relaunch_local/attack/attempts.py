"""Attempts to misuse something, each within a time limit."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SECONDS = 2.0
"""The processor time of an attempt; a function has 30 seconds for ten messages."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt; `misbehaviour` says what it achieved or broke, None if it was turned away."""

    what: str
    misbehaviour: str | None = None


class TookTooLongError(BaseException):
    """An attempt used up its processor time. No handler of `Exception` may take it for an error of its own."""


@contextmanager
def limited_time(seconds: float) -> Iterator[None]:
    """Limit the processor time of the body, which does not depend on what else the machine does.

    Regular expressions of the standard library are interrupted too; only the main thread can be limited.

    Raises:
        TookTooLongError: the time is over.
    """

    def interrupt(*_: object) -> None:
        raise TookTooLongError

    before = signal.signal(signal.SIGVTALRM, interrupt)
    # Again and again: what is raised within a callback, such as a finalizer, is lost.
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def attempt(what: str, act: Callable[[], str | None]) -> Attempt:
    """Make an attempt: `act` returns the misbehaviour; an exception or too much time is one too."""
    try:
        with limited_time(SECONDS):
            return Attempt(what, act())
    except TookTooLongError:
        return Attempt(what, f"took more than {SECONDS:g} s of processor time")
    except Exception as error:  # noqa: BLE001 - whatever it is, the code attacked did not expect it
        return Attempt(what, f"{type(error).__name__}: {error}"[:300])
