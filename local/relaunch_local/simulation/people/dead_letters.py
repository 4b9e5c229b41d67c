"""Dead letters that people look at, as each service leaves them.

Sources: "Using dead-letter queues to process undelivered events" (Amazon EventBridge User Guide), "Configuring
dead-letter queues for EventBridge Scheduler" (EventBridge Scheduler User Guide), "Capturing records of Lambda
asynchronous invocations" (AWS Lambda Developer Guide), "Using dead-letter queues in Amazon SQS" (Amazon SQS Developer
Guide).
"""

import json
import random
from collections.abc import Mapping
from datetime import datetime, timedelta

from relaunch.core.messages.dead_letter import (
    FIRST_SEEN,
    REASON,
    DeadLetterMessage,
    DeadLetterQueue,
    explain_dead_letter,
)
from relaunch_local.simulation.checks.record import Check

_QUEUE = DeadLetterQueue("intake", "https://sqs.example.com/dead", "https://sqs.example.com/intake")
_SOURCE = "arn:aws:sqs:us-east-1:123456789012:intake"
_ERRORS = {"NO_PERMISSIONS": "the queue's policy does not allow it", "THROTTLING": "rate exceeded"}


def ask_for_dead_letters(check: Check, dice: random.Random, now: datetime) -> None:
    """Check what people learn from a dead letter of each service, and from one without attributes."""
    sent_at = now - timedelta(minutes=dice.randint(1, 600))
    code, words = dice.choice(sorted(_ERRORS.items()))
    tries = str(dice.randint(1, 185))
    undelivered = {"ERROR_CODE": code, "ERROR_MESSAGE": words, "RETRY_ATTEMPTS": tries}
    since = sent_at - timedelta(hours=1)
    record = {
        "requestContext": {"condition": "RetriesExhausted", "approximateInvokeCount": 3},
        "responsePayload": {"errorType": "TimeoutError", "errorMessage": words},
    }
    event = json.dumps({"time": since.isoformat(), "detail": {}})
    _ask(check, "EventBridge", (code, words, tries), sent_at, event, undelivered)
    _ask(check, "Relaunch", (words,), sent_at, "{}", {REASON: words, FIRST_SEEN: since.isoformat()})
    _ask(check, "SQS", ("intake",), sent_at, "{}", {}, source_arn=_SOURCE)
    _ask(check, "Lambda", ("RetriesExhausted", "TimeoutError", words), sent_at, json.dumps(record), {})
    _ask(check, "", (), sent_at, "no JSON", {})


def _ask(  # noqa: PLR0913, PLR0917 - a message and why it is there
    check: Check,
    service: str,
    words: tuple[str, ...],
    sent_at: datetime,
    body: str,
    attributes: Mapping[str, str],
    source_arn: str = "",
) -> None:
    message = DeadLetterMessage(
        _QUEUE, "message-1", body, sent_at=sent_at, attributes=attributes, source_arn=source_arn
    )
    try:
        cause = explain_dead_letter(message)
        said = f"{cause.given_up_by.value}: {cause.reason}"
    except Exception as error:  # noqa: BLE001 - whatever it is, nobody learns why the message is there
        said = repr(error)
    is_told = said.lower().startswith(service.lower()) and all(each in said for each in words)
    check("who looks at a dead letter learns who gave it up, and why", is_told, f"of {service or 'nobody'}: {said}")
