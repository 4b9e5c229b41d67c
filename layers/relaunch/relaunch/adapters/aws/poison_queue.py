"""A function's dead-letter queue, and what is sent there ("SendMessage", Amazon SQS API Reference).

Apart from the handling of batches: functions that have no queue of their own need not import that.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from relaunch.adapters.aws.errors import aws_errors
from relaunch.ports import DecisionLog

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
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

    def bury(self, record: "SQSRecord", reason: str) -> None:
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


def _first_seen(record: "SQSRecord") -> str:
    milliseconds = int(record.attributes.approximate_first_receive_timestamp or 0)
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
