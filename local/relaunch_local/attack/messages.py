"""Attacks by messages that are almost those of AWS: each queue's function handles or refuses them."""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

from relaunch.adapters.messages.topic_messages import WatchedTopics
from relaunch.entrypoints.consumers import CONSUMERS, handler_of
from relaunch.entrypoints.sns import handle_message
from relaunch.ports import Dependencies, PermanentError
from relaunch_local.attack.attempts import Attempt, attempt
from relaunch_local.attack.bodies import mutate
from relaunch_local.attack.stack import AttackedStack
from relaunch_local.repository import REPOSITORY

_TOPICS = WatchedTopics(frozenset({"arn:aws:sns:us-east-1:111122223333:features"}))
HANDLERS: Mapping[str, Callable[[str, Dependencies], object]] = {
    **{each: handler_of(each) for each in CONSUMERS.values()},
    "sns": partial(handle_message, _TOPICS),
}
"""By queue, what its function does with a message."""


def queue_messages(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Send every sample to every queue, then as many changed ones: no error but a refusal comes of them."""
    stack = AttackedStack()
    samples = _samples()
    for sample, queue in product(samples, HANDLERS):
        yield _send(stack, sample, queue, json.dumps(samples[sample]))
    for _ in range(count):
        sample = dice.choice(sorted(samples))
        queue = dice.choice((sample.split(".")[1], dice.choice(sorted(HANDLERS))))
        yield _send(stack, sample, queue, json.dumps(mutate(samples[sample], dice)))


def _send(stack: AttackedStack, sample: str, queue: str, body: str) -> Attempt:
    return attempt(f"{sample} to {queue}: {body[:300]}", partial(handle_by, stack, queue, body))


def _samples() -> dict[str, Any]:
    """Return the body of the message in each sample of events/, by the file's name."""
    samples = {}
    for file in sorted((REPOSITORY / "events").glob("sqs.*.json")):
        (record,) = json.loads(file.read_text(encoding="utf-8"))["Records"]
        samples[file.name] = json.loads(record["body"])
    return samples


def handle_by(stack: AttackedStack, queue: str, body: str) -> None:
    """Let the function of a queue handle a message; only refusals are caught."""
    stack.account.clock.advance(10.0)
    try:
        HANDLERS[queue](body, stack.deps)
    except PermanentError:
        return
