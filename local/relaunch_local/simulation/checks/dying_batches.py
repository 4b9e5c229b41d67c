"""Batches of which functions die of one message: what becomes of the others.

A function that dies hands its whole batch back, but for the messages that it has deleted, and each of them has lost a
try ("Using Lambda with Amazon SQS", AWS Lambda Developer Guide).
"""

import random

from relaunch.core.messages.handling_order import ReceivedMessage, order_messages
from relaunch_local.simulation.checks.record import Check

_TRIES = 7
_LARGEST = 10
_BATCHES = 3


def let_functions_die(check: Check, dice: random.Random) -> None:
    """Check that a message that functions die of takes no other one with it, however many tries those have left."""
    for _ in range(_BATCHES):
        count = dice.randint(2, _LARGEST)
        tries = {f"{dice.getrandbits(64):016x}": dice.choice((1, 1, 2, 3, _TRIES - 1, _TRIES)) for _ in range(count)}
        deadly = dice.choice(sorted(tries))
        # On its last try it may come before others that are on theirs.
        tries[deadly] = min(tries[deadly], 3)
        given_up = _find_given_up(tries, deadly)
        message = f"functions die of {deadly[:4]}: {given_up} of {tries}"
        check("a message that functions die of makes no other one a dead letter", not given_up, message)


def _find_given_up(tries: dict[str, int], deadly: str) -> list[str]:
    """Return the messages that have no try left before a function comes to them, until the deadly one has none."""
    left = dict(tries)
    given_up = []
    while deadly in left:
        batch = [ReceivedMessage(name, count) for name, count in sorted(left.items())]
        for place in order_messages(batch, _TRIES):
            if batch[place].message_id == deadly:
                break
            del left[batch[place].message_id]
        left = {name: count + 1 for name, count in left.items()}
        given_up += [name for name, count in left.items() if count > _TRIES and name != deadly]
        left = {name: count for name, count in left.items() if count <= _TRIES}
    return given_up
