"""The behaviour of MachineQueue: the fake and the adapter."""

from collections.abc import Callable
from typing import Any

import pytest

from fakes.aws import Faults
from fakes.fleet import MACHINE_ID, FakeMachineQueue
from relaunch.adapters.aws.sqs.machine_queue import SqsMachineQueue, parse_machine_request
from relaunch.ports import MachineQueue, PermanentError, TransientError

Sent = Callable[[], list[tuple[str, int]]]


@pytest.fixture
def url(sqs: Any) -> str:
    return str(sqs.create_queue(QueueName="machines")["QueueUrl"])


@pytest.fixture(params=["in memory", "SQS"])
def queue(request: pytest.FixtureRequest) -> tuple[MachineQueue, Sent]:
    """A queue, and what was sent to it: machine ids with their delays."""
    if request.param == "in memory":
        fake = FakeMachineQueue()
        return fake, lambda: fake.requested
    sqs = request.getfixturevalue("sqs")
    sent: list[tuple[str, int]] = []

    def remember(params: dict[str, str], **_: object) -> None:
        sent.append((parse_machine_request(params["MessageBody"]), int(params["DelaySeconds"])))

    sqs.meta.events.register("provide-client-params.sqs.SendMessage", remember)
    return SqsMachineQueue(sqs, request.getfixturevalue("url")), lambda: sent


def test_a_fleet_is_asked_for_at_once(queue: tuple[MachineQueue, Sent]) -> None:
    machines, sent = queue
    machines.request_calls(MACHINE_ID)
    assert sent() == [(MACHINE_ID, 0)]


@pytest.mark.parametrize(("asked", "given"), [(30, 30), (900, 900), (901, 900), (-5, 0)])
def test_a_request_is_delayed_by_at_most_fifteen_minutes(
    queue: tuple[MachineQueue, Sent], asked: int, given: int
) -> None:
    machines, sent = queue
    machines.request_calls(MACHINE_ID, delay_seconds=asked)
    assert sent() == [(MACHINE_ID, given)]


def test_the_message_holds_the_machine_id_and_its_format(sqs: Any, url: str) -> None:
    SqsMachineQueue(sqs, url).request_calls("m-1")
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    assert message["Body"] == '{"machine_id": "m-1", "format": 1}'


@pytest.mark.parametrize(
    "body",
    ["", "m-1", "[]", "{}", '{"job_id": "m-1"}', '{"machine_id": ""}', '{"machine_id": 7}', '{"machine_id": null}'],
)
def test_a_message_that_names_no_machine_is_permanent(body: str) -> None:
    with pytest.raises(PermanentError, match="the message"):
        parse_machine_request(body)


def test_a_queue_without_an_answer_is_transient(sqs: Any, url: str) -> None:
    Faults(sqs, "sqs", "SendMessage").before = 1
    with pytest.raises(TransientError, match="asking for attention to machine m-1"):
        SqsMachineQueue(sqs, url).request_calls("m-1")


def test_a_message_that_was_sent_without_an_answer_may_be_sent_again(sqs: Any, url: str) -> None:
    Faults(sqs, "sqs", "SendMessage").after = 1
    queue = SqsMachineQueue(sqs, url)

    with pytest.raises(TransientError):
        queue.request_calls("m-1")
    queue.request_calls("m-1")

    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert [parse_machine_request(message["Body"]) for message in received] == ["m-1", "m-1"]


def test_a_queue_that_is_not_there_is_permanent(sqs: Any) -> None:
    with pytest.raises(PermanentError):
        SqsMachineQueue(sqs, "https://sqs.us-east-1.amazonaws.com/1/no-such-queue").request_calls("m-1")


def test_a_message_of_a_newer_release_is_read_later() -> None:
    with pytest.raises(TransientError, match="the message has format 2, and this release reads 1: a newer release"):
        parse_machine_request('{"machine_id": "m-1", "format": 2}')
    assert parse_machine_request('{"machine_id": "m-1"}') == "m-1"
