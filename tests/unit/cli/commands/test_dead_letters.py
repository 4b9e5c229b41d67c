"""dead-letters."""

import json
from collections.abc import Callable
from datetime import timedelta

import boto3
import pytest
from typer.testing import CliRunner, Result

from fakes.aws import aws_in_process
from fakes.builders import NOW
from fakes.dead_letters import FakeDeadLetters
from relaunch_cli.app import app
from relaunch_cli.aws.connection import AwsConnection
from relaunch_cli.errors import CommandError

LONG_REASON = "the message is not JSON: Expecting value: line 1 column 1 (char 0); " * 5


@pytest.fixture
def dead(stage) -> FakeDeadLetters:
    return stage.dead_letters


@pytest.fixture
def answering(stage) -> Callable[..., Result]:
    """Run the command with an answer on its standard input."""

    def run(answer: str, *arguments: str) -> Result:
        return CliRunner().invoke(app, ["dead-letters", *arguments], obj=stage, input=answer, env={"COLUMNS": "80"})

    return run


def dead_letters(dead: FakeDeadLetters) -> str:
    attributes = {"reason": LONG_REASON, "first_seen": (NOW - timedelta(hours=2)).isoformat()}
    return dead.add("intake", "no JSON", attributes=attributes).message_id


def test_list_says_what_why_and_since_when_on_80_columns(relaunch, dead):
    message_id = dead_letters(dead)
    dead.add("refresh-offerings", "{}", NOW - timedelta(days=2), source_arn="arn:aws:sqs:r:1:refresh")

    lines = relaunch("dead-letters", "list").stdout.splitlines()

    assert lines[0].split() == ["ID", "QUEUE", "FIRST", "(UTC)", "LAST", "(UTC)", "WHY"]
    assert lines[1].split()[:4] == [message_id[:8], "intake", "07:26:53", "09:26:53"]
    assert any(line.split()[1:5] == ["refresh-offerings", "03-12", "09:26", "?"] for line in lines)
    assert max(len(line.rstrip()) for line in lines) <= 80


def test_list_as_json_has_whole_ids_and_reasons(relaunch, dead):
    message_id = dead_letters(dead)

    shape = json.loads(relaunch("dead-letters", "list", "--queue", "intake", "--json").stdout)

    assert shape["queues"] == [{"queue": "intake", "about": 1, "seen": 1}]
    assert shape["messages"] == [
        {
            "message_id": message_id,
            "queue": "intake",
            "given_up_by": "relaunch",
            "reason": LONG_REASON,
            "first_at": "2026-03-14T07:26:53+00:00",
            "last_at": "2026-03-14T09:26:53+00:00",
        }
    ]


def test_a_listing_that_is_not_complete_says_that_sqs_gives_samples(relaunch, dead):
    for number in range(5):
        dead.add("intake", str(number))

    assert (
        "intake: SQS showed 2 of about 5; it gives samples" in relaunch("dead-letters", "list", "--limit", "2").stderr
    )


def test_no_dead_letters_is_said(relaunch):
    result = relaunch("dead-letters", "list")

    assert (result.exit_code, result.stdout) == (0, "")
    assert "no dead letters" in result.stderr


def test_show_has_everything_and_the_body(relaunch, dead):
    message_id = dead_letters(dead)

    text = relaunch("dead-letters", "show", message_id[:8]).stdout
    shape = json.loads(relaunch("dead-letters", "show", message_id, "--json").stdout)

    assert text.splitlines()[0].split() == ["Message", message_id]
    assert text.splitlines()[-1] == "no JSON"
    assert "07:26:53 UTC (2h00m ago)" in text
    assert (shape["body"], shape["attributes"]["reason"]) == ("no JSON", LONG_REASON)


@pytest.mark.parametrize("command", ["show", "redrive", "drop"])
def test_an_unknown_message_ends_with_3(relaunch, command):
    result = relaunch("dead-letters", command, "ffff")

    assert result.exit_code == 3
    assert "no message 'ffff' was found" in result.stderr


def test_an_unknown_queue_ends_with_3_and_names_those_there_are(relaunch):
    result = relaunch("dead-letters", "list", "--queue", "inbox")

    assert result.exit_code == 3
    assert "there are intake, reconcile, refresh-offerings, warnings" in result.stderr


def test_redrive_sends_the_named_messages_back(relaunch, dead):
    first, second = dead_letters(dead), dead_letters(dead)
    dead_letters(dead)

    result = relaunch("dead-letters", "redrive", first, second[:8])

    assert result.stdout.splitlines() == [f"{each} was sent back to intake" for each in (first, second)]
    assert len(dead.letters) == 1


def test_redrive_all_leaves_what_has_no_queue_and_says_so(relaunch, dead):
    dead_letters(dead)
    dead.add("reconcile", "a pass")

    result = relaunch("dead-letters", "redrive", "--all", "--json")

    assert [each["queue"] for each in json.loads(result.stdout)["redriven"]] == ["intake"]
    assert "reconcile: about 1 stay" in result.stderr
    assert result.exit_code == 0


@pytest.mark.parametrize("arguments", [(), ("--all", "0000")])
def test_redrive_wants_ids_or_all_but_not_both(relaunch, arguments):
    assert relaunch("dead-letters", "redrive", *arguments).exit_code == 2


def test_a_message_that_has_no_queue_to_go_to_is_refused(relaunch, dead):
    message_id = dead.add("reconcile", "a pass").message_id

    result = relaunch("dead-letters", "redrive", message_id)

    assert result.exit_code == 2
    assert "has no queue" in result.stderr


def test_drop_asks_first(answering, dead):
    message_id = dead_letters(dead)

    declined = answering("n\n", "drop", message_id)
    assert (declined.exit_code, len(dead.letters)) == (130, 1)
    unanswered = answering("", "drop", message_id)
    assert (unanswered.exit_code, len(dead.letters)) == (2, 1)
    assert "--yes" in unanswered.stderr
    confirmed = answering("y\n", "drop", message_id)

    assert (confirmed.exit_code, dead.letters) == (0, {})
    assert f"Delete {message_id} of intake" in confirmed.stderr
    assert confirmed.stdout.splitlines()[-1] == f"{message_id} was deleted"


def test_drop_with_yes_asks_nothing(relaunch, dead):
    message_id = dead_letters(dead)

    result = relaunch("dead-letters", "drop", message_id, "--yes", "--json")

    assert json.loads(result.stdout)["dropped"]["message_id"] == message_id
    assert (result.stderr, dead.letters) == ("", {})


def test_a_stack_names_its_dead_letter_queues_in_its_outputs(monkeypatch):
    with aws_in_process():
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        output = {"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}}
        named = {"Outputs": {"IntakeDeadLetterQueueUrl": {"Value": {"Ref": "Queue"}}}}
        cloudformation = boto3.client("cloudformation", "us-east-1")
        cloudformation.create_stack(StackName="relaunch", TemplateBody=json.dumps({**output, **named}))
        cloudformation.create_stack(StackName="other", TemplateBody=json.dumps(output))

        (queue,) = AwsConnection("relaunch").dead_letters.queues()
        assert (queue.name, queue.source_url) == ("intake", None)
        with pytest.raises(CommandError, match="has no dead-letter queues"):
            _ = AwsConnection("other").dead_letters
