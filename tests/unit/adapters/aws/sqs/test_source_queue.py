"""When messages of a batch come back; test_batch.py has what a batch makes of it."""

from datetime import datetime
from typing import Any, cast

import boto3
import pytest
from botocore.stub import Stubber
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from fakes.builders import NOW
from relaunch.adapters.aws.sqs.dead_letter_queue import first_seen
from relaunch.adapters.aws.sqs.record import Record
from relaunch.adapters.aws.sqs.source_queue import SourceQueue, failing_since, tries_of
from relaunch.core.messages.retries import retry_seconds

URL = "https://sqs.us-east-1.amazonaws.com/123456789012/intake"


def record(message: Any, receives: int = 2) -> Record:
    return Record(
        {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": "a",
            "messageAttributes": {},
            "attributes": {"ApproximateReceiveCount": str(receives)},
            "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:intake",
        }
    )


def test_sqs_takes_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        client = boto3.client("sqs", region_name="us-east-1")
        client.create_queue(QueueName="intake", Attributes={"VisibilityTimeout": "180"})
        for body in "abc":
            client.send_message(QueueUrl=URL, MessageBody=body)
        received = client.receive_message(QueueUrl=URL, MaxNumberOfMessages=10)["Messages"]
        first, *others = map(record, received)
        queue = SourceQueue(client)

        queue.set_apart([first, *others], 180)
        queue.put_back(others[0], 0)
        queue.send_again(others[1], 10_000, NOW)
        queue.delete(first)
        queue.delete(first)

        names = ["ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesNotVisible"]
        counts = client.get_queue_attributes(QueueUrl=URL, AttributeNames=cast("Any", names))["Attributes"]
    assert counts == {"ApproximateNumberOfMessagesDelayed": "2", "ApproximateNumberOfMessagesNotVisible": "0"}


def test_messages_that_are_gone_are_left_alone() -> None:
    client = boto3.client("sqs", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    queue, gone = SourceQueue(client), record({"MessageId": "1", "ReceiptHandle": "r"})
    with Stubber(client) as stub:
        for action in ("change_message_visibility_batch", "delete_message"):
            stub.add_client_error(action, "ReceiptHandleIsInvalid")

        queue.set_apart([gone], 180)
        queue.delete(gone)

        stub.assert_no_pending_responses()


TIMES = ("2026-03-14", "2026-03-14T09:26:53", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00")
GIVEN = st.text(max_size=12) | st.sampled_from([*TIMES, "9" * 5_000, "²", "٣", "-1", NOW.isoformat()]) | st.none()
NAMES = st.sampled_from(["first_seen", "failing_since", "tries_before"])


@given(
    attributes=st.dictionaries(NAMES, GIVEN.map(lambda text: {"stringValue": text, "dataType": "String"})),
    system=st.dictionaries(st.sampled_from(["ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp"]), GIVEN),
)
def test_whatever_a_sender_says_of_a_message_it_comes_back_in_time_with_what_can_be_said(
    attributes: dict[str, Any], system: dict[str, Any]
) -> None:
    sent = Record({"messageId": "1", "messageAttributes": attributes, "attributes": system})

    since = failing_since(sent, NOW)

    assert since <= NOW
    assert 5 <= retry_seconds(NOW - since, 24) <= 895
    assert 0 <= tries_of(sent) < 10**14
    assert datetime.fromisoformat(first_seen(sent)).tzinfo is not None


@pytest.mark.parametrize("text", ["2026-03-14T09:00:00", "3000-01-01T00:00:00+00:00", "yesterday"])
def test_what_says_no_time_before_now_fails_since_now(text: str) -> None:
    sent = Record({"messageAttributes": {"failing_since": {"stringValue": text, "dataType": "String"}}})

    assert failing_since(sent, NOW) == NOW


def test_more_tries_than_a_message_can_have_had_are_none() -> None:
    attributes = {"tries_before": {"stringValue": "9" * 5_000, "dataType": "String"}}

    assert tries_of(Record({"messageAttributes": attributes, "attributes": {"ApproximateReceiveCount": "2"}})) == 2
