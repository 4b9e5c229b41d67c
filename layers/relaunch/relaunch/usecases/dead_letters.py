"""Look into the dead-letter queues, send messages back to where they came from, or throw them away.

Whoever looks receives: what is received is hidden from others until it is put back, which is done at once. SQS gives
samples: a message that somebody else has just received is not seen, and counts are about right.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.core.messages.dead_letter import DeadLetterMessage, DeadLetterQueue
from relaunch.ports import DeadLetters, MaintenanceDependencies, PermanentError, PortError

_PASS = 100
_MOST = 1_000


class UnknownDeadLetterError(PermanentError):
    """No message was found by this id, or more than one, or no dead-letter queue has this name."""


class NoSourceQueueError(PermanentError):
    """The message belongs to a function without a queue: there is nowhere to send it back to."""


@dataclass(frozen=True, slots=True)
class QueueListing:
    """What was seen of one dead-letter queue, and about how many messages SQS says are in it."""

    queue: DeadLetterQueue
    about: int
    letters: tuple[DeadLetterMessage, ...]


def measure_dead_letters(dead_letters: DeadLetters, deps: MaintenanceDependencies) -> None:
    """Record about how many messages there are in all queues; nothing while SQS does not say."""
    try:
        count = sum(map(dead_letters.count, dead_letters.queues()))
    except PortError as error:
        deps.log.decided("postponed", reason=str(error))
    else:
        deps.metrics.record(MetricDatum(Metric.DEAD_LETTERS, count))


def list_dead_letters(dead_letters: DeadLetters, queue_name: str = "", limit: int = _PASS) -> list[QueueListing]:
    """Look at up to `limit` messages of each queue, oldest first, and put them back.

    Raises:
        UnknownDeadLetterError: no dead-letter queue has this name.
    """
    listings = []
    for queue in _queues(dead_letters, queue_name):
        about = dead_letters.count(queue)
        seen = _take(dead_letters, queue, limit)
        dead_letters.put_back(seen)
        listings.append(QueueListing(queue, about, tuple(sorted(seen, key=lambda letter: letter.sent_at))))
    return listings


def show_dead_letter(message_id: str, dead_letters: DeadLetters) -> DeadLetterMessage:
    """Find a message by its id, or by how it begins, and put it back.

    Raises:
        UnknownDeadLetterError: no message, or more than one, has this id.
    """
    letter = _find(message_id, dead_letters)
    dead_letters.put_back((letter,))
    return letter


def redrive_dead_letter(message_id: str, dead_letters: DeadLetters) -> DeadLetterMessage:
    """Send a message back to its queue, then delete it here; it may be sent twice, which every consumer bears.

    Raises:
        UnknownDeadLetterError: no message, or more than one, has this id.
        NoSourceQueueError: there is nowhere to send it back to.
    """
    letter = _find(message_id, dead_letters)
    if letter.queue.source_url is None:
        dead_letters.put_back((letter,))
        raise NoSourceQueueError(f"message {letter.message_id} is of {letter.queue.name}, which has no queue")
    dead_letters.redrive(letter)
    return letter


def redrive_all(
    dead_letters: DeadLetters, queue_name: str, now: datetime, told: Callable[[DeadLetterMessage], object]
) -> list[QueueListing]:
    """Send back every message that was there by `now`, and tell of each; return what was left in place.

    A message that fails again comes back as a new one, which is left for next time.

    Raises:
        UnknownDeadLetterError: no dead-letter queue has this name.
    """
    left = []
    for queue in _queues(dead_letters, queue_name):
        if queue.source_url is None:
            left.append(QueueListing(queue, dead_letters.count(queue), ()))
            continue
        while _redrive_pass(dead_letters, queue, now, told):
            pass
    return [listing for listing in left if listing.about]


def _redrive_pass(
    dead_letters: DeadLetters, queue: DeadLetterQueue, now: datetime, told: Callable[[DeadLetterMessage], object]
) -> int:
    seen = _take(dead_letters, queue, _PASS)
    old = [letter for letter in seen if letter.sent_at <= now]
    dead_letters.put_back([letter for letter in seen if letter.sent_at > now])
    for letter in old:
        dead_letters.redrive(letter)
        told(letter)
    return len(old)


def drop_dead_letter(letter: DeadLetterMessage, dead_letters: DeadLetters) -> None:
    """Delete a message for good.

    Raises:
        UnknownDeadLetterError: it is not there any more.
    """
    dead_letters.drop(_find(letter.message_id, dead_letters))


def _queues(dead_letters: DeadLetters, name: str) -> Sequence[DeadLetterQueue]:
    queues = dead_letters.queues()
    chosen = [queue for queue in queues if name in ("", queue.name)]
    if not chosen:
        known = ", ".join(queue.name for queue in queues)
        raise UnknownDeadLetterError(f"no dead-letter queue is named {name!r}; there are {known}")
    return chosen


def _find(message_id: str, dead_letters: DeadLetters) -> DeadLetterMessage:
    """Return the message whose id begins so, still hidden from others; everything else is put back."""
    seen = [letter for queue in dead_letters.queues() for letter in _take(dead_letters, queue, _MOST)]
    found = [letter for letter in seen if message_id and letter.message_id.startswith(message_id)]
    if len(found) == 1:
        dead_letters.put_back([letter for letter in seen if letter is not found[0]])
        return found[0]
    dead_letters.put_back(seen)
    if found:
        ids = ", ".join(sorted(letter.message_id for letter in found))
        raise UnknownDeadLetterError(f"{message_id!r} begins more than one id: {ids}")
    raise UnknownDeadLetterError(f"no message {message_id!r} was found in the dead-letter queues")


def _take(dead_letters: DeadLetters, queue: DeadLetterQueue, limit: int) -> Collection[DeadLetterMessage]:
    """Receive until there is nothing more, or enough; one message that came twice counts once."""
    taken: dict[str, DeadLetterMessage] = {}
    while len(taken) < limit:
        page = dead_letters.receive(queue)
        if not page:
            break
        taken.update({letter.message_id: letter for letter in page})
    return list(taken.values())
