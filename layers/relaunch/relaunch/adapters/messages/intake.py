"""Parses messages of the intake queue into trigger events."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime

from relaunch.adapters.github.deliveries import parse_delivery
from relaunch.adapters.github.webhook_request import FORMAT
from relaunch.adapters.messages.body import check_format, load_message
from relaunch.adapters.messages.trigger_events import (
    parse_bus_event,
    parse_image_action,
    parse_notification_record,
    parse_scheduled_time,
    parse_upload,
)
from relaunch.core.triggers.events import DirectRequest, TriggerEvent
from relaunch.core.triggers.matching import IgnoredEvent
from relaunch.core.triggers.schedules import SCHEDULE_MESSAGE, SCHEDULE_MESSAGE_FORMAT
from relaunch.core.triggers.upload_rules import EVENT_MESSAGE, EVENT_MESSAGE_FORMAT
from relaunch.ports import PermanentError


def parse_intake_message(body: str | Mapping[str, object]) -> tuple[TriggerEvent | IgnoredEvent, ...]:
    """Parse a message: a GitHub delivery, an EventBridge event, or an S3 notification with one or more records.

    An EventBridge event comes as it is, or with the key of the pattern that selected it.

    Raises:
        PermanentError: the message is of an unknown kind or format, or lacks required fields.
        TransientError: the webhook of a newer release sent it.
    """
    message = load_message(body) if isinstance(body, str) else body
    events = _parse(message)
    for event in events:
        _require_unicode(event)
    happened_at = _parse_timestamp(_time_of(message))
    return tuple(
        event if isinstance(event, IgnoredEvent | DirectRequest) else replace(event, happened_at=happened_at)
        for event in events
    )


def is_of_triggers(message: Mapping[str, object]) -> bool:
    """Return whether a message is one that the rules and schedules of triggers send, or S3 in their place.

    One that could also be a call of job_api that failed is none: it might come to the queue `intake` as a dead letter.
    """
    if "requestPayload" in message:
        return False
    source = message.get("source")
    if source is None:
        return "Records" in message or message.get("Event") == "s3:TestEvent"
    return source in (EVENT_MESSAGE, SCHEDULE_MESSAGE) or (source == "aws.s3" and "detail-type" in message)


def _parse(message: Mapping[str, object]) -> tuple[TriggerEvent | IgnoredEvent, ...]:
    if message.get("source") == "github":
        check_format(message, FORMAT)
        return (parse_delivery(message),)
    if message.get("source") == EVENT_MESSAGE:
        check_format(message, EVENT_MESSAGE_FORMAT)
        return (parse_bus_event(message),)
    if message.get("source") == SCHEDULE_MESSAGE:
        check_format(message, SCHEDULE_MESSAGE_FORMAT)
        return (parse_scheduled_time(message),)
    if "detail-type" in message:
        return (_parse_eventbridge_event(message),)
    records = message.get("Records")
    if isinstance(records, list):
        return tuple(parse_notification_record(record) for record in records)
    if message.get("Event") == "s3:TestEvent":
        return (IgnoredEvent("S3 tests whether it can send notifications"),)
    raise PermanentError(f"nobody we know sends a message with the keys {sorted(map(ascii, message))[:10]}")


def _time_of(message: Mapping[str, object]) -> object:
    event = message.get("event")
    within = event.get("time") if isinstance(event, dict) else message.get("scheduled_time")
    return message.get("received_at") or message.get("time") or within


def _parse_timestamp(text: object) -> datetime | None:
    """Parse the time of a GitHub delivery or an EventBridge event; None if it is invalid or naive."""
    try:
        timestamp = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return timestamp if timestamp is not None and timestamp.tzinfo is not None else None


def _require_unicode(event: TriggerEvent | IgnoredEvent) -> None:
    """Reject unpaired surrogates, which JSON allows and AWS APIs do not."""
    try:
        json.dumps(asdict(event), ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as error:
        raise PermanentError(f"the event has text that is no Unicode: {error}") from error


def _parse_eventbridge_event(event: Mapping[str, object]) -> TriggerEvent | IgnoredEvent:
    match (event.get("source"), event["detail-type"]):
        case ("aws.s3", "Object Created"):
            return parse_upload(event)
        case ("aws.ecr", "ECR Image Action" | "ECR Replication Action"):
            return parse_image_action(event)
        case (source, detail_type):
            return IgnoredEvent(f"{detail_type} of {source} starts nothing")
