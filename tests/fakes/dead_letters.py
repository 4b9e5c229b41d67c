"""Dead-letter queues in memory."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from fakes.builders import NOW
from relaunch.core.messages.dead_letter import DeadLetterMessage, DeadLetterQueue
from relaunch.ports import PermanentError

PAGE = 2


class FakeDeadLetters:
    """Implements DeadLetters; `redriven` lists (queue's name, body), and what is received is hidden until put back."""

    def __init__(self, *queues: DeadLetterQueue) -> None:
        self._queues = queues or (
            DeadLetterQueue("intake", "dead/intake", "live/intake"),
            DeadLetterQueue("reconcile", "dead/reconcile"),
            DeadLetterQueue("refresh-offerings", "dead/refresh-offerings"),
            DeadLetterQueue("warnings", "dead/warnings", "live/warnings"),
        )
        self.messages: dict[str, DeadLetterMessage] = {}
        self.redriven: list[tuple[str, str]] = []
        self.hidden: set[str] = set()
        self.failure: Exception | None = None

    def queue(self, name: str) -> DeadLetterQueue:
        return next(queue for queue in self._queues if queue.name == name)

    def add(self, queue: str, body: str, sent_at: datetime = NOW, **fields: Any) -> DeadLetterMessage:
        """Let a message be in a dead-letter queue."""
        number = len(self.messages) + 1
        message_id = fields.pop("message_id", f"{number:08x}-7b3c-4e8d-9a60-1c2b3d4e5f60")
        message = DeadLetterMessage(self.queue(queue), message_id, body, sent_at, **{"receive_count": 1, **fields})
        self.messages[message_id] = replace(message, receipt=f"receipt of {message_id}")
        return self.messages[message_id]

    def queues(self) -> Sequence[DeadLetterQueue]:
        return self._queues

    def count(self, queue: DeadLetterQueue) -> int:
        if self.failure:
            raise self.failure
        return sum(message.queue == queue for message in self.messages.values())

    def receive(self, queue: DeadLetterQueue) -> list[DeadLetterMessage]:
        visible = [
            each for each in self.messages.values() if each.queue == queue and each.message_id not in self.hidden
        ]
        self.hidden |= {message.message_id for message in visible[:PAGE]}
        return visible[:PAGE]

    def put_back(self, messages: Collection[DeadLetterMessage]) -> None:
        self.hidden -= {message.message_id for message in messages}

    def redrive(self, message: DeadLetterMessage) -> None:
        if message.queue.source_url is None:
            raise PermanentError(f"{message.queue.name} has no queue")
        if self.failure:
            raise self.failure
        self.redriven.append((message.queue.name, message.body))
        self.drop(message)

    def drop(self, message: DeadLetterMessage) -> None:
        self.messages.pop(message.message_id, None)
        self.hidden.discard(message.message_id)
