"""What schedules, the event bus and topics sent to the application, and when a function handled it.

What must start a job is known from what the simulated services sent and accepted, and from when which triggers were
registered; what a definition selects is compared here, not by the application.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from relaunch_local.ecs import Clock
from relaunch_local.simulation.other_triggers import OtherTriggers

_OWN_SOURCE = re.compile(r"relaunch\.[a-z0-9-]+")

Lookup = tuple[str, ...]


class Bus(Protocol):
    """What events are published on."""

    def publish(self, event: Mapping[str, Any]) -> float | None:
        """Deliver an event; return when the last target has it, in seconds."""


@dataclass(frozen=True, slots=True)
class Published:
    """An event that the bus took; of a change of a job that came twice, the first one."""

    identity: str
    event: Mapping[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class TopicMessageSent:
    """A message that a topic took."""

    topic: str
    message_id: str
    attributes: Mapping[str, str]
    at: datetime

    @property
    def identity(self) -> str:
        """Return what identifies the event that it is."""
        return f"sns:{self.topic}:{self.message_id}"


@dataclass(slots=True)
class TriggerStarts:
    """Knows what was sent in a seed with other triggers; in others it knows nothing."""

    _clock: Clock
    _planned: OtherTriggers | None
    published: dict[str, Published] = field(default_factory=dict)
    """By identity."""
    messages: list[TopicMessageSent] = field(default_factory=list)
    handled: dict[Lookup, tuple[datetime, datetime]] = field(default_factory=dict)
    """When a function first handled what it was sent without an error: from when until when."""
    last_arrival: datetime | None = None
    """When the last message arrives that was sent."""

    def publish(self, bus: Bus, event: Mapping[str, Any]) -> None:
        """Publish an event."""
        identity = identity_of(event)
        now = self._clock.now()
        self.published.setdefault(identity, Published(identity, event, now))
        delay = bus.publish(event)
        if delay is not None:
            self.arrives(now + timedelta(seconds=delay))

    def arrives(self, at: datetime) -> None:
        """Note when a message arrives."""
        self.last_arrival = max(self.last_arrival or at, at)

    def message_handled(self, function: str, body: str, began_at: datetime) -> None:
        """Note a message that was handled."""
        if self._planned is None or function != "submit_job":
            return
        lookup = _lookup(json.loads(body))
        if lookup is not None:
            self.handled.setdefault(lookup, (began_at, self._clock.now()))


def identity_of(event: Mapping[str, Any]) -> str:
    """Return what identifies an event of the bus: a change of a job may be sent twice, with the same ID of its own."""
    is_own = _OWN_SOURCE.fullmatch(event["source"]) is not None
    return f"eventbridge:{event['source']}:{event['detail']['id'] if is_own else event['id']}"


def _lookup(message: Mapping[str, Any]) -> Lookup | None:
    if message.get("source") == "scheduler":
        return "schedule", message["key"], message["scheduled_time"]
    if message.get("source") == "eventbridge":
        return "eventbridge", message["key"], identity_of(message["event"])
    if message.get("Type") == "Notification":
        return "sns", message["TopicArn"], message["MessageId"]
    return None
