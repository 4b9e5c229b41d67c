"""Checks that what a message asks for is done in time: its event, its launch, its machine, and the stop before a warning.

From when nothing failed on the way but it was not done: a try in which a call failed, or that ended with its function,
excuses the message until the next one, and a message may ask to come later.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.sqs import Message

_MOST_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Promise:
    """What a function does with a message, and for how long it may fail to where no call does."""

    name: str
    within: timedelta


PROMISES = {
    "submit_job": Promise("what happens becomes a job in time", timedelta(seconds=150)),
    "launch_attempt": Promise("a launch that is due is made in time", timedelta(seconds=330)),
    "request_machine": Promise("a machine that is due is asked for in time", timedelta(seconds=330)),
    "observe_capacity": Promise("what EC2 tells of an instance is heeded in time", timedelta(seconds=50)),
    "observe_task": Promise("what ECS tells of a task is heeded in time", timedelta(seconds=150)),
}


@dataclass(slots=True)
class MessageTimes:
    """Knows the messages that are not handled though nothing failed, and since when."""

    _clock: Clock
    _check: Callable[[str, bool, str], None]
    _since: dict[int, datetime] = field(default_factory=dict)
    """By origin: when the first try began that came to nothing, of those since the last one with a failed call."""

    def handled(self, function: str, message: Message) -> None:
        """Check a message that was handled."""
        self._check_time(function, message)
        self._since.pop(message.origin, None)

    def failed(self, function: str, message: Message, began_at: datetime) -> None:
        """Check a message that was not handled, in a try in which no call failed."""
        self._since.setdefault(message.origin, began_at)
        self._check_time(function, message)

    def excused(self, message: Message) -> None:
        """Note a try that need not have succeeded: a call failed, its function died, or the message is to come later."""
        self._since.pop(message.origin, None)

    def _check_time(self, function: str, message: Message) -> None:
        promise = PROMISES.get(function)
        if promise is None:
            return
        now = self._clock.now()
        late = now - self._since.get(message.origin, now)
        self._check(promise.name, late <= promise.within, f"{late} for {message.body[:_MOST_SHOWN]}")
