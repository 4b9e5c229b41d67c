"""What submit_job is made with where topics deliver, and without."""

from collections.abc import Mapping
from typing import Any

import pytest

from relaunch.adapters.messages.topic_messages import WatchedTopics
from relaunch.entrypoints.function import TopicQueue
from relaunch.ports import SilentLog
from relaunch.setting_values import InvalidSettingsError
from relaunch.topic_parts import topic_queue

QUEUE = "arn:aws:sqs:us-east-1:111122223333:relaunch-SnsQueue"
SET = {
    "RELAUNCH_SNS_QUEUE_ARN": QUEUE,
    "RELAUNCH_SNS_DEAD_LETTER_QUEUE_URL": "https://sqs/sns-dead-letters",
    "RELAUNCH_SNS_TOPIC_ARNS": "arn:a, arn:b",
    "RELAUNCH_NOTICE_TOPIC_ARNS": "arn:b",
}


def made(environment: Mapping[str, str]) -> TopicQueue | None:
    def client(_service: str) -> Any:
        return None

    return topic_queue(environment, client, SilentLog(), 7)


@pytest.mark.parametrize("environment", [{}, dict.fromkeys(SET, "")])
def test_without_topics_there_is_no_queue(environment: Mapping[str, str]) -> None:
    assert made(environment) is None


def test_the_queue_has_its_topics_and_tries() -> None:
    found = made(SET)

    assert found is not None
    assert found.queue_arn == QUEUE
    assert found.watched == WatchedTopics(frozenset({"arn:a", "arn:b"}), frozenset({"arn:b"}))
    assert found.dead_letters.last_try == 7


@pytest.mark.parametrize("missing", ["RELAUNCH_SNS_DEAD_LETTER_QUEUE_URL", "RELAUNCH_SNS_TOPIC_ARNS"])
def test_a_queue_without_the_rest_is_an_error(missing: str) -> None:
    with pytest.raises(InvalidSettingsError, match=missing):
        made({**SET, missing: ""})
