"""The queues between the functions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from relaunch.core.messages.dead_letter import DeadLetterMessage, DeadLetterQueue


class LaunchQueue(Protocol):
    """The attempts queue."""

    def request_launch(self, job_id: str, delay_seconds: int = 0) -> None:
        """Request the launch of a job after a delay of at most 900 seconds."""

    def count_requests(self) -> int:
        """Return the approximate number of launch requests, including delayed ones."""


class DeadLetters(Protocol):
    """The dead-letter queues of a stack."""

    def queues(self) -> Sequence[DeadLetterQueue]:
        """Return the queues, by name."""

    def count(self, queue: DeadLetterQueue) -> int:
        """Return the approximate number of messages, including received ones."""

    def receive(self, queue: DeadLetterQueue) -> list[DeadLetterMessage]:
        """Receive some messages, hidden from others for a minute or until they are put back; empty: no more."""

    def put_back(self, messages: Collection[DeadLetterMessage]) -> None:
        """Make these messages visible again."""

    def redrive(self, message: DeadLetterMessage) -> None:
        """Send a message to its source queue, then delete it; it is delivered at least once.

        Raises:
            PermanentError: it has no source queue.
        """

    def drop(self, message: DeadLetterMessage) -> None:
        """Delete a message; no error if it does not exist."""
