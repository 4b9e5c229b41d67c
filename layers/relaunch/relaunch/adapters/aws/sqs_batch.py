"""Batches from SQS: each message succeeds, is delivered again, or goes to the dead-letter queue with its reason.

Speaks the SQS event and its partial batch response ("Using Lambda with Amazon SQS", AWS Lambda Developer Guide; samples
in events/sqs.*.json).
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.adapters.aws.errors import aws_errors
from relaunch.ports import DecisionLog, PermanentError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# SQS takes attribute values of up to the message's own size; a reason is for people.
_LONGEST_REASON = 1_000


class PoisonQueue:
    """The function's dead-letter queue, for messages that trying again cannot help.

    We send them there ourselves, at once: SQS would try them maxReceiveCount times, and a message that it moves carries
    no reason.
    """

    def __init__(self, client: "SQSClient", queue_url: str, log: DecisionLog) -> None:
        self._client = client
        self._queue_url = queue_url
        self._log = log

    def bury(self, record: SQSRecord, reason: str) -> None:
        """Send a message there with why and since when it fails.

        Raises:
            TransientError: the message could not be sent; it is delivered again instead.
        """
        first_seen = _first_seen(record)
        attributes = {"reason": reason[:_LONGEST_REASON] or "unknown", "first_seen": first_seen}
        with aws_errors("sending a message to the dead-letter queue"):
            self._client.send_message(
                QueueUrl=self._queue_url,
                MessageBody=record.body,
                MessageAttributes={
                    name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
                },
            )
        self._log.decided("dead-lettered", message_id=record.message_id, reason=reason, first_seen=first_seen)


def _first_seen(record: SQSRecord) -> str:
    milliseconds = int(record.attributes.approximate_first_receive_timestamp or 0)
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()


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
