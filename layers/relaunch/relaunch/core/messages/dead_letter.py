"""Dead-letter messages: their queues, and the reason and time of their failure."""

import json
import re
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any

from relaunch.core.records import dataclass

_URL_OUTPUT = re.compile(r"(?P<name>\w+)DeadLetterQueueUrl")
REASON = "reason"
FIRST_SEEN = "first_seen"
"""Message attributes that Relaunch sets when it sends a message to a dead-letter queue."""


class GivenUpBy(StrEnum):
    """Who sent a message to a dead-letter queue."""

    RELAUNCH = "relaunch"  # permanent error, or the last receive failed
    SQS = "sqs"  # received maxReceiveCount times without being deleted
    EVENTBRIDGE = "eventbridge"  # the event could not be delivered to its target
    LAMBDA = "lambda"  # an asynchronous invocation failed after all retries
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DeadLetterQueue:
    """A dead-letter queue of the stack; `source_url` is its source queue, None for a function without a queue."""

    name: str
    url: str
    source_url: str | None = None


@dataclass(frozen=True, slots=True)
class DeadLetterMessage:
    """A message of a dead-letter queue as returned by ReceiveMessage.

    `sent_at` is SentTimestamp; a message moved by SQS keeps that of its source queue. `receive_count` counts receives
    from all queues, including those by the command. `receipt` is the receipt handle.
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
    """Why a message is in a dead-letter queue, and when it was first and last received; None if unknown."""

    given_up_by: GivenUpBy
    reason: str
    first_at: datetime | None
    last_at: datetime | None


def find_queues(outputs: Mapping[str, str]) -> tuple[DeadLetterQueue, ...]:
    """Return the dead-letter queues in the outputs of a stack, ordered by name.

    `TaskChangesDeadLetterQueueUrl` is the queue `task-changes`, whose source queue is `TaskChangesQueueUrl`.
    """
    queues = []
    for output, url in outputs.items():
        if match := _URL_OUTPUT.fullmatch(output):
            name = re.sub(r"(?<!^)(?=[A-Z])", "-", match["name"]).lower()
            queues.append(DeadLetterQueue(name, url, outputs.get(f"{match['name']}QueueUrl")))
    return tuple(sorted(queues, key=lambda queue: queue.name))


def explain_dead_letter(message: DeadLetterMessage) -> DeadLetterCause:
    """Return why a message is in a dead-letter queue, from its attributes and its body."""
    if REASON in message.attributes:
        first_at = _parse_timestamp(message.attributes.get(FIRST_SEEN))
        return DeadLetterCause(GivenUpBy.RELAUNCH, message.attributes[REASON], first_at, message.sent_at)
    if "ERROR_CODE" in message.attributes:
        return _explain_undelivered_event(message)
    if message.source_arn:
        queue = message.source_arn.rpartition(":")[2]
        reason = f"moved by SQS from {queue}: tried as often as it may be; the log of its function says why"
        # SQS does not say when it moved a message.
        return DeadLetterCause(GivenUpBy.SQS, reason, message.sent_at, None)
    return _explain_failed_invocation(message) or DeadLetterCause(
        GivenUpBy.UNKNOWN, "nothing says why it is here", message.sent_at, message.sent_at
    )


def _explain_undelivered_event(message: DeadLetterMessage) -> DeadLetterCause:
    """Read the attributes of EventBridge ("Using dead-letter queues", Amazon EventBridge User Guide)."""
    attributes = message.attributes
    retries = f" after {attributes['RETRY_ATTEMPTS']} retries" if "RETRY_ATTEMPTS" in attributes else ""
    error = ": ".join(each for each in (attributes["ERROR_CODE"], attributes.get("ERROR_MESSAGE")) if each)
    event_at = _parse_timestamp(_json_object(message.body).get("time"))
    return DeadLetterCause(GivenUpBy.EVENTBRIDGE, f"not delivered{retries}: {error}", event_at, message.sent_at)


def _explain_failed_invocation(message: DeadLetterMessage) -> DeadLetterCause | None:
    """Read the invocation record of an OnFailure destination ("Asynchronous invocation", AWS Lambda)."""
    record = _json_object(message.body)
    context = record.get("requestContext")
    answer = record.get("responsePayload")
    if not isinstance(context, dict) or "condition" not in context:
        return None
    details = answer if isinstance(answer, dict) else {}
    error = ": ".join(str(details[name]) for name in ("errorType", "errorMessage") if details.get(name))
    reason = f"{context['condition']} after {context.get('approximateInvokeCount', '?')} calls"
    last_at = _parse_timestamp(record.get("timestamp")) or message.sent_at
    return DeadLetterCause(GivenUpBy.LAMBDA, f"{reason}: {error}" if error else reason, None, last_at)


def _json_object(body: str) -> dict[str, Any]:
    try:
        members = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}


def _parse_timestamp(text: object) -> datetime | None:
    try:
        timestamp = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return timestamp if timestamp.tzinfo else None
