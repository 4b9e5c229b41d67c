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

from relaunch.adapters.aws.poison_queue import PoisonQueue
from relaunch.ports import PermanentError


def handle_batch(
    event: dict[str, Any], context: LambdaContext, handle_body: Callable[[str], object], poison: PoisonQueue
) -> PartialItemFailureResponse:
    """Handle every message of a batch; those that failed for now are named in the answer and delivered again."""

    def handle_record(record: SQSRecord) -> object:
        try:
            return handle_body(record.body)
        except PermanentError as error:
            poison.bury(record, str(error))
            return None

    # A batch in which every message failed is a partial failure too: raising would hide which ones were poison.
    processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
    return process_partial_response(event=event, record_handler=handle_record, processor=processor, context=context)
