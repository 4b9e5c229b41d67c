"""The functions' own handlers over a world of fakes: an event goes in, and an answer comes out, as Lambda passes them.

This is the one place where tests reach in between the handlers and `relaunch.bootstrap`.
"""

import importlib
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from fakes.aws import refusal
from fakes.builders import make_instance_type
from fakes.clock import FakeClock
from fakes.dead_letters import FakeDeadLetters
from fakes.dependencies import make_dependencies
from fakes.sources import FakeSnapshots, FakeSpotPrices, ListLog
from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.adapters.aws.sqs.source_queue import SourceQueue
from relaunch.adapters.messages.topic_messages import WatchedTopics
from relaunch.core.machines.settings import MachineSettings
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.entrypoints.function import FunctionDependencies, TopicQueue
from relaunch.ports import Dependencies, RefreshDependencies

QUEUE_FUNCTIONS = (
    "submit_job",
    "launch_attempt",
    "request_machine",
    "observe_capacity",
    "observe_task",
    "send_notices",
)
_DEAD_LETTERS = "https://sqs/dead-letters"
_TOPIC_DEAD_LETTERS = "https://sqs/topic-dead-letters"
TOPIC = "arn:aws:sns:us-east-1:111122223333:features"
NOTICE_TOPIC = "arn:aws:sns:us-east-1:111122223333:notices"
UPLOADS_QUEUE_ARN = "arn:aws:sqs:us-east-1:111122223333:relaunch-UploadsQueue-EXAMPLE"
SNS_QUEUE_ARN = "arn:aws:sqs:us-east-1:111122223333:relaunch-SnsQueue-EXAMPLE"
_LONGEST_MESSAGE = 1_048_576
_FIRST_RECEIVED_MILLISECONDS = 1_793_709_042_015


@dataclass
class DeadLetter:
    """A message in a dead-letter queue."""

    body: str
    attributes: dict[str, str]


class FakeDeadLetterQueue:
    """SQS: SendMessage refuses what SQS refuses; `failures` are raised first, one by one."""

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []
        self.of_topics: list[DeadLetter] = []
        """What came from topics, which has a dead-letter queue of its own."""
        self.sent_again: list[str] = []
        """The bodies of the messages that functions sent to their own queue again."""
        self.failures: list[ClientError] = []

    def change_message_visibility_batch(self, **_: Any) -> None:
        """Accept any time-outs."""

    def delete_message(self, **_: Any) -> None:
        """Accept it: what is not delivered again is deleted."""

    def send_message(self, **message: Any) -> None:
        """Keep a message."""
        if self.failures:
            raise self.failures.pop(0)
        body = message["MessageBody"]
        attributes = {name: str(value["StringValue"]) for name, value in message["MessageAttributes"].items()}
        texts = [body, *attributes.values()]
        if not all(map(can_be_sent, texts)):
            raise refusal("InvalidMessageContents")
        if sum(len(text.encode()) for text in texts) > _LONGEST_MESSAGE:
            raise refusal("InvalidParameterValue")
        if message["QueueUrl"] == _DEAD_LETTERS:
            self.letters.append(DeadLetter(body, attributes))
        elif message["QueueUrl"] == _TOPIC_DEAD_LETTERS:
            self.of_topics.append(DeadLetter(body, attributes))
        else:
            self.sent_again.append(body)

    @property
    def reasons(self) -> list[str]:
        """Return why each message is here."""
        return [letter.attributes["reason"] for letter in self.letters]


def can_be_sent(text: str) -> bool:
    """Tell whether a message may have this text ("SendMessage", Amazon SQS API Reference)."""
    return bool(text) and all(map(_is_allowed, text))


def _is_allowed(character: str) -> bool:
    return (
        character in "\t\n\r"
        or " " <= character <= "\ud7ff"
        or "\ue000" <= character <= "\ufffd"
        or character > "\uffff"
    )


@dataclass
class FakeContext:
    """What Lambda tells of a call; the time is up after `milliseconds`."""

    aws_request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    milliseconds: int = 60_000

    def get_remaining_time_in_millis(self) -> int:
        """Return what is left of the time."""
        return self.milliseconds


class FakeRegion:
    """Implements the sources that refresh_offerings asks: one instance type in one zone."""

    def instance_types(self) -> Mapping[str, InstanceType]:
        return {"g5.xlarge": make_instance_type()}

    def zones(self, instance_types: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        return dict.fromkeys(instance_types, ("us-east-1a",))

    def on_demand_prices(self, instance_types: Iterable[str]) -> Mapping[str, float]:
        return dict.fromkeys(instance_types, 1.0)

    def gp3_price(self) -> float:
        return 0.08

    def region_score(self, instance_types: Sequence[str], vcpus: int) -> int | None:
        return 7

    def vcpu_quotas(self, codes: Iterable[str]) -> Mapping[str, float]:
        return dict.fromkeys(codes, 64.0)


def _make_refresh_dependencies() -> RefreshDependencies:
    region = FakeRegion()
    return RefreshDependencies(
        region="us-east-1",
        catalogue={"g5.xlarge": make_instance_type()},
        spot_types=frozenset({"g5.xlarge"}),
        machine_settings=MachineSettings(),
        instance_types=region,
        zones=region,
        price_list=region,
        spot_prices=FakeSpotPrices(),
        region_scores=region,
        quotas=region,
        snapshots=FakeSnapshots(),
        clock=FakeClock(),
        log=ListLog(),
    )


class Functions:
    """All functions but github_webhook, which has no world: it speaks HTTP (fakes.aws_endpoint)."""

    def __init__(self, deps: Dependencies | None = None) -> None:
        self.log = ListLog()
        self.deps = replace(deps or make_dependencies(), log=self.log)
        self.refresh_dependencies = _make_refresh_dependencies()
        self.dead_letters = FakeDeadLetterQueue()
        self.watched = FakeDeadLetters()

    def invoke(self, name: str, event: Any, context: FakeContext | None = None) -> Any:
        """Call a function; the answer is what the caller reads, so it must be JSON that can be sent."""
        handler: ModuleType = importlib.import_module(f"{name}.handler")
        sqs = cast("Any", self.dead_letters)
        dead_letters = DeadLetterSender(sqs, _DEAD_LETTERS, self.log)
        watched = WatchedTopics(frozenset({TOPIC, NOTICE_TOPIC}), frozenset({NOTICE_TOPIC}))
        topics = TopicQueue(SNS_QUEUE_ARN, DeadLetterSender(sqs, _TOPIC_DEAD_LETTERS, self.log), watched)
        function = FunctionDependencies(
            self.deps, SourceQueue(sqs), dead_letters, self.watched, topics, UPLOADS_QUEUE_ARN
        )
        with pytest.MonkeyPatch.context() as seam:
            if hasattr(handler, "function"):
                seam.setattr(handler, "function", lambda: function)
            if hasattr(handler, "refresh_dependencies"):
                seam.setattr(handler, "refresh_dependencies", lambda: self.refresh_dependencies)
            answer = handler.handle(event, context or FakeContext())
        return json.loads(json.dumps(answer, ensure_ascii=False, allow_nan=False).encode())

    @property
    def failures(self) -> list[object]:
        """Return why handling a message failed, each try; with the traceback where the reason is no outage."""
        facts = [facts for decision, facts in self.log.lines if decision == "failed"]
        return [each.get("traceback") or each["reason"] for each in facts]

    def deliver(self, name: str, *bodies: str) -> list[str]:
        """Hand a batch of messages to a function; return the bodies of those that are to be delivered again."""
        batch = make_batch(*bodies)
        self.dead_letters.sent_again.clear()
        answer = self.invoke(name, batch)
        failed = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
        assert failed <= {record["messageId"] for record in batch["Records"]}
        left = [record["body"] for record in batch["Records"] if record["messageId"] in failed]
        return [*left, *self.dead_letters.sent_again]


def make_batch(*bodies: str) -> dict[str, Any]:
    """Make the event of a queue with these messages."""
    return {
        "Records": [
            {
                "messageId": f"message-{number}",
                "receiptHandle": f"handle-{number}",
                "body": body,
                "attributes": {
                    "ApproximateReceiveCount": "1",
                    "ApproximateFirstReceiveTimestamp": str(_FIRST_RECEIVED_MILLISECONDS),
                },
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:us-east-1:111122223333:relaunch",
                "awsRegion": "us-east-1",
            }
            for number, body in enumerate(bodies, 1)
        ]
    }
