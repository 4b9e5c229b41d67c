"""Handles batches from SQS: a failed message comes back, or is sent to the dead-letter queue with the reason.

See "Using Lambda with Amazon SQS" (AWS Lambda Developer Guide) for the event and the partial batch response; samples
are in events/sqs.*.json.

What fails for a temporary reason, or because a permission is missing, is sent again as a new message, so that the
receives that SQS counts are those that ended with the function, or by a bug.

A function that dies hands its whole batch back. The messages of a batch with suspects, which were tried before, are
therefore handled so that a death costs them little: those least in danger first, each deleted once it was handled, and
the suspects come back one by one. No message is begun in time that may not be enough for it.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypedDict

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.adapters.aws.sqs.record import Record
from relaunch.adapters.aws.sqs.source_queue import SourceQueue, failing_since, spread_of, tries_of
from relaunch.core.messages.handling_order import ReceivedMessage, order_messages
from relaunch.core.messages.retries import LONGEST_RACE, LONGEST_RETRY, retry_seconds
from relaunch.core.records import dataclass
from relaunch.ports import NotGrantedError, NotYetError, PermanentError, StaleWriteError, TransientError

# Enough for a call that hangs once (connecting 3 s, reading 8 s, see bootstrap) and is answered then.
_NEEDED_MILLISECONDS = 12_000
# A queue's visibility time-out is six times the time-out of its function, which is what is left of it at the start.
_VISIBILITY_FACTOR = 6


class Failure(TypedDict):
    """A message that comes back."""

    itemIdentifier: str


class BatchResponse(TypedDict):
    """Lambda's partial batch response: it deletes all other messages."""

    batchItemFailures: list[Failure]


class Queues(NamedTuple):
    """The queue of the messages, and where those go that are given up."""

    source: SourceQueue
    dead_letters: DeadLetterSender


@dataclass(frozen=True, slots=True)
class Consumer:
    """What handles the messages of a queue.

    `handle_body` handles the body of a message. `count_failure` is called for each message that was tried and failed,
    with the time for which it has failed for temporary reasons. `begin_last_try` is called with the ID of a message
    before its last try, and returns False if that was begun before: nobody else knows whether a receive that nothing
    came of was a try, or one for which Lambda had no concurrency. `now` returns the time.
    """

    handle_body: Callable[[str], object]
    count_failure: Callable[[timedelta], object]
    begin_last_try: Callable[[str], bool]
    now: Callable[[], datetime]


class _Batch:
    """The messages of a batch in the order in which they are handled, and those that were not begun yet."""

    def __init__(self, event: dict[str, Any], context: LambdaContext, queues: Queues) -> None:
        records = [Record(record) for record in event["Records"]]
        received = [ReceivedMessage(record.message_id, tries_of(record)) for record in records]
        order = order_messages(received, queues.dead_letters.last_try)
        self.records = [records[index] for index in order]
        self._left = list(self.records)
        self._suspects = [records[index] for index in order if received[index].is_suspect]
        self._context = context
        self._queues = queues
        self._has_begun = False

    def set_suspects_apart(self) -> None:
        """Let suspects come back one by one; a single one among new messages, which are deleted, does so anyway."""
        if len(self._suspects) > 1:
            seconds = _VISIBILITY_FACTOR * -(-self._context.get_remaining_time_in_millis() // 1000)
            self._queues.source.set_apart(self._suspects, seconds)

    def begin(self, record: Record) -> bool:
        """Begin with the next message; return False if there may not be enough time for it, and it comes back soon.

        The first one is always begun.

        Raises:
            TransientError: it could not be sent again; it comes back after the visibility time-out.
        """
        place = len(self.records) - len(self._left)
        self._left.pop(0)
        if self._has_begun and self._context.get_remaining_time_in_millis() < _NEEDED_MILLISECONDS:
            self._queues.source.put_back(record, place)
            return False
        self._has_begun = True
        return True

    def end(self, record: Record) -> None:
        """Delete a message that is done, if the function may die of another one."""
        if self._suspects:
            self._queues.source.delete(record)


def handle_batch(event: dict[str, Any], context: LambdaContext, consumer: Consumer, queues: Queues) -> BatchResponse:
    """Handle all messages of a batch; in the partial batch response are those that come back by themselves.

    Raises:
        PermanentError: the event is not a batch of messages from SQS.
    """
    _require_batch(event)
    batch = _Batch(event, context, queues)
    batch.set_suspects_apart()

    failed: list[Failure] = []
    for record in batch.records:
        try:
            if batch.begin(record):
                _try(record, consumer, queues)
                batch.end(record)
        except Exception:  # noqa: BLE001 - raised, it would also bring back those that were handled; _try has logged it
            failed.append({"itemIdentifier": record.message_id})
    return {"batchItemFailures": failed}


def _try(record: Record, consumer: Consumer, queues: Queues) -> None:
    """Handle a message, or send it where it goes instead.

    Raises:
        Exception: the message comes back after the visibility time-out of its queue, and has lost a try.
    """
    source, dead_letters = queues
    is_last = 0 < dead_letters.last_try <= tries_of(record)
    since = failing_since(record, consumer.now())
    failing_for = consumer.now() - since
    try:
        if is_last and not consumer.begin_last_try(record.message_id):
            dead_letters.send(record, f"given up: its functions ended without an answer {tries_of(record) - 1} times")
            return
        consumer.handle_body(record.body)
    except NotYetError as early:
        source.send_again(record, early.seconds)
    except (TransientError, NotGrantedError) as error:
        consumer.count_failure(failing_for)
        dead_letters.note_failure(record, error)
        if failing_for > LONGEST_RETRY:
            dead_letters.send(record, f"given up after {failing_for} of temporary errors: {error}")
        else:
            waited = min(failing_for, LONGEST_RACE) if isinstance(error, StaleWriteError) else failing_for
            source.send_again(record, retry_seconds(waited, spread_of(record)), since)
    except PermanentError as error:
        dead_letters.send(record, str(error) or type(error).__name__)
    except Exception as error:
        consumer.count_failure(failing_for)
        dead_letters.note_failure(record, error)
        if not is_last:
            raise
        dead_letters.send(record, f"given up after {tries_of(record)} tries: {type(error).__name__}: {error}")


def _require_batch(event: object) -> None:
    records = event.get("Records") if isinstance(event, dict) else None
    if not records or not isinstance(records, list) or not all(map(_is_message, records)):
        raise PermanentError("the event is no batch of messages from SQS, which have messageId, body and attributes")


def _is_message(record: object) -> bool:
    if not isinstance(record, dict) or not isinstance(record.get("attributes"), dict):
        return False
    return isinstance(record.get("messageId"), str) and isinstance(record.get("body"), str)
