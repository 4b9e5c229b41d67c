import pytest

from fakes.builders import make_definition
from relaunch.core.checks import Verdict
from relaunch.core.definitions.definition import (
    EventBridgeTrigger,
    GithubTrigger,
    ImageTrigger,
    S3Trigger,
    ScheduleTrigger,
    SnsTrigger,
)
from relaunch_cli.account_checks.sources import check_sources

OUTPUTS = {"WebhookUrl": "https://hook", "UploadsQueueArn": "arn"}
SELECTED = EventBridgeTrigger('{"source":["com.acme"]}')
PUSH, UPLOAD = GithubTrigger(repository="acme/vision", event="push"), S3Trigger("acme-data")


def found(*triggers, **outputs):
    checks = check_sources([make_definition(triggers=triggers)], outputs)
    return [(each.name, each.verdict, each.to_do) for each in checks]


def test_what_nothing_watches_may_be_left_out():
    assert found(ImageTrigger("trainer")) == []


def test_what_the_stack_takes_is_well():
    assert found(PUSH, UPLOAD, **OUTPUTS) == [("events of GitHub", Verdict.OK, ""), ("uploads", Verdict.OK, "")]


@pytest.mark.parametrize(
    ("trigger", "name", "switch"),
    [
        (PUSH, "events of GitHub", "Webhook=on"),
        (UPLOAD, "uploads", "Uploads=on"),
        (SELECTED, "events of EventBridge", "Uploads=on"),
        (ScheduleTrigger("rate(1 hour)"), "schedules", "Uploads=on"),
    ],
)
def test_what_the_stack_was_deployed_without_is_told_with_the_command(trigger, name, switch):
    assert found(trigger) == [(name, Verdict.PROBLEM, f"relaunch deploy {switch}")]


TOPIC = "arn:aws:sns:eu-central-1:111122223333:features"


def test_a_topic_that_the_queue_does_not_take_is_told_with_the_command():
    other = "arn:aws:sns:eu-central-1:111122223333:other"

    ((name, verdict, command),) = found(SnsTrigger(TOPIC), SnsTopicArns=other, SnsQueueArn="arn:queue")

    assert (name, verdict) == (f"SNS topic {TOPIC}", Verdict.PROBLEM)
    assert command == f"relaunch deploy SnsTopicArns={other},{TOPIC}"
    assert found(SnsTrigger(TOPIC))[0][2] == f"relaunch deploy SnsTopicArns={TOPIC}"


def test_a_topic_that_it_takes_is_told_with_how_it_is_subscribed():
    definition = make_definition(triggers=(SnsTrigger(TOPIC), SnsTrigger(TOPIC, (("a", "text"),))))

    (check,) = check_sources([definition], {"SnsTopicArns": TOPIC, "SnsQueueArn": "arn:queue"})

    assert check.verdict is Verdict.OK
    assert f"aws sns subscribe --topic-arn {TOPIC} --protocol sqs --notification-endpoint arn:queue" in check.text


def test_a_topic_of_notices_would_start_jobs_without_end():
    outputs = {"SnsTopicArns": TOPIC, "SnsQueueArn": "arn:queue", "NoticeTopicArns": TOPIC}

    ((_, verdict, to_do),) = found(SnsTrigger(TOPIC), **outputs)

    assert (verdict, to_do) == (Verdict.PROBLEM, "watch another topic, or take it out of NoticeTopicArns")
