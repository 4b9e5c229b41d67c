"""The behaviour of LaunchQueue: the fake and the adapter."""

from collections.abc import Callable, Iterator

import pytest

from fakes.aws import Faults, aws_in_process, make_client
from fakes.sources import FakeLaunchQueue
from relaunch.adapters.aws.sqs.launch_queue import SqsLaunchQueue, parse_launch_request
from relaunch.ports import LaunchQueue, PermanentError, TransientError

Sent = Callable[[], list[tuple[str, int]]]


@pytest.fixture(params=["in memory", "SQS"])
def queue(request: pytest.FixtureRequest) -> Iterator[tuple[LaunchQueue, Sent]]:
    """A queue, and what was sent to it: job ids with their delays."""
    if request.param == "in memory":
        fake = FakeLaunchQueue()
        yield fake, lambda: fake.requested
        return
    with aws_in_process():
        client = make_client("sqs")
        sent: list[tuple[str, int]] = []

        def remember(params: dict[str, str], **_: object) -> None:
            sent.append((parse_launch_request(params["MessageBody"]), int(params["DelaySeconds"])))

        client.meta.events.register("provide-client-params.sqs.SendMessage", remember)
        yield SqsLaunchQueue(client, client.create_queue(QueueName="attempts")["QueueUrl"]), lambda: sent


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


def test_the_message_holds_the_job_id() -> None:
    with aws_in_process():
        client = make_client("sqs")
        url = client.create_queue(QueueName="attempts")["QueueUrl"]
        SqsLaunchQueue(client, url).request_launch("resnet-ü")
        (message,) = client.receive_message(QueueUrl=url)["Messages"]
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


def test_a_queue_without_an_answer_is_transient() -> None:
    with aws_in_process():
        client = make_client("sqs")
        launches = SqsLaunchQueue(client, client.create_queue(QueueName="attempts")["QueueUrl"])
        Faults(client, "sqs", "SendMessage").before = 1
        with pytest.raises(TransientError, match="asking for the launch of job resnet-1"):
            launches.request_launch("resnet-1")


def test_a_queue_that_is_not_there_is_permanent() -> None:
    with aws_in_process():
        launches = SqsLaunchQueue(make_client("sqs"), "https://sqs.us-east-1.amazonaws.com/123456789012/no-such-queue")
        with pytest.raises(PermanentError):
            launches.request_launch("resnet-1")
