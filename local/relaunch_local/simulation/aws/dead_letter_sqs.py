"""SQS's actions on the dead-letter queues, as the command calls them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.sqs import DeadLetter, Queues


@dataclass(slots=True)
class DeadLetterSqs:
    """The dead-letter queues; a message is named by its number, which it keeps."""

    _queues: Queues
    _clock: Clock
    _on_deleted: Callable[[DeadLetter], None]
    _known: list[DeadLetter] = field(default_factory=list)
    _hidden_until: dict[str, datetime] = field(default_factory=dict)

    def get_queue_attributes(self, **parameters: Any) -> Any:
        """GetQueueAttributes: all messages count as visible ones."""
        count = sum(each.queue == parameters["QueueUrl"] for each in self._queues.dead_letters)
        names = parameters["AttributeNames"]
        return {"Attributes": {name: str(count if name == "ApproximateNumberOfMessages" else 0) for name in names}}

    def receive_message(self, **parameters: Any) -> Any:
        """ReceiveMessage."""
        now = self._clock.now()
        wanted = {self._name(each): each for each in self._queues.dead_letters if each.queue == parameters["QueueUrl"]}
        seen = [name for name in wanted if self._hidden_until.get(name, now) <= now][
            : parameters["MaxNumberOfMessages"]
        ]
        for name in seen:
            self._hidden_until[name] = now + timedelta(seconds=parameters["VisibilityTimeout"])
        attributes = {"SentTimestamp": str(int(now.timestamp() * 1000) - 1), "ApproximateReceiveCount": "1"}
        return {
            "Messages": [
                {"MessageId": name, "ReceiptHandle": name, "Body": wanted[name].body, "Attributes": attributes}
                for name in seen
            ]
        }

    def _name(self, message: DeadLetter) -> str:
        place = next((place for place, each in enumerate(self._known) if each is message), None)
        if place is None:
            place = len(self._known)
            self._known.append(message)
        return f"message-{place:06d}"

    def change_message_visibility_batch(self, **parameters: Any) -> Any:
        """ChangeMessageVisibilityBatch."""
        for entry in parameters["Entries"]:
            seconds = timedelta(seconds=entry["VisibilityTimeout"])
            self._hidden_until[entry["ReceiptHandle"]] = self._clock.now() + seconds
        return {"Successful": [{"Id": entry["Id"]} for entry in parameters["Entries"]], "Failed": []}

    def send_message(self, **parameters: Any) -> Any:
        """SendMessage."""
        self._queues.send(parameters["QueueUrl"], parameters["MessageBody"])
        return {"MessageId": "sent"}

    def delete_message(self, **parameters: Any) -> Any:
        """DeleteMessage."""
        found = [each for each in self._queues.dead_letters if self._name(each) == parameters["ReceiptHandle"]]
        for message in found:
            self._queues.dead_letters[:] = [each for each in self._queues.dead_letters if each is not message]
            self._on_deleted(message)
        return {}
