"""The behaviour of DeadLetters: the fake and the adapter for SQS."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import Mock

import pytest

from fakes.aws import Faults
from fakes.dead_letters import FakeDeadLetters
from relaunch.adapters.aws.sqs.dead_letters import SqsDeadLetters
from relaunch.core.messages.dead_letter import DeadLetterQueue
from relaunch.ports import DeadLetters, PermanentError, TransientError


@dataclass
class Scene:
    """Two dead-letter queues, `intake` with a source and `reconcile` without; what a test puts there and finds."""

    dead_letters: DeadLetters
    add: Callable[[str, str, dict[str, str]], object]
    redriven: Callable[[], list[str]]

    def queue(self, name: str = "intake") -> DeadLetterQueue:
        return next(queue for queue in self.dead_letters.queues() if queue.name == name)

    def take(self, name: str = "intake") -> list[str]:
        """Receive until there is nothing more; return the bodies."""
        bodies: list[str] = []
        while page := self.dead_letters.receive(self.queue(name)):
            bodies += [letter.body for letter in page]
        return bodies


def send(sqs: Any, url: str, body: str, attributes: dict[str, str]) -> None:
    given = {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}
    sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=given)


@pytest.fixture(params=["in memory", "SQS"])
def scene(request: pytest.FixtureRequest) -> Scene:
    if request.param == "in memory":
        fake = FakeDeadLetters()
        add = lambda queue, body, attributes: fake.add(queue, body, attributes=attributes)  # noqa: E731
        return Scene(fake, add, lambda: [body for _, body in fake.redriven])
    sqs = request.getfixturevalue("sqs")
    urls = {name: sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("source", "intake", "reconcile")}

    def redriven() -> list[str]:
        answer = sqs.receive_message(QueueUrl=urls["source"], MaxNumberOfMessages=10)
        return [message["Body"] for message in answer.get("Messages", [])]

    queues = (
        DeadLetterQueue("intake", urls["intake"], urls["source"]),
        DeadLetterQueue("reconcile", urls["reconcile"]),
    )
    dead_letters = SqsDeadLetters(sqs, queues, wait_seconds=0)
    return Scene(dead_letters, lambda queue, body, told: send(sqs, urls[queue], body, told), redriven)


def test_messages_are_received_with_what_their_sender_left(scene: Scene) -> None:
    scene.add("intake", "poison", {"reason": "not JSON", "first_seen": "2026-03-14T09:00:00+00:00"})

    (letter,) = scene.dead_letters.receive(scene.queue())

    assert (letter.body, letter.attributes["reason"], letter.queue) == ("poison", "not JSON", scene.queue())
    assert letter.receive_count >= 1
    assert letter.sent_at.tzinfo is not None


def test_what_was_received_is_hidden_until_it_is_put_back(scene: Scene) -> None:
    bodies = {f"message {number}" for number in range(12)}
    for body in bodies:
        scene.add("intake", body, {})

    first = [letter for _ in range(12) for letter in scene.dead_letters.receive(scene.queue())]
    assert {letter.body for letter in first} == bodies
    assert scene.take() == []
    scene.dead_letters.put_back(first)

    assert set(scene.take()) == bodies


def test_messages_are_counted_also_while_somebody_looks(scene: Scene) -> None:
    assert scene.dead_letters.count(scene.queue()) == 0
    scene.add("intake", "one", {})
    scene.add("intake", "two", {})
    scene.add("reconcile", "three", {})
    scene.take()

    assert [scene.dead_letters.count(scene.queue(name)) for name in ("intake", "reconcile")] == [2, 1]


def test_a_redriven_message_is_in_its_source_queue_and_nowhere_else(scene: Scene) -> None:
    scene.add("intake", "again", {"reason": "not JSON"})
    (letter,) = scene.dead_letters.receive(scene.queue())

    scene.dead_letters.redrive(letter)
    scene.dead_letters.put_back([letter] if scene.dead_letters.count(scene.queue()) else [])

    assert scene.redriven() == ["again"]
    assert scene.take() == []


def test_a_message_without_a_source_queue_stays(scene: Scene) -> None:
    scene.add("reconcile", "a pass", {})
    (letter,) = scene.dead_letters.receive(scene.queue("reconcile"))

    with pytest.raises(PermanentError, match="reconcile"):
        scene.dead_letters.redrive(letter)

    assert scene.dead_letters.count(scene.queue("reconcile")) == 1


def test_a_dropped_message_is_gone_and_may_be_dropped_again(scene: Scene) -> None:
    scene.add("intake", "rubbish", {})
    (letter,) = scene.dead_letters.receive(scene.queue())

    scene.dead_letters.drop(letter)
    scene.dead_letters.drop(letter)

    assert scene.dead_letters.count(scene.queue()) == 0


def test_nothing_to_put_back_is_fine(scene: Scene) -> None:
    scene.dead_letters.put_back([])


class TestSqs:
    """What is SQS's own."""

    @pytest.fixture
    def queue(self, sqs: Any) -> DeadLetterQueue:
        dead, source = (sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("dead", "source"))
        return DeadLetterQueue("intake", dead, source)

    def test_a_message_that_sqs_moved_says_where_from(self) -> None:
        # moto moves messages, but does not say so: the attribute is as ReceiveMessage's reference has it.
        message = {
            "MessageId": "1",
            "ReceiptHandle": "r",
            "Body": "b",
            "Attributes": {
                "SentTimestamp": "1773480413000",
                "ApproximateFirstReceiveTimestamp": "1773480414000",
                "ApproximateReceiveCount": "6",
                "DeadLetterQueueSourceArn": "arn:aws:sqs:us-east-1:111122223333:relaunch-intake",
            },
            "MessageAttributes": {"blob": {"DataType": "Binary", "BinaryValue": b"1"}},
        }
        client = Mock(**{"receive_message.return_value": {"Messages": [message]}})
        queue = DeadLetterQueue("intake", "dead", "live")

        (letter,) = SqsDeadLetters(client, (queue,)).receive(queue)

        assert letter.source_arn.endswith(":relaunch-intake")
        assert (letter.receive_count, letter.attributes) == (6, {})
        assert letter.first_received_at is not None
        assert (letter.first_received_at - letter.sent_at).total_seconds() == 1

    def test_a_message_keeps_since_when_it_fails_but_not_why(self, sqs: Any, queue: DeadLetterQueue) -> None:
        send(sqs, queue.url, "b", {"reason": "r", "first_seen": "2026-03-14T09:00:00+00:00"})
        dead_letters = SqsDeadLetters(sqs, (queue,), wait_seconds=0)

        (letter,) = dead_letters.receive(queue)
        dead_letters.redrive(letter)

        (message,) = sqs.receive_message(QueueUrl=queue.source_url, MessageAttributeNames=["All"])["Messages"]
        assert {name: each["StringValue"] for name, each in message["MessageAttributes"].items()} == {
            "first_seen": "2026-03-14T09:00:00+00:00"
        }

    def test_a_message_whose_sending_got_no_answer_is_not_deleted(self, sqs: Any, queue: DeadLetterQueue) -> None:
        send(sqs, queue.url, "b", {})
        dead_letters = SqsDeadLetters(sqs, (queue,), wait_seconds=0)
        (letter,) = dead_letters.receive(queue)
        Faults(sqs, "sqs", "SendMessage").after = 1

        with pytest.raises(TransientError, match="sending dead letter"):
            dead_letters.redrive(letter)

        assert dead_letters.count(queue) == 1

    def test_a_queue_that_is_not_there_is_permanent(self, sqs: Any) -> None:
        queue = DeadLetterQueue("intake", "https://sqs.us-east-1.amazonaws.com/123456789012/no-such-queue")
        with pytest.raises(PermanentError, match="dead letters of intake"):
            SqsDeadLetters(sqs, (queue,)).count(queue)
