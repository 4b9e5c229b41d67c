"""Dead-letter queues on SQS: ReceiveMessage, ChangeMessageVisibility, SendMessage, DeleteMessage.

What is received stays in its queue and is hidden from others for a minute, or until it is put back. SQS's own redrive
(StartMessageMoveTask) takes whole queues only, and nothing that was sent to them directly.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from relaunch.adapters.aws.errors import aws_errors
from relaunch.core.messages.dead_letter import FIRST_SEEN, DeadLetterMessage, DeadLetterQueue
from relaunch.ports import PermanentError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# ReceiveMessage's and ChangeMessageVisibilityBatch's most.
_PAGE = 10
_HIDDEN_SECONDS = 60


class SqsDeadLetters:
    """Implements DeadLetters.

    `wait_seconds` of long polling ask all of SQS's servers and not only some: a queue that holds little looks empty
    otherwise ("Amazon SQS short and long polling"). A queue that SQS takes for empty is asked without waiting.
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
                MaxNumberOfMessages=_PAGE,
                VisibilityTimeout=_HIDDEN_SECONDS,
                WaitTimeSeconds=wait_seconds,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
        return [_read(queue, message) for message in answer.get("Messages", ())]

    def put_back(self, letters: Collection[DeadLetterMessage]) -> None:
        by_url: dict[str, list[DeadLetterMessage]] = {}
        for letter in letters:
            by_url.setdefault(letter.queue.url, []).append(letter)
        for url, of_queue in by_url.items():
            for start in range(0, len(of_queue), _PAGE):
                self._show_again(url, of_queue[start : start + _PAGE])

    def _show_again(self, url: str, letters: Sequence[DeadLetterMessage]) -> None:
        # Whatever fails of it is visible again in a minute.
        with aws_errors("putting dead letters back"):
            self._client.change_message_visibility_batch(
                QueueUrl=url,
                Entries=[
                    {"Id": str(number), "ReceiptHandle": letter.receipt, "VisibilityTimeout": 0}
                    for number, letter in enumerate(letters)
                ],
            )

    def redrive(self, letter: DeadLetterMessage) -> None:
        source_url = letter.queue.source_url
        if source_url is None:
            raise PermanentError(f"{letter.queue.name} has no queue to send message {letter.message_id} to")
        first_seen = letter.attributes.get(FIRST_SEEN)
        # Without its reason, which may not hold any more; but should it come back, it is as old as it is.
        kept: dict[str, Any] = {FIRST_SEEN: {"DataType": "String", "StringValue": first_seen}} if first_seen else {}
        with aws_errors(f"sending dead letter {letter.message_id} back to {letter.queue.name}"):
            self._client.send_message(QueueUrl=source_url, MessageBody=letter.body, MessageAttributes=kept)
        self.drop(letter)

    def drop(self, letter: DeadLetterMessage) -> None:
        with aws_errors(f"deleting dead letter {letter.message_id} of {letter.queue.name}"):
            self._client.delete_message(QueueUrl=letter.queue.url, ReceiptHandle=letter.receipt)


def _read(queue: DeadLetterQueue, message: Mapping[str, Any]) -> DeadLetterMessage:
    system: Mapping[str, str] = message.get("Attributes", {})
    given = message.get("MessageAttributes", {})
    return DeadLetterMessage(
        queue,
        message["MessageId"],
        message.get("Body", ""),
        sent_at=_moment(system.get("SentTimestamp")) or datetime.fromtimestamp(0, UTC),
        first_received_at=_moment(system.get("ApproximateFirstReceiveTimestamp")),
        receive_count=int(system.get("ApproximateReceiveCount", 0)),
        source_arn=system.get("DeadLetterQueueSourceArn", ""),
        attributes={name: each["StringValue"] for name, each in given.items() if "StringValue" in each},
        receipt=message["ReceiptHandle"],
    )


def _moment(milliseconds: str | None) -> datetime | None:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC) if milliseconds else None
