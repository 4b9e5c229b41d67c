"""The order in which a function handles the messages of a batch, so that one that it dies of costs others little.

A function that times out, runs out of memory or crashes hands its whole batch back, and each message of it has lost a
try. Which of them it died of, nobody knows; all of them are suspects when they are received again.
"""

from collections.abc import Sequence

from relaunch.core.records import dataclass

LEAST_TRIES = 3
"""The least number of tries with which one message that functions die of makes no other a dead letter."""


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message of a batch, and which try this is: receives that a temporary error ended are none (retries.py)."""

    message_id: str
    tries: int

    @property
    def is_suspect(self) -> bool:
        """Return whether an earlier try failed, or ended with its function."""
        return self.tries > 1


def order_messages(messages: Sequence[ReceivedMessage], last_try: int) -> list[int]:
    """Return the indexes of messages in the order in which to handle them.

    Those on their last try come first: a try that another message takes from them would be their end. New ones are
    next, before suspects can take a try from them. Suspects follow, the least tried first: a message that functions die
    of has been tried at least as often as those that it alone took tries from. Of equally many tries, those before it
    were handled this time, and those after it come before it next time: the order of their ids alternates.

    Args:
        messages: The messages of a batch.
        last_try: How many tries a message has; 0 if it is not known.
    """
    by_id = sorted(range(len(messages)), key=lambda index: messages[index].message_id)
    places = {index: place for place, index in enumerate(by_id)}

    def key(index: int) -> tuple[bool, int, int]:
        message = messages[index]
        is_last = 0 < last_try <= message.tries
        place = places[index] if message.tries % 2 else -places[index]
        return not is_last, message.tries, place if message.is_suspect else index

    return sorted(range(len(messages)), key=key)
