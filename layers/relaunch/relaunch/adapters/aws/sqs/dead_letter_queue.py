"""A function's dead-letter queue, and what is sent there ("SendMessage", Amazon SQS API Reference).

Apart from the handling of batches: functions that have no queue of their own need not import that.
"""

import re
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from relaunch.adapters.aws.errors import aws_errors
from relaunch.core.messages.dead_letter import FIRST_SEEN, REASON
from relaunch.ports import DecisionLog, TransientError

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
    from mypy_boto3_sqs import SQSClient

# SQS takes attribute values of up to the message's own size; a reason is for people.
_LONGEST_REASON = 1_000
# A reason quotes what is wrong, and SQS refuses a message with control characters or half a surrogate pair in it.
_REFUSED = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class DeadLetterSender:
    """The function's dead-letter queue, for messages that trying again cannot help.

    We send them there ourselves, at once: SQS would try them maxReceiveCount times, and a message that it moves carries
    no reason. For the same reason we send those there whose last try failed, where `last_try` (maxReceiveCount) is
    known; SQS is left those during which the function itself was ended.
    """

    def __init__(self, client: "SQSClient", queue_url: str, log: DecisionLog, last_try: int = 0) -> None:
        self._client = client
        self._queue_url = queue_url
        self._log = log
        self._last_try = last_try

    def note_failure(self, record: "SQSRecord", error: Exception) -> str:
        """Log a failed try; return the reason to bury the message with when it was the last one, else nothing."""
        number = int(record.attributes.approximate_receive_count or 0)
        words = f"{type(error).__name__}: {error}"
        # What is not a failure of the outside world is a bug of ours.
        trace = None if isinstance(error, TransientError) else "".join(traceback.format_exception(error, limit=-8))
        self._log.decided("failed", message_id=record.message_id, reason=words, receive_count=number, traceback=trace)
        return f"given up after {number} tries: {words}" if 0 < self._last_try <= number else ""

    def send(self, record: "SQSRecord", reason: str) -> None:
        """Send a message there with why and since when it fails.

        Raises:
            TransientError: the message could not be sent; it is delivered again instead.
        """
        first_seen = _first_seen(record)
        attributes = {REASON: _REFUSED.sub("\ufffd", reason[:_LONGEST_REASON]) or "unknown", FIRST_SEEN: first_seen}
        with aws_errors("sending a message to the dead-letter queue"):
            self._client.send_message(
                QueueUrl=self._queue_url,
                MessageBody=record.body,
                MessageAttributes={
                    name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
                },
            )
        self._log.decided("dead-lettered", message_id=record.message_id, reason=reason, first_seen=first_seen)


def _first_seen(record: "SQSRecord") -> str:
    # A message that was redriven failed before.
    earlier = record.message_attributes[FIRST_SEEN]
    if earlier is not None and earlier.string_value:
        return earlier.string_value
    milliseconds = int(record.attributes.approximate_first_receive_timestamp or 0)
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
