"""Logs in CloudWatch Logs, against moto."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import boto3
import pytest
from moto import mock_aws

from relaunch_cli.aws.cloudwatch_logs import CloudWatchLogs, read_destination
from relaunch_cli.errors import CommandError
from relaunch_cli.job_logs import LogDestination
from relaunch_cli.log_positions import LogEvent

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

    logs = CloudWatchLogs(session)
    arn = answer["taskDefinition"]["taskDefinitionArn"]

    assert logs.destination(arn, "main") == LogDestination("g", "p", "us-east-1")
    # A revision never changes, and is not read again.
    logs._session = None
    assert logs.destination(arn, "main") == LogDestination("g", "p", "us-east-1")


def put(session, count: int) -> list[str]:
    """Write lines a second apart, the newest now; return their messages."""
    logs = session.client("logs")
    logs.create_log_group(logGroupName="g")
    logs.create_log_stream(logGroupName="g", logStreamName="s")
    now = int(datetime.now(UTC).timestamp() * 1000)
    events = [{"timestamp": now - 1000 * (count - index), "message": f"line {index}"} for index in range(count)]
    logs.put_log_events(logGroupName="g", logStreamName="s", logEvents=events)
    return [each["message"] for each in events]


def messages(events: list[LogEvent]) -> list[str]:
    return [event.message for event in events]


@pytest.mark.parametrize("count", [0, 1, 3, 10, 11])
def test_a_tail_is_the_newest_events_and_is_read_on_from_there(session, count):
    written = put(session, 10)
    source, destination = CloudWatchLogs(session), LogDestination("g", "train")

    events, token, _ = source.tail(destination, "s", count)
    rest, _ = source.read(destination, "s", token)

    assert messages(events) == (written[-count:] if count else [])
    assert rest == []


def test_what_is_older_than_asked_for_is_left_out(session):
    written = put(session, 10)
    source, destination = CloudWatchLogs(session), LogDestination("g", "train")
    since = datetime.now(UTC) - timedelta(seconds=5.5)

    read, _ = source.read(destination, "s", None, since)
    tail, *_ = source.tail(destination, "s", 3, since)

    assert messages(read) == written[-len(read) :]
    assert 0 < len(read) <= 5
    assert messages(tail) == messages(read)[-3:]


def test_a_stream_that_is_not_there_yet_has_no_tail(session):
    session.client("logs").create_log_group(logGroupName="g")

    assert CloudWatchLogs(session).tail(LogDestination("g", "train"), "s", 3) == ([], None, False)


class PagedLogs:
    """GetLogEvents whose pages are smaller than asked for, and may be empty, as its documentation warns."""

    def __init__(self, *pages: list[str]) -> None:
        self.pages, self.asked = pages, []
        self.exceptions = SimpleNamespace(ResourceNotFoundException=KeyError)

    def client(self, _service: str, region_name: str | None = None):
        return self

    def get_log_events(self, **request):
        self.asked.append(request)
        position = int(request.get("nextToken", f"b/{len(self.pages)}").removeprefix("b/"))
        page = max(position - 1, 0)
        events = [{"timestamp": 0, "message": text} for text in self.pages[page]] if position else []
        return {"events": events, "nextForwardToken": f"f/{position}", "nextBackwardToken": f"b/{page}"}


def test_a_tail_goes_back_over_small_and_empty_pages_until_it_has_enough():
    paged = PagedLogs(["a"], ["b", "c"], [], ["d"])

    events, token, is_cut = CloudWatchLogs(paged).tail(LogDestination("g", "train"), "s", 3)

    assert messages(events) == ["b", "c", "d"]
    assert (token, is_cut) == ("f/4", False)
    assert [request["limit"] for request in paged.asked] == [3, 2, 2]


def test_a_tail_of_more_than_there_is_ends_with_the_first_page():
    paged = PagedLogs(["a"], ["b"])

    events, *_ = CloudWatchLogs(paged).tail(LogDestination("g", "train"), "s", 20_000)

    assert messages(events) == ["a", "b"]
    assert paged.asked[0]["limit"] == 10_000


def test_a_tail_that_meets_empty_pages_alone_has_what_was_read_before_them():
    paged = PagedLogs(["a"], *[[]] * 5, ["b"])

    tail = CloudWatchLogs(paged).tail(LogDestination("g", "train"), "s", 3, most_empty=5)

    assert (messages(tail.events), tail.is_cut) == (["b"], True)


@pytest.mark.parametrize(("days", "kept"), [(7, timedelta(days=7)), (None, None)])
def test_how_long_events_are_kept_is_asked_once(session, days, kept):
    logs = session.client("logs")
    for group, retention in (("g", days), ("g-other", 30)):
        logs.create_log_group(logGroupName=group)
        if retention:
            logs.put_retention_policy(logGroupName=group, retentionInDays=retention)
    source = CloudWatchLogs(session)

    assert source.kept_for(LogDestination("g", "train")) == kept
    logs.put_retention_policy(logGroupName="g", retentionInDays=1)
    assert source.kept_for(LogDestination("g", "train")) == kept
    assert source.kept_for(LogDestination("absent", "train")) is None
