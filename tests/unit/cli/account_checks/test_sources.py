import pytest

from fakes.builders import make_definition
from relaunch.core.checks import Verdict
from relaunch.core.definitions.definition import (
    EventBridgeTrigger,
    GithubTrigger,
    ImageTrigger,
    S3Trigger,
    ScheduleTrigger,
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
