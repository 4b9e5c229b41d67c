"""What a scene is: what a sample presupposes, its invocation, and what must have come of it."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from relaunch_local.sam_local.samples import Names
from relaunch_local.sam_local.stage import Stage

Answer = Any
"""What a function answers, as JSON."""

Scene = Generator[Names, Answer, str]
"""Brings about what the sample presupposes, yields the names that are filled in, is sent the answer of the function,
checks what came of it, and returns that in a few words.

Raises:
    UnmetExpectationError: something else came of it.
"""


class UnmetExpectationError(Exception):
    """Something else came of a sample than must; the message says what."""


@dataclass(frozen=True)
class Outcome:
    """What must come of a sample: the effect in a word, and the scene that checks it."""

    effect: str
    scene: Callable[[Stage], Scene]
    changes_nothing: bool = False
    """Whether no item of the table may change."""
    logged: str = ""
    """What the function must log, where nothing else shows that it looked at the sample."""
    age: timedelta = timedelta(0)
    """How long ago the sample's event was, where the function lets a newer one wait."""


def expect(what: str, actual: object, expected: object) -> None:
    """Expect equality.

    Raises:
        UnmetExpectationError: the values differ.
    """
    if actual != expected:
        raise UnmetExpectationError(f"{what}: {actual!s}, not {expected!s}")


def expect_handled(answer: Answer) -> None:
    """Expect that every message of the batch was handled.

    Raises:
        UnmetExpectationError: one was not, or the function failed.
    """
    expect("the answer", answer, {"batchItemFailures": []})


def expect_launch_requested(stage: Stage, job_id: str) -> None:
    """Expect that the launch of the job is requested in the queue of attempts.

    Raises:
        UnmetExpectationError: it is not.
    """
    _expect_message(stage, "Attempts", f'{{"job_id": "{job_id}", "format": 1}}')


def expect_machine_requested(stage: Stage, machine_id: str) -> None:
    """Expect that EC2 is to be called for the machine.

    Raises:
        UnmetExpectationError: nobody is to call it.
    """
    _expect_message(stage, "Machines", f'{{"machine_id": "{machine_id}", "format": 1}}')


def _expect_message(stage: Stage, queue: str, message: str) -> None:
    messages = stage.receive(queue)
    expect(f"{message} in the queue {queue}, which has {messages}", message in messages, expected=True)
