"""Messages of topics are read in the JSON of SNS, and nothing else is."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.webhook import load_event
from relaunch.adapters.messages.topic_messages import WatchedTopics, parse_topic_message
from relaunch.core.triggers.events import TopicMessage
from relaunch.core.triggers.matching import IgnoredEvent
from relaunch.ports import PermanentError

TOPIC = "arn:aws:sns:us-east-1:111122223333:features"
WATCHED = WatchedTopics(frozenset({TOPIC}))
BODY = json.loads(load_event("sqs.sns.topic-message")["Records"][0]["body"])


def parse(watched: WatchedTopics = WATCHED, **changed: Any) -> TopicMessage | IgnoredEvent:
    message = {name: value for name, value in {**BODY, **changed}.items() if value is not None}
    return parse_topic_message(json.dumps(message), watched)


def content_of(**changed: Any) -> Any:
    event = parse(**changed)
    assert isinstance(event, TopicMessage)
    return event.content


def test_the_sample_is_read() -> None:
    event = parse()

    assert isinstance(event, TopicMessage)
    assert event == TopicMessage(
        f"sns:{TOPIC}:dc1e94d9-56c5-5e96-808d-cc7f68faa162",
        TOPIC,
        "dc1e94d9-56c5-5e96-808d-cc7f68faa162",
        {
            "text": BODY["Message"],
            "subject": "Features built",
            "message": {"dataset": "s3://acme-datasets/features/2026-11-03/", "learning_rate": 0.01},
            "attributes": {"epochs": "20"},
        },
    )
    assert event.happened_at == datetime(2026, 11, 3, 12, 41, 7, tzinfo=UTC)


def test_a_text_that_is_no_json_has_no_parts() -> None:
    bare = content_of(Message="features are built", Subject=None, MessageAttributes=None)

    assert bare == {"text": "features are built", "attributes": {}}


def test_a_text_that_is_nested_too_deeply_is_a_text_only() -> None:
    assert "message" not in content_of(Message="[" * 100_000)


@pytest.mark.parametrize(
    "changed",
    [
        {"Type": None},
        {"Type": "notification"},
        {"MessageId": None},
        {"MessageId": ""},
        {"MessageId": "x" * 101},
        {"TopicArn": None},
        {"Timestamp": None},
        {"Timestamp": "2026-11-03T12:41:07"},
        {"Message": None},
        {"Message": {"dataset": "not a text"}},
        {"MessageAttributes": {"epochs": "20"}},
    ],
)
def test_what_lacks_a_part_is_refused(changed: Any) -> None:
    with pytest.raises(PermanentError, match="no message of a topic in the JSON of SNS"):
        parse(**changed)


@pytest.mark.parametrize(
    "sample", ["sqs.intake.github-push", "sqs.intake.s3", "sqs.intake.eventbridge", "sqs.intake.schedule"]
)
def test_a_message_of_the_intake_queue_is_refused(sample: str) -> None:
    with pytest.raises(PermanentError, match="is raw message delivery on"):
        parse_topic_message(load_event(sample)["Records"][0]["body"], WATCHED)


@pytest.mark.parametrize("body", ["", "features", "[]", '"text"', "[" * 100_000])
def test_what_is_no_json_object_is_refused(body: str) -> None:
    with pytest.raises(PermanentError, match="not"):
        parse_topic_message(body, WATCHED)


def test_another_topic_is_refused() -> None:
    with pytest.raises(PermanentError, match="is none of the parameter SnsTopicArns"):
        parse(TopicArn=f"{TOPIC}-b")


@pytest.mark.parametrize("kind", ["SubscriptionConfirmation", "UnsubscribeConfirmation"])
def test_a_confirmation_is_not_answered(kind: str) -> None:
    with pytest.raises(PermanentError, match="with the account of the queue"):
        parse(Type=kind, SubscribeURL="https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription")


@pytest.mark.parametrize("changed", [{"Message": r'{"a": "\ud800"}'}, {"Subject": "\ud800"}, {"MessageId": "\ud800"}])
def test_text_that_is_no_unicode_is_refused(changed: Any) -> None:
    with pytest.raises(PermanentError, match=r"no Unicode|in the JSON of SNS"):
        parse(**changed)


def test_a_topic_of_notices_starts_nothing() -> None:
    event = parse(WatchedTopics(frozenset({TOPIC}), frozenset({TOPIC})))

    assert event == IgnoredEvent(f"{TOPIC} is a topic of notices, which would start jobs without end")
