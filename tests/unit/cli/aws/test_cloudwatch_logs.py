"""Logs in CloudWatch Logs, against moto."""

from datetime import UTC, datetime

import boto3
import pytest
from moto import mock_aws

from relaunch_cli.aws.cloudwatch_logs import CloudWatchLogs, read_destination
from relaunch_cli.errors import CommandError
from relaunch_cli.job_logs import LogDestination, LogEvent

ARN = "arn:aws:ecs:us-east-1:111122223333:task-definition/trainer:7"


@pytest.mark.parametrize(
    ("configuration", "text"),
    [
        pytest.param({}, "log driver: none", id="none"),
        pytest.param({"logDriver": "json-file"}, "log driver: json-file", id="another"),
        pytest.param(
            {"logDriver": "awslogs", "options": {"awslogs-group": "g"}}, "awslogs-stream-prefix", id="no-prefix"
        ),
    ],
)
def test_logs_that_cannot_be_read_are_refused(configuration, text):
    with pytest.raises(CommandError, match=text) as caught:
        read_destination(ARN, "main", configuration)

    assert caught.value.exit_code == 3
    assert caught.value.hint


def test_a_stream_is_named_by_prefix_container_and_task():
    options = {"awslogs-group": "g", "awslogs-stream-prefix": "train", "awslogs-region": "eu-west-1"}
    destination = read_destination(ARN, "main", {"logDriver": "awslogs", "options": options})

    assert destination == LogDestination("g", "train", "eu-west-1")
    assert destination.stream("main", "arn:aws:ecs:us-east-1:1:task/cluster/0af") == "train/main/0af"


@pytest.fixture
def session(_credentials):
    with mock_aws():
        yield boto3.Session(region_name="us-east-1")


def test_cloudwatch_is_read_from_the_beginning_and_on(session):
    logs = session.client("logs")
    logs.create_log_group(logGroupName="g")
    logs.create_log_stream(logGroupName="g", logStreamName="train/main/0af")
    start = int(datetime.now(UTC).timestamp() * 1000)
    events = [{"timestamp": start + index, "message": f"line {index}"} for index in range(3)]
    logs.put_log_events(logGroupName="g", logStreamName="train/main/0af", logEvents=events)
    source, destination = CloudWatchLogs(session), LogDestination("g", "train")

    first, token = source.read(destination, "train/main/0af", None)
    rest, _ = source.read(destination, "train/main/0af", token)

    assert [event.message for event in first] == ["line 0", "line 1", "line 2"]
    assert first[0] == LogEvent(datetime.fromtimestamp(start / 1000, UTC), "line 0")
    assert rest == []
    assert source.read(destination, "train/main/other", None) == ([], None)


def test_the_destination_is_that_of_the_revision(session):
    container = {
        "name": "main",
        "image": "i",
        "memory": 128,
        "logConfiguration": {
            "logDriver": "awslogs",
            "options": {"awslogs-group": "g", "awslogs-region": "us-east-1", "awslogs-stream-prefix": "p"},
        },
    }
    answer = session.client("ecs").register_task_definition(family="trainer", containerDefinitions=[container])

    destination = CloudWatchLogs(session).destination(answer["taskDefinition"]["taskDefinitionArn"], "main")

    assert destination == LogDestination("g", "p", "us-east-1")
