"""A message that functions die of, among others: a queue, functions that receive batches of it, and a clock.

Functions are the real code. The queue hands out up to ten of the messages that are visible, in an order that a seed
draws, with those that kill functions always among them.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from botocore.exceptions import ReadTimeoutError

from fakes.builders import NOW
from fakes.functions import FakeContext
from fakes.sources import ListLog
from relaunch.adapters.aws.sqs.batch import Consumer, Queues, handle_batch
from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.adapters.aws.sqs.source_queue import SourceQueue
from relaunch.ports import TransientError

LAST_TRY = 7
TIMEOUT_SECONDS = 30
VISIBILITY_SECONDS = 180


class KilledError(BaseException):
    """The function's process has ended."""


@dataclass
class Message:
    name: str
    visible_at: int = 0
    receives: int = 0
    body: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.body = self.body or self.name


@dataclass
class Queue:
    """SQS, as far as functions call it, with one function at a time, which dies of messages with a hash sign.

    `outages` is how often a message fails for a temporary reason instead.
    """

    messages: dict[str, Message]
    draw: random.Random
    sets_apart: bool = True
    outages: float = 0.0
    now: int = 0
    sent: int = 0
    deaths: Counter[str] = field(default_factory=Counter)
    last_tries: set[str] = field(default_factory=set)
    dead_letters: list[str] = field(default_factory=list)
    handled: list[tuple[str, int]] = field(default_factory=list)

    def change_message_visibility_batch(self, *, Entries: list[dict[str, Any]], **_: Any) -> None:  # noqa: N803
        if not self.sets_apart:
            raise ReadTimeoutError(endpoint_url="sqs")
        for entry in Entries:
            self.messages[entry["ReceiptHandle"]].visible_at = self.now + entry["VisibilityTimeout"]

    def delete_message(self, *, ReceiptHandle: str, **_: Any) -> None:  # noqa: N803
        del self.messages[ReceiptHandle]

    def send_message(self, *, QueueUrl: str, MessageBody: str, **given: Any) -> None:  # noqa: N803
        if QueueUrl == "dead":
            self.dead_letters.append(MessageBody)
            return
        self.sent += 1
        name = f"{MessageBody}/{self.sent}"
        attributes = {
            key: {"stringValue": each["StringValue"], "dataType": "String"}
            for key, each in given["MessageAttributes"].items()
        }
        self.messages[name] = Message(name, self.now + given["DelaySeconds"], 0, MessageBody, attributes)

    def begin_last_try(self, message_id: str) -> bool:
        is_new = message_id not in self.last_tries
        self.last_tries.add(message_id)
        return is_new

    def receive(self) -> list[Message]:
        """Return up to ten visible messages."""
        batch = [message for message in self.messages.values() if message.visible_at <= self.now]
        self.draw.shuffle(batch)
        # The drawn number of killers, and others.
        killers = [each for each in batch if "#" in each.name][: self.draw.randint(1, 3)]
        batch = [*killers, *(each for each in batch if "#" not in each.name)][:10]
        self.draw.shuffle(batch)
        for message in batch:
            message.receives += 1
            message.visible_at = self.now + VISIBILITY_SECONDS
        return batch

    def run(self, kill: Callable[["Queue"], None]) -> None:
        """Invoke functions until the queue is empty."""
        queues = Queues(
            SourceQueue(cast("Any", self)), DeadLetterSender(cast("Any", self), "dead", ListLog(), LAST_TRY)
        )
        while self.messages:
            batch = self.receive()
            if batch:
                self.invoke(batch, queues, kill)
            self.now += 1

    def invoke(self, batch: list[Message], queues: Queues, kill: Callable[["Queue"], None]) -> None:
        receives = {message.name: message.receives for message in batch}
        tries = {message.body: message.receives for message in batch}

        def handle_body(body: str) -> None:
            if self.draw.random() < self.outages:
                raise TransientError("throttled")
            if "#" in body:
                self.deaths[body] += 1
                kill(self)
            self.handled.append((body, tries[body]))

        event, context = {"Records": [record(message) for message in batch]}, FakeContext(milliseconds=29_900)
        try:
            consumer = Consumer(handle_body, lambda _failing_for: None, self.begin_last_try, lambda: NOW)
            answer = handle_batch(event, cast("Any", context), consumer, queues)
        except KilledError:
            return
        failed = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
        for name in receives.keys() - failed:
            self.messages.pop(name, None)


def record(message: Message) -> dict[str, Any]:
    return {
        "messageId": message.name,
        "receiptHandle": message.name,
        "body": message.body,
        "attributes": {"ApproximateReceiveCount": str(message.receives)},
        "messageAttributes": message.attributes,
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:111122223333:relaunch-intake",
    }


def time_out(queue: Queue) -> None:
    queue.now += TIMEOUT_SECONDS
    raise KilledError


def crash(_queue: Queue) -> None:
    raise KilledError


@pytest.mark.parametrize(
    ("kill", "poison", "neighbours", "most"),
    [
        pytest.param(crash, 1, 10, 3, id="one-crashes"),
        pytest.param(crash, 1, 100, 3, id="one-of-a-hundred-crashes"),
        pytest.param(crash, 3, 100, 5, id="three-of-a-hundred-crash"),
        pytest.param(crash, 10, 100, 5, id="ten-of-a-hundred-crash"),
        pytest.param(time_out, 1, 10, 3, id="one-times-out"),
        pytest.param(time_out, 1, 100, 3, id="one-of-a-hundred-times-out"),
        pytest.param(time_out, 3, 100, 5, id="three-of-a-hundred-time-out"),
    ],
)
def test_only_what_kills_functions_becomes_a_dead_letter(
    kill: Callable[[Queue], None], poison: int, neighbours: int, most: int
) -> None:
    others = [f"{number:03}" for number in range(neighbours)]
    killers = [f"{number * 7:03}#" for number in range(poison)]
    worst = 0
    for seed in range(30):
        queue = Queue({name: Message(name) for name in (*others, *killers)}, random.Random(seed))  # noqa: S311

        queue.run(kill)

        assert sorted(queue.dead_letters) == killers
        assert {name for name, _ in queue.handled} == set(others)
        worst = max(worst, *(receives for _, receives in queue.handled))
    assert worst <= most


@pytest.mark.parametrize("neighbours", [10, 100])
def test_one_that_kills_functions_is_alone_even_if_sqs_sets_nothing_apart(neighbours: int) -> None:
    others = [f"{number:03}" for number in range(neighbours)]
    for seed in range(30):
        draw = random.Random(seed)  # noqa: S311
        queue = Queue({name: Message(name) for name in (*others, "005#")}, draw, sets_apart=False)

        queue.run(crash)

        assert queue.dead_letters == ["005#"]
        assert max(receives for _, receives in queue.handled) <= 3


@pytest.mark.parametrize("outages", [0.3, 0.8])
@pytest.mark.parametrize("kill", [crash, time_out])
def test_a_temporary_error_is_no_try_and_a_death_is_one_of_seven(kill: Callable[[Queue], None], outages: float) -> None:
    others = [f"{number:03}" for number in range(20)]
    for seed in range(20):
        draw = random.Random(seed)  # noqa: S311
        queue = Queue({name: Message(name) for name in (*others, "005#")}, draw, outages=outages)

        queue.run(kill)

        assert (queue.dead_letters, queue.deaths) == (["005#"], {"005#": LAST_TRY})
        assert {name for name, _ in queue.handled} == set(others)
