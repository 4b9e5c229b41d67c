"""The dead-letter queues of a stack, and the reasons of their messages."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fakes.builders import NOW
from relaunch.core.messages.dead_letter import (
    DeadLetterCause,
    DeadLetterMessage,
    DeadLetterQueue,
    GivenUpBy,
    explain_dead_letter,
    find_queues,
)

QUEUE = DeadLetterQueue("intake", "dead", "live")


def letter(body: str = "{}", **fields: Any) -> DeadLetterMessage:
    return DeadLetterMessage(QUEUE, "1", body, NOW, **fields)


def test_queues_are_found_among_the_outputs_with_those_they_belong_to() -> None:
    outputs = {
        "TaskChangesQueueUrl": "live/task-changes",
        "TaskChangesDeadLetterQueueUrl": "dead/task-changes",
        "JobApiDeadLetterQueueUrl": "dead/job-api",
        "TableName": "jobs",
    }

    assert find_queues(outputs) == (
        DeadLetterQueue("job-api", "dead/job-api", None),
        DeadLetterQueue("task-changes", "dead/task-changes", "live/task-changes"),
    )


def test_what_relaunch_sent_carries_its_reason_and_since_when() -> None:
    first_seen = NOW - timedelta(minutes=5)
    sent = letter(attributes={"reason": "it is not JSON", "first_seen": first_seen.isoformat()})

    assert explain_dead_letter(sent) == DeadLetterCause(GivenUpBy.RELAUNCH, "it is not JSON", first_seen, NOW)


@pytest.mark.parametrize("first_seen", ["", "yesterday", "2026-03-14T09:26:53"])
def test_a_first_time_that_cannot_be_read_is_not_known(first_seen: str) -> None:
    assert explain_dead_letter(letter(attributes={"reason": "r", "first_seen": first_seen})).first_at is None


def test_what_sqs_moved_keeps_the_time_it_was_sent_and_has_no_last_one() -> None:
    cause = explain_dead_letter(letter(source_arn="arn:aws:sqs:us-east-1:111122223333:relaunch-intake"))

    assert (cause.given_up_by, cause.first_at, cause.last_at) == (GivenUpBy.SQS, NOW, None)
    assert cause.reason == (
        "moved by SQS from relaunch-intake: tried as often as it may be; the log of its function says why"
    )


def test_what_eventbridge_gave_up_says_why_and_when_it_happened() -> None:
    attributes = {"ERROR_CODE": "NO_PERMISSIONS", "ERROR_MESSAGE": "not allowed", "RETRY_ATTEMPTS": "3"}

    cause = explain_dead_letter(letter('{"time": "2026-03-14T09:00:00Z"}', attributes=attributes))

    assert cause.given_up_by is GivenUpBy.EVENTBRIDGE
    assert cause.reason == "not delivered after 3 retries: NO_PERMISSIONS: not allowed"
    assert (cause.first_at, cause.last_at) == (datetime(2026, 3, 14, 9, tzinfo=UTC), NOW)


def test_eventbridge_may_say_little() -> None:
    cause = explain_dead_letter(letter("no event", attributes={"ERROR_CODE": "THROTTLING"}))

    assert (cause.reason, cause.first_at) == ("not delivered: THROTTLING", None)


def test_a_failed_asynchronous_call_says_what_it_raised() -> None:
    record = {
        "timestamp": "2026-03-14T09:20:00.000Z",
        "requestContext": {"condition": "RetriesExhausted", "approximateInvokeCount": 3},
        "responsePayload": {"errorType": "TransientError", "errorMessage": "throttled"},
    }

    cause = explain_dead_letter(letter(json.dumps(record)))

    assert cause.given_up_by is GivenUpBy.LAMBDA
    assert cause.reason == "RetriesExhausted after 3 calls: TransientError: throttled"
    assert cause.last_at == datetime(2026, 3, 14, 9, 20, tzinfo=UTC)


def test_a_call_that_was_never_answered_says_so() -> None:
    record = {"requestContext": {"condition": "EventAgeExceeded"}, "responsePayload": None}

    cause = explain_dead_letter(letter(json.dumps(record)))

    assert (cause.reason, cause.last_at) == ("EventAgeExceeded after ? calls", NOW)


@pytest.mark.parametrize(
    "body", ["", "[]", "no JSON", "{}", '{"requestContext": 1}', '{"requestContext": {}}', "[" * 100_000]
)
def test_anything_else_says_nothing(body: str) -> None:
    assert explain_dead_letter(letter(body)) == DeadLetterCause(
        GivenUpBy.UNKNOWN, "nothing says why it is here", NOW, NOW
    )
