"""Says when messages of a batch are received again, and deletes those that may not be.

The actions are ChangeMessageVisibility, ChangeMessageVisibilityBatch and DeleteMessage (Amazon SQS API Reference). None
must succeed: without it a message is received after the visibility time-out of its queue, which is harmless. ("Amazon
SQS visibility timeout", Amazon SQS Developer Guide: a new value applies to this receive, from the time of the call.)
"""

import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from relaunch.adapters.aws.errors import AwsError

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
    from mypy_boto3_sqs import SQSClient

# The range of seconds after which a message is tried again, by its receive; later ones wait for the visibility time-out
# of the queue, six times a function's time-out. A throttled bucket of AWS has room again within seconds.
_SOON_SECONDS = {1: (5, 30), 2: (30, 60)}
# Between messages that are set apart: longer than Lambda takes to receive one and to invoke a function with it.
_APART_SECONDS = 10
_PUT_BACK_SECONDS = 5


class SourceQueue:
    """The queue that a function handles the messages of."""

    def __init__(self, client: "SQSClient") -> None:
        self._client = client

    def delete(self, record: "SQSRecord") -> None:
        """Delete a message that was handled, so that it does not come back if the function dies of another one."""
        with suppress(*AwsError):
            self._client.delete_message(QueueUrl=record.queue_url, ReceiptHandle=record.receipt_handle)

    def retry_soon(self, record: "SQSRecord") -> None:
        """Shorten the visibility time-out of a message after its first and second failure, with jitter."""
        soon = _SOON_SECONDS.get(int(record.attributes.approximate_receive_count or 0))
        if soon is None:
            return
        least, most = soon
        self.retry_in(record, least + _jitter(record, most - least))

    def retry_in(self, record: "SQSRecord", seconds: int) -> None:
        """Let a message come back after so many seconds."""
        with suppress(*AwsError):
            self._client.change_message_visibility(
                QueueUrl=record.queue_url, ReceiptHandle=record.receipt_handle, VisibilityTimeout=seconds
            )

    def set_apart(self, records: "Sequence[SQSRecord]", visibility_seconds: int) -> None:
        """Let each message come back at a time of its own after the visibility time-out, should the function die."""
        seconds = {
            index: visibility_seconds + index * _APART_SECONDS + _jitter(record, _APART_SECONDS)
            for index, record in enumerate(records)
        }
        self._change_visibility(records, seconds)

    def put_back(self, records: "Sequence[SQSRecord]") -> None:
        """Let messages that were not tried come back soon, one second after the other."""
        self._change_visibility(records, {index: _PUT_BACK_SECONDS + index for index in range(len(records))})

    def _change_visibility(self, records: "Sequence[SQSRecord]", seconds: Mapping[int, int]) -> None:
        if not records:
            return
        with suppress(*AwsError):
            self._client.change_message_visibility_batch(
                QueueUrl=records[0].queue_url,
                Entries=[
                    {"Id": str(index), "ReceiptHandle": record.receipt_handle, "VisibilityTimeout": seconds[index]}
                    for index, record in enumerate(records)
                ],
            )


def _jitter(record: "SQSRecord", below: int) -> int:
    return zlib.crc32(record.message_id.encode()) % below
