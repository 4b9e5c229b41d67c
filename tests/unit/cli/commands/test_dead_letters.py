"""dead-letters."""

from datetime import timedelta

import pytest

from fakes.builders import NOW
from fakes.dead_letters import FakeDeadLetters

LONG_REASON = "the message is not JSON: Expecting value: line 1 column 1 (char 0); " * 5


@pytest.fixture
def dead(session) -> FakeDeadLetters:
    return session.dead_letters


def dead_letters(dead: FakeDeadLetters) -> str:
    attributes = {"reason": LONG_REASON, "first_seen": (NOW - timedelta(hours=2)).isoformat()}
    return dead.add("intake", "no JSON", attributes=attributes).message_id


def test_list_fits_80_columns(relaunch, dead):
    message_id = dead_letters(dead)
    dead.add("refresh-offerings", "{}", NOW - timedelta(days=2), source_arn="arn:aws:sqs:r:1:refresh")

    lines = relaunch("dead-letters", "list", columns=80).stdout.splitlines()

    assert lines[0].split() == ["ID", "QUEUE", "FIRST", "(UTC)", "LAST", "(UTC)", "REASON"]
    assert lines[1].split()[:4] == [message_id[:8], "intake", "07:26:53", "09:26:53"]
    assert any(line.split()[1:5] == ["refresh-offerings", "03-12", "09:26", "?"] for line in lines)
    assert max(len(line.rstrip()) for line in lines) <= 80


def test_list_as_json_has_whole_ids_and_reasons(relaunch, dead):
    message_id = dead_letters(dead)

    document = relaunch("dead-letters", "list", "--queue", "intake", "--json").document

    assert document["queues"] == [{"queue": "intake", "about": 1, "seen": 1}]
    assert document["messages"] == [
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

    assert "intake: SQS returned 2 of about 5 messages" in relaunch("dead-letters", "list", "--limit", "2").stderr


def test_no_dead_letter_messages(relaunch):
    result = relaunch("dead-letters", "list")

    assert (result.exit_code, result.stdout) == (0, "")
    assert "no dead-letter messages" in result.stderr


def test_show_has_everything_and_the_body(relaunch, dead):
    message_id = dead_letters(dead)

    text = relaunch("dead-letters", "show", message_id[:8]).stdout
    document = relaunch("dead-letters", "show", message_id, "--json").document

    assert text.splitlines()[0].split() == ["Message", message_id]
    assert text.splitlines()[-1] == "no JSON"
    assert "07:26:53 UTC (2h00m ago)" in text
    assert (document["body"], document["attributes"]["reason"]) == ("no JSON", LONG_REASON)


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
    assert len(dead.messages) == 1


def test_redrive_all_leaves_what_has_no_queue_and_says_so(relaunch, dead):
    dead_letters(dead)
    dead.add("reconcile", "a pass")

    result = relaunch("dead-letters", "redrive", "--all", "--json")

    assert [each["queue"] for each in result.document["redriven"]] == ["intake"]
    assert "reconcile: about 1 stay" in result.stderr
    assert result.exit_code == 0


@pytest.mark.parametrize("arguments", [(), ("--all", "0000")])
def test_redrive_wants_ids_or_all_but_not_both(relaunch, arguments):
    assert relaunch("dead-letters", "redrive", *arguments).exit_code == 2


def test_a_message_without_a_source_queue_is_refused(relaunch, dead):
    message_id = dead.add("reconcile", "a pass").message_id

    result = relaunch("dead-letters", "redrive", message_id)

    assert result.exit_code == 2
    assert "has no queue" in result.stderr


def test_drop_asks_first(relaunch, dead):
    message_id = dead_letters(dead)

    declined = relaunch("dead-letters", "drop", message_id, answer="n\n")
    assert (declined.exit_code, len(dead.messages)) == (130, 1)
    unanswered = relaunch("dead-letters", "drop", message_id, answer="")
    assert (unanswered.exit_code, len(dead.messages)) == (2, 1)
    assert "--yes" in unanswered.stderr
    confirmed = relaunch("dead-letters", "drop", message_id, answer="y\n")

    assert (confirmed.exit_code, dead.messages) == (0, {})
    assert f"Delete {message_id} of intake" in confirmed.stderr
    assert confirmed.stdout.splitlines()[-1] == f"{message_id} was deleted"


def test_drop_with_yes_asks_nothing(relaunch, dead):
    message_id = dead_letters(dead)

    result = relaunch("dead-letters", "drop", message_id, "--yes", "--json")

    assert result.document["dropped"]["message_id"] == message_id
    assert (result.stderr, dead.messages) == ("", {})
