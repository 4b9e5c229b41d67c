"""Checks that what is asked for is done in time: by each message of a queue, and by the schedule of every minute.

The time counts from when nothing failed on the way and it was not done all the same. A try that says that a call of it
failed for good, or that ended with its function, excuses it until the next one; so does one that says that it comes too
early, or that it is not allowed to.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch.ports import NotYetError, PermanentError, PortError
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.sqs import Message

_MOST_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Promise:
    """What a function does, and for how long it may fail to where no call does."""

    name: str
    within: timedelta


# One try that comes to nothing is enough to break the first two: the visibility time-outs of their queues are longer.
# Of jobs that take a slot or a machine from each other some lose the race, again and again, for three minutes.
PROMISES = {
    "submit_job": Promise("what happens becomes a job in time", timedelta(seconds=150)),
    "observe_task": Promise("a message of ECS on a task is handled in time", timedelta(seconds=150)),
    "observe_capacity": Promise("a message of EC2 on an instance is handled in time", timedelta(seconds=50)),
    "launch_attempt": Promise("a launch that is due is made in time", timedelta(seconds=330)),
    "request_machine": Promise("a machine that is due is asked for in time", timedelta(seconds=330)),
    "send_notices": Promise("a notice is sent in time", timedelta(seconds=330)),
    "reconcile": Promise("the schedule comes to its end in time", timedelta(seconds=150)),
    "job_api": Promise("who asks for something has an answer in time", timedelta(seconds=330)),
    "plan_api": Promise("who asks for something has an answer in time", timedelta(seconds=330)),
    "github_webhook": Promise("what GitHub sends is taken in time", timedelta(seconds=330)),
}


@dataclass(slots=True)
class MessageTimes:
    """Knows what is not done though nothing failed, and since when."""

    _clock: Clock
    _check: Callable[[str, bool, str], None]
    _longer: Callable[[datetime, datetime], timedelta] = lambda _since, _until: timedelta(0)
    """Returns how much longer than otherwise what lasted so may take: no function begins while Lambda is away."""
    _since: dict[int | str, datetime] = field(default_factory=dict)
    """By the origin of a message, or the function of a schedule: when the first of the tries began."""
    _sent_again: set[int] = field(default_factory=set)
    """The messages that their functions meant to send again soon."""
    _done: set[int] = field(default_factory=set)
    """The messages that were handled: SQS may deliver them once more, and nobody waits for what comes of that."""

    def handled(self, function: str, message: Message) -> None:
        """Check a message that was handled."""
        self._check_time(function, message.origin, message.body)
        self._since.pop(message.origin, None)
        self._done.add(message.number)

    def failed(self, function: str, message: Message, began_at: datetime | None, error: BaseException) -> None:
        """Check a message that was not handled in a try that began at `began_at`; None: a call of it failed."""
        if message.number in self._done:
            return
        self._note(message.origin, began_at, error)
        if isinstance(error, PortError):
            self._sent_again.add(message.number)
        self._check_time(function, message.origin, message.body)

    def came_back(self, messages: Iterable[Message]) -> None:
        """Note the messages of a batch that come back by themselves: those that could not be sent again are excused."""
        self.died([each for each in messages if each.number in self._sent_again])

    def died(self, messages: Iterable[Message]) -> None:
        """Note the messages of a function that ended without an answer."""
        for message in messages:
            self._since.pop(message.origin, None)

    def ended(self, function: str, asked: str = "") -> None:
        """Check a function without a message that came to its end; `asked` is what it was called for."""
        key = f"{function} {asked}"
        self._check_time(function, key, asked)
        self._since.pop(key, None)

    def broke_off(self, function: str, began_at: datetime | None, error: BaseException, asked: str = "") -> None:
        """Check a function without a message that did not, of a try that began then; None: a call of it failed."""
        key = f"{function} {asked}"
        is_killed = not isinstance(error, Exception)
        self._note(key, None if is_killed else began_at, error)
        self._check_time(function, key, asked)

    def _note(self, key: int | str, began_at: datetime | None, error: BaseException) -> None:
        if began_at is None or isinstance(error, NotYetError | PermanentError):
            self._since.pop(key, None)
        else:
            self._since.setdefault(key, began_at)

    def _check_time(self, function: str, key: int | str, body: str) -> None:
        promise = PROMISES.get(function)
        if promise is None:
            return
        now = self._clock.now()
        since = self._since.get(key, now)
        late = now - since - self._longer(since, now)
        self._check(promise.name, late <= promise.within, f"{late} for {body[:_MOST_SHOWN] or function}")
