"""When messages of a batch come back; test_batch.py has what a batch makes of it."""

from typing import Any, cast

import boto3
import pytest
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from botocore.stub import Stubber
from moto import mock_aws

from fakes.builders import NOW
from relaunch.adapters.aws.sqs.source_queue import SourceQueue

URL = "https://sqs.us-east-1.amazonaws.com/123456789012/intake"


def record(message: Any, receives: int = 2) -> SQSRecord:
    return SQSRecord(
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
