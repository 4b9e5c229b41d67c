"""Sends messages of a batch again, deletes those that are done, and says when suspects are received again.

The actions are SendMessage, DeleteMessage and ChangeMessageVisibilityBatch (Amazon SQS API Reference). Only the first
must succeed: without it a message is received after the visibility time-out of its queue, and has lost a try. A message
that was sent again and cannot be deleted is there twice, which its handling takes.
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from relaunch.adapters.aws.errors import AwsError, aws_errors
from relaunch.adapters.aws.sqs.dead_letter_queue import first_seen
from relaunch.adapters.aws.sqs.delayed_message import MAX_DELAY_SECONDS
from relaunch.adapters.aws.sqs.record import Record
from relaunch.core.messages.dead_letter import FIRST_SEEN

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# Between messages that are set apart: longer than Lambda takes to receive one and to invoke a function with it.
_APART_SECONDS = 10
_PUT_BACK_SECONDS = 5
# Message attributes: how often the messages that this one was sent again for were tried, and since when they fail. The
# second is dropped when somebody sends a dead letter back, which begins from the start (dead_letters.py).
_TRIES_BEFORE = "tries_before"
_FAILING_SINCE = "failing_since"


def tries_of(record: Record) -> int:
    """Return which try of a message this receive is."""
    return _tries_before(record) + record.number("ApproximateReceiveCount")


def failing_since(record: Record, now: datetime) -> datetime:
    """Return since when a message fails for temporary reasons: now, if it did not before, or says no time before now.

    Whoever may send to the queue may give a message any attributes.
    """
    try:
        since = datetime.fromisoformat(record.attribute(_FAILING_SINCE))
    except ValueError:
        return now
    return min(since, now) if since.tzinfo is not None else now


def spread_of(record: Record) -> int:
    """Return a number of the message's own."""
    return zlib.crc32(record.message_id.encode())


def _tries_before(record: Record) -> int:
    given = record.attribute(_TRIES_BEFORE)
    return int(given) if re.fullmatch(r"[0-9]{1,6}", given) else 0


class SourceQueue:
    """The queue that a function handles the messages of."""

    def __init__(self, client: "SQSClient") -> None:
        self._client = client

    def delete(self, record: Record) -> None:
        """Delete a message that was handled, so that it does not come back if the function dies of another one."""
        with suppress(*AwsError):
            self._client.delete_message(QueueUrl=record.queue_url, ReceiptHandle=record.receipt_handle)

    def send_again(self, record: Record, seconds: int, since: datetime | None = None) -> None:
        """Send a message again, to be received after so many seconds, and delete it; this receive is no try.

        `since` is when it began to fail, None if it did not fail.

        Raises:
            TransientError: it may not have been sent again, and was not deleted.
        """
        attributes = {FIRST_SEEN: first_seen(record), _TRIES_BEFORE: str(max(tries_of(record) - 1, 0))}
        if since is not None:
            attributes[_FAILING_SINCE] = since.isoformat()
        values: dict[str, Any] = {
            name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
        }
        with aws_errors("sending a message again"):
            self._client.send_message(
                QueueUrl=record.queue_url,
                MessageBody=record.body,
                MessageAttributes=values,
                DelaySeconds=min(seconds, MAX_DELAY_SECONDS),
            )
        self.delete(record)

    def put_back(self, record: Record, place: int) -> None:
        """Let a message that was not tried come back soon, one second after that before it in the batch.

        Raises:
            TransientError: as in send_again.
        """
        self.send_again(record, _PUT_BACK_SECONDS + place)

    def set_apart(self, records: Sequence[Record], visibility_seconds: int) -> None:
        """Let each message come back at a time of its own after the visibility time-out, should the function die."""
        seconds = {
            index: visibility_seconds + index * _APART_SECONDS + spread_of(record) % _APART_SECONDS
            for index, record in enumerate(records)
        }
        self._change_visibility(records, seconds)

    def _change_visibility(self, records: Sequence[Record], seconds: Mapping[int, int]) -> None:
        with suppress(*AwsError):
            self._client.change_message_visibility_batch(
                QueueUrl=records[0].queue_url,
                Entries=[
                    {"Id": str(index), "ReceiptHandle": record.receipt_handle, "VisibilityTimeout": seconds[index]}
                    for index, record in enumerate(records)
                ],
            )
