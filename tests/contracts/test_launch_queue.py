"""The behaviour of LaunchQueue: the fake and the adapter."""

from collections.abc import Callable
from typing import Any

import pytest

from fakes.aws import Faults
from fakes.sources import FakeLaunchQueue
from relaunch.adapters.aws.sqs.launch_queue import SqsLaunchQueue, parse_launch_request
from relaunch.ports import LaunchQueue, PermanentError, TransientError

Sent = Callable[[], list[tuple[str, int]]]


@pytest.fixture
def url(sqs: Any) -> str:
    return str(sqs.create_queue(QueueName="attempts")["QueueUrl"])


@pytest.fixture(params=["in memory", "SQS"])
def queue(request: pytest.FixtureRequest) -> tuple[LaunchQueue, Sent]:
    """A queue, and what was sent to it: job ids with their delays."""
    if request.param == "in memory":
        fake = FakeLaunchQueue()
        return fake, lambda: fake.requested
    sqs = request.getfixturevalue("sqs")
    sent: list[tuple[str, int]] = []

    def remember(params: dict[str, str], **_: object) -> None:
        sent.append((parse_launch_request(params["MessageBody"]), int(params["DelaySeconds"])))

    sqs.meta.events.register("provide-client-params.sqs.SendMessage", remember)
    return SqsLaunchQueue(sqs, request.getfixturevalue("url")), lambda: sent


def test_a_launch_is_asked_for_at_once(queue: tuple[LaunchQueue, Sent]) -> None:
    launches, sent = queue
    launches.request_launch("resnet-1")
    assert sent() == [("resnet-1", 0)]


@pytest.mark.parametrize(("asked", "given"), [(30, 30), (900, 900), (901, 900), (86_400, 900), (-5, 0)])
def test_a_launch_is_delayed_by_at_most_fifteen_minutes(
    queue: tuple[LaunchQueue, Sent], asked: int, given: int
) -> None:
    launches, sent = queue
    launches.request_launch("resnet-1", delay_seconds=asked)
    assert sent() == [("resnet-1", given)]


def test_the_message_holds_the_job_id(sqs: Any, url: str) -> None:
    SqsLaunchQueue(sqs, url).request_launch("resnet-ü")
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    assert parse_launch_request(message["Body"]) == "resnet-ü"


def test_the_launches_that_are_asked_for_are_counted_delayed_ones_too(queue: tuple[LaunchQueue, Sent]) -> None:
    launches, _ = queue
    assert launches.count_requests() == 0

    launches.request_launch("resnet-1")
    launches.request_launch("resnet-2", 600)

    assert launches.count_requests() == 2


@pytest.mark.parametrize("body", ["", "resnet-1", "[]", "{}", '{"job_id": ""}', '{"job_id": 7}', '{"job_id": null}'])
def test_a_message_that_names_no_job_is_permanent(body: str) -> None:
    with pytest.raises(PermanentError):
        parse_launch_request(body)


def test_a_queue_without_an_answer_is_transient(sqs: Any, url: str) -> None:
    Faults(sqs, "sqs", "SendMessage").before = 1
    with pytest.raises(TransientError, match="asking for the launch of job resnet-1"):
        SqsLaunchQueue(sqs, url).request_launch("resnet-1")


def test_a_queue_that_is_not_there_is_permanent(sqs: Any) -> None:
    with pytest.raises(PermanentError):
        SqsLaunchQueue(sqs, "https://sqs.us-east-1.amazonaws.com/1/no-such-queue").request_launch("resnet-1")


def test_a_message_of_a_newer_release_is_read_later() -> None:
    with pytest.raises(TransientError, match="the message has format 2, and this release reads 1: a newer release"):
        parse_launch_request('{"job_id": "resnet-1", "format": 2}')
    assert parse_launch_request('{"job_id": "resnet-1"}') == "resnet-1"
