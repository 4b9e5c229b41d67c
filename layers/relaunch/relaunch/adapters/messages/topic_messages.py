"""Parses messages of the queue `sns`: what topics deliver, in the JSON of SNS.

"Parsing Amazon SNS message formats" in the Amazon SNS Developer Guide has the members. Sample: events/sqs.sns.json.
"""

import json
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Literal

from relaunch.adapters.messages.body import load_message
from relaunch.adapters.received_type import ReceivedType
from relaunch.adapters.validation import permanent_if_invalid
from relaunch.core.records import dataclass
from relaunch.core.triggers.events import TopicMessage
from relaunch.core.triggers.matching import IgnoredEvent
from relaunch.ports import PermanentError


@dataclass(frozen=True, slots=True)
class WatchedTopics:
    """The ARNs of the topics that may start jobs, and of those to which the stack sends notices itself."""

    topics: frozenset[str]
    of_notices: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attribute:
    Value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Notification:
    """What SNS delivers without raw message delivery; its members have SNS's names."""

    Type: Literal["Notification"]
    TopicArn: str = field(metadata={"min_length": 1, "max_length": 400})
    MessageId: str = field(metadata={"min_length": 1, "max_length": 100})
    Timestamp: datetime = field(metadata={"tz_constraint": "aware"})
    Message: str
    Subject: str | None = None
    MessageAttributes: dict[str, _Attribute] = field(default_factory=dict)


_NOTIFICATION = ReceivedType(_Notification)


def parse_topic_message(body: str, watched: WatchedTopics) -> TopicMessage | IgnoredEvent:
    """Parse a message of the queue of topics.

    SNS may deliver a message more than once, with the same ID: it is the same event. A topic of notices starts nothing,
    for the job that a notice starts would bring about the next notice.

    Raises:
        PermanentError: it is no message of one of the topics in the JSON of SNS.
    """
    message = load_message(body)
    if str(message.get("Type")).endswith("Confirmation"):
        raise PermanentError(
            "SNS asks whether the queue is to be subscribed, and nobody answers: subscribe it with the account of the "
            "queue, whose subscriptions need no confirmation"
        )
    with permanent_if_invalid("it is no message of a topic in the JSON of SNS (is raw message delivery on?)"):
        parsed = _NOTIFICATION.read(message)
    if parsed.TopicArn not in watched.topics:
        raise PermanentError(f"the topic {parsed.TopicArn!a} is none of the parameter SnsTopicArns")
    if parsed.TopicArn in watched.of_notices:
        return IgnoredEvent(f"{parsed.TopicArn} is a topic of notices, which would start jobs without end")
    identity = f"sns:{parsed.TopicArn}:{parsed.MessageId}"
    content = _content_of(parsed)
    _require_unicode([parsed.MessageId, content])
    return TopicMessage(identity, parsed.TopicArn, parsed.MessageId, content, parsed.Timestamp)


def _content_of(parsed: _Notification) -> Mapping[str, object]:
    content: dict[str, object] = {
        "text": parsed.Message,
        "attributes": {name: each.Value for name, each in parsed.MessageAttributes.items()},
    }
    if parsed.Subject is not None:
        content["subject"] = parsed.Subject
    try:
        content["message"] = json.loads(parsed.Message)
    except (ValueError, RecursionError):
        # Most likely a text that was never meant to be JSON.
        return content
    return content


def _require_unicode(texts: object) -> None:
    """Reject unpaired surrogates, which JSON allows and AWS APIs do not."""
    try:
        json.dumps(texts, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError) as error:
        raise PermanentError(f"the message has text that is no Unicode, or is nested too deeply: {error}") from error
