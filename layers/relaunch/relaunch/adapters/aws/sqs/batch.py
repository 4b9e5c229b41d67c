"""Handles batches from SQS: a failed message is retried, or sent to the dead-letter queue with the reason.

See "Using Lambda with Amazon SQS" (AWS Lambda Developer Guide) for the event and the partial batch response; samples
are in events/sqs.*.json.

A function that dies hands its whole batch back. The messages of a batch with suspects, which were received before, are
therefore handled so that a death costs them little: those least in danger first, each deleted once it was handled, and
the suspects come back one by one. No message is begun in time that may not be enough for it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.adapters.aws.sqs.source_queue import SourceQueue
from relaunch.core.messages.handling_order import ReceivedMessage, order_messages
from relaunch.ports import NotYetError, PermanentError, TransientError

# Enough for a call that hangs once (connecting 3 s, reading 8 s, see bootstrap) and is answered then.
_NEEDED_MILLISECONDS = 12_000
# A queue's visibility time-out is six times the time-out of its function, which is what is left of it at the start.
_VISIBILITY_FACTOR = 6


class Queues(NamedTuple):
    """The queue of the messages, and where those go that are given up."""

    source: SourceQueue
    dead_letters: DeadLetterSender


class NotBegunError(Exception):
    """There may not be enough time for the message: it was not tried."""


class _Batch:
    """The messages of a batch in the order in which they are handled, and those that were not begun yet."""

    def __init__(self, event: dict[str, Any], context: LambdaContext, queues: Queues) -> None:
        records = event["Records"]
        received = [ReceivedMessage(record["messageId"], _receives(record)) for record in records]
        order = order_messages(received, queues.dead_letters.last_try)
        self.event = {**event, "Records": [records[index] for index in order]}
        self._left = [SQSRecord(record) for record in self.event["Records"]]
        self._suspects = [SQSRecord(records[index]) for index in order if received[index].is_suspect]
        self._context = context
        self._queues = queues
        self._has_begun = self._is_put_back = False

    def set_suspects_apart(self) -> None:
        """Let suspects come back one by one; a single one among new messages, which are deleted, does so anyway."""
        if len(self._suspects) > 1:
            seconds = _VISIBILITY_FACTOR * -(-self._context.get_remaining_time_in_millis() // 1000)
            self._queues.source.set_apart(self._suspects, seconds)

    def begin(self, record: SQSRecord) -> None:
        """Begin with the next message, unless there may not be enough time for it.

        The first one is always begun, and one on its last try, which would be given up without having been tried.

        Raises:
            NotBegunError: the messages that are left come back soon.
        """
        is_last = 0 < self._queues.dead_letters.last_try <= _receives(record.raw_event)
        if self._has_begun and not is_last and self._context.get_remaining_time_in_millis() < _NEEDED_MILLISECONDS:
            if not self._is_put_back:
                self._is_put_back = True
                self._queues.source.put_back(self._left)
            raise NotBegunError("there may not be enough time for it")
        self._has_begun = True
        self._left.pop(0)

    def end(self, record: SQSRecord) -> None:
        """Delete a message that is done, if the function may die of another one."""
        if self._suspects:
            self._queues.source.delete(record)


def handle_batch(
    event: dict[str, Any],
    context: LambdaContext,
    handle_body: Callable[[str], object],
    queues: Queues,
    count_failure: Callable[[], None] = lambda: None,
) -> PartialItemFailureResponse:
    """Handle all messages of a batch; those to be retried are in the partial batch response.

    `count_failure` is called for each of those that were tried, and for one whose last try failed.

    Raises:
        PermanentError: the event is not a batch of messages from SQS.
    """
    _require_batch(event)
    batch = _Batch(event, context, queues)
    batch.set_suspects_apart()

    def handle_record(record: SQSRecord) -> None:
        batch.begin(record)
        reason = _try(record, handle_body, queues, count_failure)
        if reason:
            queues.dead_letters.send(record, reason)
        batch.end(record)

    # If all messages failed, raising would also retry those that were sent to the dead-letter queue.
    processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
    return process_partial_response(
        event=batch.event, record_handler=handle_record, processor=processor, context=context
    )


def _try(
    record: SQSRecord, handle_body: Callable[[str], object], queues: Queues, count_failure: Callable[[], None]
) -> str:
    """Handle a message; return why it is given up, empty if it was handled.

    Raises:
        Exception: the message is to be retried.
    """
    try:
        handle_body(record.body)
    except PermanentError as error:
        return str(error) or type(error).__name__
    except NotYetError as early:
        queues.source.retry_in(record, early.seconds)
        raise
    except Exception as error:
        count_failure()
        reason = queues.dead_letters.note_failure(record, error)
        if not reason:
            if isinstance(error, TransientError):
                queues.source.retry_soon(record)
            raise
        return reason
    return ""


def _receives(record: dict[str, Any]) -> int:
    return int(record["attributes"].get("ApproximateReceiveCount", 0))


def _require_batch(event: object) -> None:
    records = event.get("Records") if isinstance(event, dict) else None
    if not records or not isinstance(records, list) or not all(map(_is_message, records)):
        raise PermanentError("the event is no batch of messages from SQS, which have messageId, body and attributes")


def _is_message(record: object) -> bool:
    if not isinstance(record, dict) or not isinstance(record.get("attributes"), dict):
        return False
    return isinstance(record.get("messageId"), str) and isinstance(record.get("body"), str)
