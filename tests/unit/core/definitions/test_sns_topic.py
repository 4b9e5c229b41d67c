"""ARNs of topics, and paths within messages, as triggers may have them."""

import pytest

from relaunch.core.definitions.sns_topic import find_part_problem, find_topic_problem

TOPIC = "arn:aws:sns:eu-central-1:111122223333:features"


@pytest.mark.parametrize("topic", [TOPIC, "arn:aws-us-gov:sns:us-gov-west-1:111122223333:A_b-9", f"{TOPIC}{'x' * 248}"])
def test_a_standard_topic_may_be_watched(topic: str) -> None:
    assert find_topic_problem(topic) == ""


def test_a_fifo_topic_is_refused_with_what_to_do() -> None:
    assert find_topic_problem(f"{TOPIC}.fifo") == (
        f"`{TOPIC}.fifo` is a FIFO topic, and the queue of the stack is none: use a standard topic"
    )


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "features",
        ".fifo",
        "arn:aws:sqs:eu-central-1:111122223333:features",
        f"{TOPIC},{TOPIC}",
        f"{TOPIC}\n",
        f"{TOPIC}:subscription",
        f"{TOPIC}{'x' * 249}",
        "arn:aws:sns:*:111122223333:features",
    ],
)
def test_what_is_no_topic_is_refused(topic: str) -> None:
    assert "is no topic of SNS: write its ARN" in find_topic_problem(topic)


@pytest.mark.parametrize("path", ["message", "message.epochs", "message.a.b", "text", "subject", "attributes.epochs"])
def test_a_path_begins_with_a_part_of_a_message(path: str) -> None:
    assert find_part_problem(path) == ""


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("epochs", "begins with none of message, text, subject, attributes"),
        ("", "is not a path within the message"),
        ("message[0]", "is not a path within the message"),
        ("Message.epochs", "begins with none of"),
        ("attributes", "names no attribute"),
        ("attributes.a.b", "names no attribute"),
        ("text.epochs", "write message.epochs"),
        ("subject.epochs", "has no parts"),
    ],
)
def test_another_path_is_refused_with_what_to_do(path: str, problem: str) -> None:
    assert problem in find_part_problem(path)
