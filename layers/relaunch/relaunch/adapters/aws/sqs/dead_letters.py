"""Dead-letter queues on SQS: ReceiveMessage, ChangeMessageVisibility, SendMessage, DeleteMessage.

A received message is invisible to others for a minute, or until it is put back. SQS's redrive (StartMessageMoveTask)
is not used: it moves whole queues only, and no messages that were sent to them directly.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from relaunch.adapters.aws.errors import aws_errors
from relaunch.core.messages.dead_letter import FIRST_SEEN, DeadLetterMessage, DeadLetterQueue
from relaunch.ports import PermanentError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# The maximum of ReceiveMessage and ChangeMessageVisibilityBatch.
_MAX_MESSAGES = 10
_VISIBILITY_TIMEOUT_SECONDS = 60


class SqsDeadLetters:
    """Implements DeadLetters.

    Long polling of `wait_seconds` queries all servers of SQS: short polling may return nothing from a queue with few
    messages ("Amazon SQS short and long polling"). It is not used for a queue that `count` found to be empty.
    """

    def __init__(self, client: "SQSClient", queues: Sequence[DeadLetterQueue], wait_seconds: int = 1) -> None:
        self._client = client
        self._queues = tuple(queues)
        self._wait_seconds = wait_seconds
        self._empty: set[str] = set()

    def queues(self) -> Sequence[DeadLetterQueue]:
        return self._queues

    def count(self, queue: DeadLetterQueue) -> int:
        with aws_errors(f"counting the dead letters of {queue.name}"):
            answer = self._client.get_queue_attributes(
                QueueUrl=queue.url,
                AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
            )
        count = sum(int(number) for number in answer.get("Attributes", {}).values())
        (self._empty.discard if count else self._empty.add)(queue.name)
        return count

    def receive(self, queue: DeadLetterQueue) -> list[DeadLetterMessage]:
        wait_seconds = 0 if queue.name in self._empty else self._wait_seconds
        with aws_errors(f"looking at the dead letters of {queue.name}"):
            answer = self._client.receive_message(
                QueueUrl=queue.url,
                MaxNumberOfMessages=_MAX_MESSAGES,
                VisibilityTimeout=_VISIBILITY_TIMEOUT_SECONDS,
                WaitTimeSeconds=wait_seconds,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
        return [_read(queue, message) for message in answer.get("Messages", ())]

    def put_back(self, messages: Collection[DeadLetterMessage]) -> None:
        by_url: dict[str, list[DeadLetterMessage]] = {}
        for message in messages:
            by_url.setdefault(message.queue.url, []).append(message)
        for url, of_queue in by_url.items():
            for start in range(0, len(of_queue), _MAX_MESSAGES):
                self._reset_visibility(url, of_queue[start : start + _MAX_MESSAGES])

    def _reset_visibility(self, url: str, messages: Sequence[DeadLetterMessage]) -> None:
        # Failures are ignored: the messages become visible in a minute.
        with aws_errors("putting dead letters back"):
            self._client.change_message_visibility_batch(
                QueueUrl=url,
                Entries=[
                    {"Id": str(number), "ReceiptHandle": message.receipt, "VisibilityTimeout": 0}
                    for number, message in enumerate(messages)
                ],
            )

    def redrive(self, message: DeadLetterMessage) -> None:
        source_url = message.queue.source_url
        if source_url is None:
            raise PermanentError(f"{message.queue.name} has no queue to send message {message.message_id} to")
        first_seen = message.attributes.get(FIRST_SEEN)
        # The reason is dropped; the time of the first failure is kept in case the message fails again.
        kept: dict[str, Any] = {FIRST_SEEN: {"DataType": "String", "StringValue": first_seen}} if first_seen else {}
        with aws_errors(f"sending dead letter {message.message_id} back to {message.queue.name}"):
            self._client.send_message(QueueUrl=source_url, MessageBody=message.body, MessageAttributes=kept)
        self.drop(message)

    def drop(self, message: DeadLetterMessage) -> None:
        with aws_errors(f"deleting dead letter {message.message_id} of {message.queue.name}"):
            self._client.delete_message(QueueUrl=message.queue.url, ReceiptHandle=message.receipt)


def _read(queue: DeadLetterQueue, message: Mapping[str, Any]) -> DeadLetterMessage:
    system: Mapping[str, str] = message.get("Attributes", {})
    given = message.get("MessageAttributes", {})
    return DeadLetterMessage(
        queue,
        message["MessageId"],
        message.get("Body", ""),
        sent_at=_to_datetime(system.get("SentTimestamp")) or datetime.fromtimestamp(0, UTC),
        first_received_at=_to_datetime(system.get("ApproximateFirstReceiveTimestamp")),
        receive_count=int(system.get("ApproximateReceiveCount", 0)),
        source_arn=system.get("DeadLetterQueueSourceArn", ""),
        attributes={name: each["StringValue"] for name, each in given.items() if "StringValue" in each},
        receipt=message["ReceiptHandle"],
    )


def _to_datetime(milliseconds: str | None) -> datetime | None:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC) if milliseconds else None
