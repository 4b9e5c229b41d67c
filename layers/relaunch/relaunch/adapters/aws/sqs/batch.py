"""Handles batches from SQS: a failed message is retried, or sent to the dead-letter queue with the reason.

See "Using Lambda with Amazon SQS" (AWS Lambda Developer Guide) for the event and the partial batch response; samples
are in events/sqs.*.json.
"""

from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.ports import PermanentError, TransientError


def handle_batch(
    event: dict[str, Any],
    context: LambdaContext,
    handle_body: Callable[[str], object],
    dead_letters: DeadLetterSender,
    count_failure: Callable[[], None] = lambda: None,
) -> PartialItemFailureResponse:
    """Handle all messages of a batch; those to be retried are in the partial batch response.

    `count_failure` is called for each of those, and for one whose last try failed.

    Raises:
        PermanentError: the event is not a batch of messages from SQS.
    """
    _require_batch(event)

    def handle_record(record: SQSRecord) -> object:
        try:
            return handle_body(record.body)
        except PermanentError as error:
            reason = str(error)
        except Exception as error:
            count_failure()
            reason = dead_letters.note_failure(record, error)
            if not reason:
                if isinstance(error, TransientError):
                    dead_letters.retry_soon(record)
                raise
        dead_letters.send(record, reason)
        return None

    # If all messages failed, raising would also retry those that were sent to the dead-letter queue.
    processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
    return process_partial_response(event=event, record_handler=handle_record, processor=processor, context=context)


def _require_batch(event: object) -> None:
    records = event.get("Records") if isinstance(event, dict) else None
    if not records or not isinstance(records, list) or not all(map(_is_message, records)):
        raise PermanentError("the event is no batch of messages from SQS, which have messageId, body and attributes")


def _is_message(record: object) -> bool:
    if not isinstance(record, dict) or not isinstance(record.get("attributes"), dict):
        return False
    return isinstance(record.get("messageId"), str) and isinstance(record.get("body"), str)
