"""List, redrive and delete the messages of dead-letter queues.

Messages are read by receiving them, which hides them from other consumers until they are put back. SQS returns samples:
messages received by others are missing, and counts are approximate.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.core.messages.dead_letter import DeadLetterMessage, DeadLetterQueue
from relaunch.core.records import dataclass
from relaunch.ports import DeadLetters, MaintenanceDependencies, PermanentError, PortError

_PASS_SIZE = 100
_MAX_MESSAGES = 1_000


class UnknownDeadLetterError(PermanentError):
    """No message or more than one has this id, or no dead-letter queue has this name."""


class NoSourceQueueError(PermanentError):
    """The message belongs to a function without a queue, so that it cannot be redriven."""


@dataclass(frozen=True, slots=True)
class QueueListing:
    """Messages received from one dead-letter queue, and the approximate number of its messages."""

    queue: DeadLetterQueue
    about: int
    messages: tuple[DeadLetterMessage, ...]


def measure_dead_letters(dead_letters: DeadLetters, deps: MaintenanceDependencies) -> None:
    """Record the approximate number of messages in all queues; nothing if SQS does not return it."""
    try:
        count = sum(map(dead_letters.count, dead_letters.queues()))
    except PortError as error:
        deps.log.decided("postponed", reason=str(error))
    else:
        deps.metrics.record(MetricDatum(Metric.DEAD_LETTERS, count))


def list_dead_letters(dead_letters: DeadLetters, queue_name: str = "", limit: int = _PASS_SIZE) -> list[QueueListing]:
    """Return up to `limit` messages of each queue, oldest first, and put them back.

    Raises:
        UnknownDeadLetterError: no dead-letter queue has this name.
    """
    listings = []
    for queue in _queues(dead_letters, queue_name):
        about = dead_letters.count(queue)
        seen = _receive(dead_letters, queue, limit)
        dead_letters.put_back(seen)
        listings.append(QueueListing(queue, about, tuple(sorted(seen, key=lambda message: message.sent_at))))
    return listings


def show_dead_letter(message_id: str, dead_letters: DeadLetters) -> DeadLetterMessage:
    """Return a message by its id or a prefix of it, and put it back.

    Raises:
        UnknownDeadLetterError: no message, or more than one, has this id.
    """
    message = _find(message_id, dead_letters)
    dead_letters.put_back((message,))
    return message


def redrive_dead_letter(message_id: str, dead_letters: DeadLetters) -> DeadLetterMessage:
    """Send a message back to its source queue, then delete it; it may be sent twice.

    Raises:
        UnknownDeadLetterError: no message, or more than one, has this id.
        NoSourceQueueError: it has no source queue.
    """
    message = _find(message_id, dead_letters)
    if message.queue.source_url is None:
        dead_letters.put_back((message,))
        raise NoSourceQueueError(f"message {message.message_id} is of {message.queue.name}, which has no queue")
    dead_letters.redrive(message)
    return message


def redrive_all(
    dead_letters: DeadLetters, queue_name: str, now: datetime, report: Callable[[DeadLetterMessage], object]
) -> list[QueueListing]:
    """Redrive every message sent until `now`, and report each; return the queues without a source queue.

    A message that fails again arrives as a new one, which is not redriven again.

    Raises:
        UnknownDeadLetterError: no dead-letter queue has this name.
    """
    left = []
    for queue in _queues(dead_letters, queue_name):
        if queue.source_url is None:
            left.append(QueueListing(queue, dead_letters.count(queue), ()))
            continue
        while _redrive_pass(dead_letters, queue, now, report):
            pass
    return [listing for listing in left if listing.about]


def _redrive_pass(
    dead_letters: DeadLetters, queue: DeadLetterQueue, now: datetime, report: Callable[[DeadLetterMessage], object]
) -> int:
    seen = _receive(dead_letters, queue, _PASS_SIZE)
    old = [message for message in seen if message.sent_at <= now]
    dead_letters.put_back([message for message in seen if message.sent_at > now])
    for message in old:
        dead_letters.redrive(message)
        report(message)
    return len(old)


def drop_dead_letter(message: DeadLetterMessage, dead_letters: DeadLetters) -> None:
    """Delete a message permanently.

    Raises:
        UnknownDeadLetterError: it does not exist any more.
    """
    dead_letters.drop(_find(message.message_id, dead_letters))


def _queues(dead_letters: DeadLetters, name: str) -> Sequence[DeadLetterQueue]:
    queues = dead_letters.queues()
    chosen = [queue for queue in queues if name in ("", queue.name)]
    if not chosen:
        known = ", ".join(queue.name for queue in queues)
        raise UnknownDeadLetterError(f"no dead-letter queue is named {name!r}; there are {known}")
    return chosen


def _find(message_id: str, dead_letters: DeadLetters) -> DeadLetterMessage:
    """Return the message with this id prefix, still hidden from others, and put all others back."""
    seen = [message for queue in dead_letters.queues() for message in _receive(dead_letters, queue, _MAX_MESSAGES)]
    found = [message for message in seen if message_id and message.message_id.startswith(message_id)]
    if len(found) == 1:
        dead_letters.put_back([message for message in seen if message is not found[0]])
        return found[0]
    dead_letters.put_back(seen)
    if found:
        ids = ", ".join(sorted(message.message_id for message in found))
        raise UnknownDeadLetterError(f"{message_id!r} begins more than one id: {ids}")
    raise UnknownDeadLetterError(f"no message {message_id!r} was found in the dead-letter queues")


def _receive(dead_letters: DeadLetters, queue: DeadLetterQueue, limit: int) -> Collection[DeadLetterMessage]:
    """Receive up to `limit` messages; a message received twice counts once."""
    received: dict[str, DeadLetterMessage] = {}
    while len(received) < limit:
        page = dead_letters.receive(queue)
        if not page:
            break
        received.update({message.message_id: message for message in page})
    return list(received.values())
