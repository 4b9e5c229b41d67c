"""SQS's actions over the simulated queues."""

from dataclasses import dataclass
from typing import Any

from relaunch_local.simulation.aws.clients import CallingClient, client_error
from relaunch_local.simulation.aws.runtime import Runtime
from relaunch_local.simulation.aws.sqs import Queues


@dataclass(frozen=True, slots=True)
class ModelSqs:
    """SQS's actions; queue URLs are, or end in, the logical names of the queues."""

    _queues: Queues
    _runtime: Runtime

    def _origin_of(self, body: str) -> int:
        """Return the origin of the message of this text that the running function has, 0 if it has none.

        Of several it is the one that the function handles now.
        """
        invocation = self._runtime.current
        if invocation is None:
            return 0
        messages = (*invocation.messages[invocation.current :], *invocation.messages[: invocation.current])
        return next((message.origin for message in messages if message.body == body and not message.is_deleted), 0)

    def send_message(self, **parameters: Any) -> Any:
        """SendMessage."""
        if not 0 <= parameters.get("DelaySeconds", 0) <= 900:
            raise client_error("InvalidParameterValue", "DelaySeconds")
        self._queues.send(
            parameters["QueueUrl"].rpartition("/")[2],
            parameters["MessageBody"],
            delay_seconds=parameters.get("DelaySeconds", 0),
            lineage=self._runtime.lineage(),
            attributes={name: each["StringValue"] for name, each in parameters.get("MessageAttributes", {}).items()},
            origin=self._origin_of(parameters["MessageBody"]),
        )
        return {"MessageId": "sent"}

    def change_message_visibility(self, **parameters: Any) -> Any:
        """ChangeMessageVisibility; a receipt handle is `number/receive`."""
        number, receive = map(int, parameters["ReceiptHandle"].split("/"))
        queue = self._queues.queues[parameters["QueueUrl"].rpartition("/")[2]]
        queue.change_visibility(number, receive, parameters["VisibilityTimeout"])
        return {}

    def change_message_visibility_batch(self, **parameters: Any) -> Any:
        """ChangeMessageVisibilityBatch."""
        for entry in parameters["Entries"]:
            self.change_message_visibility(
                QueueUrl=parameters["QueueUrl"],
                ReceiptHandle=entry["ReceiptHandle"],
                VisibilityTimeout=entry["VisibilityTimeout"],
            )
        return {"Successful": [{"Id": entry["Id"]} for entry in parameters["Entries"]], "Failed": []}

    def delete_message(self, **parameters: Any) -> Any:
        """DeleteMessage; a receipt handle that was superseded may delete nothing."""
        number, receive = map(int, parameters["ReceiptHandle"].split("/"))
        queue = self._queues.queues[parameters["QueueUrl"].rpartition("/")[2]]
        queue.delete_received(number, receive)
        return {}

    def get_queue_attributes(self, **parameters: Any) -> Any:
        """GetQueueAttributes: the number of visible and of delayed (or in-flight) messages."""
        queue = self._queues.queues[parameters["QueueUrl"]]
        dead_lettered = sum(message.queue == parameters["QueueUrl"] for message in self._queues.dead_letters)
        visible = len(queue.visible) + dead_lettered
        delayed = max(queue.open_bodies.total() - len(queue.visible), 0)
        counts = {
            "ApproximateNumberOfMessages": visible,
            "ApproximateNumberOfMessagesDelayed": delayed,
            "ApproximateNumberOfMessagesNotVisible": 0,
        }
        return {"Attributes": {name: str(counts[name]) for name in parameters["AttributeNames"]}}


@dataclass(frozen=True, slots=True)
class SourceSqs:
    """SQS as a function calls it for its own messages; only sending one again may fail."""

    _calling: CallingClient
    _model: ModelSqs

    def send_message(self, **parameters: Any) -> Any:
        """SendMessage."""
        return self._calling.send_message(**parameters)

    def change_message_visibility_batch(self, **parameters: Any) -> Any:
        """ChangeMessageVisibilityBatch."""
        return self._model.change_message_visibility_batch(**parameters)

    def delete_message(self, **parameters: Any) -> Any:
        """DeleteMessage."""
        return self._model.delete_message(**parameters)
