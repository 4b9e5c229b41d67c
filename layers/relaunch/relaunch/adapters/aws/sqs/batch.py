"""Batches from SQS: each message succeeds, is delivered again, or goes to the dead-letter queue with its reason.

Speaks the SQS event and its partial batch response ("Using Lambda with Amazon SQS", AWS Lambda Developer Guide; samples
in events/sqs.*.json).
"""

from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.ports import PermanentError


def handle_batch(
    event: dict[str, Any],
    context: LambdaContext,
    handle_body: Callable[[str], object],
    dead_letters: DeadLetterSender,
    count_failure: Callable[[], None] = lambda: None,
) -> PartialItemFailureResponse:
    """Handle every message of a batch; those that failed for now are named in the answer and delivered again.

    `count_failure` is called for each of those, and for one whose last try failed.

    Raises:
        PermanentError: the event is none of a queue: the function was called with something else.
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
                raise
        dead_letters.send(record, reason)
        return None

    # A batch in which every message failed is a partial failure too: raising would hide which ones were poison.
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
