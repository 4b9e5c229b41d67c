"""The queues between the functions."""

from collections.abc import Collection, Sequence
from typing import Protocol

from relaunch.core.messages.dead_letter import DeadLetterMessage, DeadLetterQueue


class LaunchQueue(Protocol):
    """The attempts queue."""

    def request_launch(self, job_id: str, delay_seconds: int = 0) -> None:
        """Ask launch_attempt to look at a job, after at most 900 seconds."""
        ...

    def count_requests(self) -> int:
        """Return about how many launches are asked for, those that are delayed included.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...


class DeadLetters(Protocol):
    """The dead-letter queues of a stack. Their calls raise TransientError when throttled or unreachable."""

    def queues(self) -> Sequence[DeadLetterQueue]:
        """Return the queues, by name."""
        ...

    def count(self, queue: DeadLetterQueue) -> int:
        """Return about how many messages there are, those that somebody looks at included."""
        ...

    def receive(self, queue: DeadLetterQueue) -> list[DeadLetterMessage]:
        """Receive some messages, which nobody else sees for a minute or until they are put back; none: no more."""
        ...

    def put_back(self, letters: Collection[DeadLetterMessage]) -> None:
        """Let others see these messages again."""
        ...

    def redrive(self, letter: DeadLetterMessage) -> None:
        """Send a message to its source queue, then delete it here: at least once.

        Raises:
            PermanentError: it belongs to no queue.
        """
        ...

    def drop(self, letter: DeadLetterMessage) -> None:
        """Delete a message; one that is gone is fine."""
        ...
