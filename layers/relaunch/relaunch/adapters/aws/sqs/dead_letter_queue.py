"""Sends failed messages to a function's dead-letter queue (SendMessage, Amazon SQS API Reference).

Separate from batch.py so that functions without a source queue do not import it.
"""

import re
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from relaunch.adapters.aws.errors import aws_errors
from relaunch.adapters.aws.sqs.record import Record
from relaunch.core.messages.dead_letter import FIRST_SEEN, REASON
from relaunch.ports import DecisionLog, NotGrantedError, TransientError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# Characters; SQS only limits the size of the whole message.
_MAX_REASON_LENGTH = 1_000
# Characters that SQS does not allow: control characters and unpaired surrogates.
_INVALID_CHARACTERS = "[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"


class DeadLetterSender:
    """Sends messages to the dead-letter queue of a function, with the reason.

    A message with a permanent error is sent at once, and one with a bug after its last try if `last_try` is known. SQS
    itself moves messages that no function began for days, and without a reason.
    """

    def __init__(self, client: "SQSClient", queue_url: str, log: DecisionLog, last_try: int = 0) -> None:
        self._client = client
        self._queue_url = queue_url
        self._log = log
        self.last_try = last_try

    def note_failure(self, record: Record, error: Exception) -> None:
        """Log a failure."""
        number = record.number("ApproximateReceiveCount")
        text = f"{type(error).__name__}: {error}"
        # Any other error is a bug, whose traceback is logged.
        is_expected = isinstance(error, TransientError | NotGrantedError)
        trace = None if is_expected else "".join(traceback.format_exception(error, limit=-8))
        self._log.decided("failed", message_id=record.message_id, reason=text, receive_count=number, traceback=trace)

    def send(self, record: Record, reason: str) -> None:
        """Send a message with the reason and the time of its first failure.

        Raises:
            TransientError: the message could not be sent; it must be retried instead.
        """
        seen = first_seen(record)
        attributes = {
            REASON: re.sub(_INVALID_CHARACTERS, "\ufffd", reason[:_MAX_REASON_LENGTH]) or "unknown",
            FIRST_SEEN: seen,
        }
        with aws_errors("sending a message to the dead-letter queue"):
            self._client.send_message(
                QueueUrl=self._queue_url,
                MessageBody=record.body,
                MessageAttributes={
                    name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
                },
            )
        self._log.decided("dead-lettered", message_id=record.message_id, reason=reason, first_seen=seen)


def first_seen(record: Record) -> str:
    """Return when a message was first received: one that was sent again, by a function or a person, says when."""
    earlier = record.attribute(FIRST_SEEN)
    if _is_time(earlier):
        return earlier
    milliseconds = record.number("ApproximateFirstReceiveTimestamp")
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
