"""logs: all attempts in order, on and on over relaunches."""

import json
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from moto import mock_aws

from fakes.builders import NOW, make_container, make_definition, make_job, make_revision
from relaunch_cli.aws.cloudwatch_logs import CloudWatchLogs, read_destination
from relaunch_cli.errors import CommandError
from relaunch_cli.job_logs import LogDestination, LogEvent

ARN = "arn:aws:ecs:us-east-1:111122223333:task-definition/trainer:7"


def stream_of(task_arn: str) -> str:
    return f"train/main/{task_arn.rsplit('/', 1)[-1]}"


def lines(*messages: str) -> list[tuple[datetime, str]]:
    return [(NOW + timedelta(seconds=index), message) for index, message in enumerate(messages)]


def interrupted(stage) -> tuple[str, str, str]:
    job_id = stage.submit()
    first = stage.launch(job_id)
    stage.run(first)
    stage.interrupt(first)
    second = stage.launch(job_id)
    stage.run(second)
    stage.logs.streams = {stream_of(first): lines("a1", "a2", "a3"), stream_of(second): lines("b1\n")}
    return job_id, first, second


def test_all_attempts_are_printed_in_order_over_all_pages(relaunch, stage):
    job_id, _, _ = interrupted(stage)

    result = relaunch("logs", job_id)

    assert result.stdout == "a1\na2\na3\nb1\n"
    assert result.stderr == "attempt 1\nattempt 2\n"


def test_one_attempt_alone(relaunch, stage):
    job_id, _, _ = interrupted(stage)

    assert relaunch("logs", job_id, "--attempt", "2").stdout == "b1\n"


def test_json_is_a_document_per_line(relaunch, stage):
    job_id, _, _ = interrupted(stage)

    found = [json.loads(line) for line in relaunch("logs", job_id, "--json").stdout.splitlines()]

    assert found[0] == {"attempt": 1, "at": NOW.isoformat(), "message": "a1"}
    assert len(found) == 4


def test_following_goes_on_over_a_relaunch_until_the_job_ends(relaunch, stage):
    job_id = stage.submit()
    first = stage.launch(job_id)
    stage.run(first)
    stage.logs.streams[stream_of(first)] = lines("a1")
    second = []

    def relaunch_it() -> None:
        stage.interrupt(first)
        stage.logs.streams[stream_of(first)] += lines("a2, written on SIGTERM")
        second.append(stage.launch(job_id))
        stage.run(second[0])
        stage.logs.streams[stream_of(second[0])] = lines("b1")

    def finish() -> None:
        stage.finish(second[0])
        stage.logs.streams[stream_of(second[0])] += lines("b2")

    def delivered_late() -> None:
        stage.logs.streams[stream_of(second[0])] += lines("b3")

    stage.scenes = [relaunch_it, finish, delivered_late, *[lambda: None] * 20]

    result = relaunch("logs", job_id, "-f")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["a1", "a2, written on SIGTERM", "b1", "b2", "b3"]


def test_a_stream_that_is_complete_is_not_read_again(relaunch, stage):
    job_id, first, _ = interrupted(stage)
    stage.clock.advance(60)
    stage.scenes = [lambda: None] * 3

    relaunch("logs", job_id, "-f")

    assert stage.logs.reads.count(stream_of(first)) == 3
    assert len([name for name in stage.logs.reads if name != stream_of(first)]) > 3


def test_a_job_that_wrote_nothing_yet_says_so(relaunch, stage):
    result = relaunch("logs", stage.submit())

    assert result.stdout == ""
    assert "nothing was written yet; the job is WAITING" in result.stderr


def test_with_several_containers_one_must_be_named(relaunch, stage):
    revision = make_revision(containers=(make_container(), make_container(name="sidecar")))
    job = make_job(definition=make_definition(container=None), revision=revision)
    stage.jobs.create_job(job, ())

    assert relaunch("logs", job.job_id).exit_code == 2
    assert relaunch("logs", job.job_id, "--container", "main").exit_code == 0


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        pytest.param({}, "log driver: none", id="none"),
        pytest.param({"logDriver": "json-file"}, "log driver: json-file", id="another"),
        pytest.param(
            {"logDriver": "awslogs", "options": {"awslogs-group": "g"}}, "awslogs-stream-prefix", id="no-prefix"
        ),
    ],
)
def test_logs_that_cannot_be_read_are_refused_in_words(configuration, words):
    with pytest.raises(CommandError, match=words) as caught:
        read_destination(ARN, "main", configuration)

    assert caught.value.exit_code == 3
    assert caught.value.hint


def test_a_stream_is_named_by_prefix_container_and_task():
    options = {"awslogs-group": "g", "awslogs-stream-prefix": "train", "awslogs-region": "eu-west-1"}
    destination = read_destination(ARN, "main", {"logDriver": "awslogs", "options": options})

    assert destination == LogDestination("g", "train", "eu-west-1")
    assert destination.stream("main", "arn:aws:ecs:us-east-1:1:task/cluster/0af") == "train/main/0af"


@pytest.fixture
def session(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
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
