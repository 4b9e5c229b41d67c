import json
from datetime import UTC, datetime

import pytest

from relaunch_local.repository import REPOSITORY
from relaunch_local.sam_local.samples import FUNCTIONS, SNS_QUEUE, TOPIC, SampleError, fill_in, read_sample, samples

NOW = datetime(2027, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


def test_every_sample_of_an_invocation_is_invoked() -> None:
    kinds = ("function-url.", "sqs.", "job_api.", "plan_api.", "schedule.")

    invoked = samples()

    assert set(invoked) == {file.stem for file in (REPOSITORY / "events").glob("*.json") if file.name.startswith(kinds)}
    assert set(invoked.values()) == set(FUNCTIONS.values())


def test_every_function_of_the_template_is_invoked() -> None:
    template = (REPOSITORY / "template.yaml").read_text(encoding="utf-8")

    declared = {name for name in FUNCTIONS.values() if f"  {name}:\n    Type: AWS::Serverless::Function" in template}

    assert declared == set(FUNCTIONS.values())
    assert template.count("Type: AWS::Serverless::Function") == len(declared)


def test_a_sample_is_filled_in_with_what_is_there_now() -> None:
    sample = read_sample("sqs.warnings.spot-interruption-warning")

    filled = json.loads(fill_in(sample, {"i-0a1b2c3d4e5f60718": "i-00000000000000001"}, NOW))

    (record,) = filled["Records"]
    event = json.loads(record["body"])
    assert event["detail"] == {"instance-id": "i-00000000000000001", "instance-action": "terminate"}
    assert (event["region"], event["time"]) == ("eu-central-1", "2027-01-02T03:04:05.678Z")
    assert event["resources"] == ["arn:aws:ec2:eu-central-1a:instance/i-00000000000000001"]


def test_times_of_a_sample_stay_apart_as_they_are_and_the_latest_is_now() -> None:
    sample = '{"job": "j", "at": "2026-11-03T11:00:00Z", "until": "2026-11-03T12:30:00.500Z"}'

    filled = json.loads(fill_in(sample, {"j": "j"}, NOW))

    assert filled == {"job": "j", "at": "2027-01-02T01:34:05.178Z", "until": "2027-01-02T03:04:05.678Z"}


def test_a_sample_without_names_is_passed_as_it_is() -> None:
    sample = read_sample("function-url.github-push")

    assert fill_in(sample, {}, NOW) == sample


def test_a_name_that_the_sample_does_not_have_is_an_error() -> None:
    with pytest.raises(SampleError, match="nothing of resnet-1f2e3d4c"):
        fill_in(read_sample("schedule.reconcile"), {"resnet-1f2e3d4c": "other"}, NOW)


def test_the_sample_of_a_topic_is_of_the_topic_that_the_local_world_is_given() -> None:
    (record,) = json.loads(fill_in(read_sample("sqs.sns.topic-message"), {SNS_QUEUE: "arn:real"}, NOW))["Records"]

    assert record["eventSourceARN"] == "arn:real"
    assert json.loads(record["body"])["TopicArn"] == TOPIC
    definitions = (REPOSITORY / "local/relaunch_local/sam_local/definitions.yaml").read_text(encoding="utf-8")
    assert f'topic: "{TOPIC}"' in definitions
