"""Messages that were given up: why, since when, and where they came from."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

_URL_OUTPUT = re.compile(r"(?P<name>\w+)DeadLetterQueueUrl")
REASON = "reason"
FIRST_SEEN = "first_seen"
"""Message attributes of what Relaunch itself sends to a dead-letter queue."""


class GivenUpBy(StrEnum):
    """Who put a message into a dead-letter queue."""

    RELAUNCH = "relaunch"  # it can never succeed, or its last try failed
    SQS = "sqs"  # it was received maxReceiveCount times and never deleted
    EVENTBRIDGE = "eventbridge"  # it could not be delivered to its queue
    LAMBDA = "lambda"  # an asynchronous call failed for good
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DeadLetterQueue:
    """A dead-letter queue of the stack; `source_url` is the queue it belongs to, None where a function has none."""

    name: str
    url: str
    source_url: str | None = None


@dataclass(frozen=True, slots=True)
class DeadLetterMessage:
    """One message of a dead-letter queue, as ReceiveMessage gives it.

    `sent_at` is SentTimestamp, which a message that SQS moved keeps from its first queue. `receive_count` counts
    receives of all queues, those by people who look included. `receipt` is what it can be put back or deleted by.
    """

    queue: DeadLetterQueue
    message_id: str
    body: str
    sent_at: datetime
    first_received_at: datetime | None = None
    receive_count: int = 0
    source_arn: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    receipt: str = ""


@dataclass(frozen=True, slots=True)
class DeadLetterCause:
    """Why a message was given up, and when it was first and last seen; None where nobody says."""

    given_up_by: GivenUpBy
    reason: str
    first_at: datetime | None
    last_at: datetime | None


def find_queues(outputs: Mapping[str, str]) -> tuple[DeadLetterQueue, ...]:
    """Return the dead-letter queues among the outputs of a deployed stack, by name.

    `TaskChangesDeadLetterQueueUrl` is that of `task-changes`; it belongs to the queue of `TaskChangesQueueUrl`.
    """
    queues = []
    for output, url in outputs.items():
        if named := _URL_OUTPUT.fullmatch(output):
            name = re.sub(r"(?<!^)(?=[A-Z])", "-", named["name"]).lower()
            queues.append(DeadLetterQueue(name, url, outputs.get(f"{named['name']}QueueUrl")))
    return tuple(sorted(queues, key=lambda queue: queue.name))


def explain_dead_letter(letter: DeadLetterMessage) -> DeadLetterCause:
    """Return why a message was given up, from whatever its sender left with it."""
    if REASON in letter.attributes:
        first_at = _moment(letter.attributes.get(FIRST_SEEN))
        return DeadLetterCause(GivenUpBy.RELAUNCH, letter.attributes[REASON], first_at, letter.sent_at)
    if "ERROR_CODE" in letter.attributes:
        return _undelivered(letter)
    if letter.source_arn:
        queue = letter.source_arn.rpartition(":")[2]
        reason = f"moved by SQS from {queue}: tried as often as it may be; the log of its function says why"
        # SQS does not say when it moved a message.
        return DeadLetterCause(GivenUpBy.SQS, reason, letter.sent_at, None)
    return _failed_call(letter) or DeadLetterCause(
        GivenUpBy.UNKNOWN, "nothing says why it is here", letter.sent_at, letter.sent_at
    )


def _undelivered(letter: DeadLetterMessage) -> DeadLetterCause:
    """Read the attributes of EventBridge ("Using dead-letter queues", Amazon EventBridge User Guide)."""
    given = letter.attributes
    retries = f" after {given['RETRY_ATTEMPTS']} retries" if "RETRY_ATTEMPTS" in given else ""
    words = ": ".join(each for each in (given["ERROR_CODE"], given.get("ERROR_MESSAGE")) if each)
    event_at = _moment(_members(letter.body).get("time"))
    return DeadLetterCause(GivenUpBy.EVENTBRIDGE, f"not delivered{retries}: {words}", event_at, letter.sent_at)


def _failed_call(letter: DeadLetterMessage) -> DeadLetterCause | None:
    """Read the invocation record of an OnFailure destination ("Asynchronous invocation", AWS Lambda)."""
    record = _members(letter.body)
    context, answer = record.get("requestContext"), record.get("responsePayload")
    if not isinstance(context, dict) or "condition" not in context:
        return None
    said = answer if isinstance(answer, dict) else {}
    error = ": ".join(str(said[name]) for name in ("errorType", "errorMessage") if said.get(name))
    reason = f"{context['condition']} after {context.get('approximateInvokeCount', '?')} calls"
    last_at = _moment(record.get("timestamp")) or letter.sent_at
    return DeadLetterCause(GivenUpBy.LAMBDA, f"{reason}: {error}" if error else reason, None, last_at)


def _members(body: str) -> dict[str, Any]:
    try:
        members = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}


def _moment(text: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo else None
