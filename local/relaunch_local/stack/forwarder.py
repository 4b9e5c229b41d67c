"""Forwards the simulator's events to the targets of the emulator's EventBridge rules.

The emulator rejects `aws.*` sources in PutEvents, as AWS does. So its rules are read (ListRules, TestEventPattern,
ListTargetsByRule), and events are sent to the queues of matching rules. Delivery can be at least once and out of
order, which is all that EventBridge guarantees.
"""

import json
import logging
import queue
import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from relaunch_local.stack.emulator import Emulator

logger = logging.getLogger(__name__)

Event = Mapping[str, Any]

REORDER_DELAY_SECONDS = 0.3
"""The delay of an event that is delivered out of order."""


@dataclass(frozen=True)
class DeliveryFaults:
    """The shares of events, from 0 to 1, that are delivered twice and out of order."""

    duplicated: float = 0.0
    reordered: float = 0.0
    seed: int = 0


class EventTargets(Protocol):
    """Receives events."""

    def deliver(self, event: Event) -> None:
        """Send an event to every target of every matching rule."""


class EmulatorTargets:
    """The queues that are targets of rules on the emulator's default event bus."""

    def __init__(self, emulator: Emulator) -> None:
        """Create the clients; the rules are read with the first event."""
        self._events = emulator.client("events")
        self._sqs = emulator.client("sqs")
        self._patterns = lru_cache(maxsize=1)(self._read_patterns)
        self._queue_url = lru_cache(maxsize=None)(self._read_queue_url)

    def deliver(self, event: Event) -> None:
        body = json.dumps(event)
        for rule in self.matching_rules(event):
            for target in self._events.list_targets_by_rule(Rule=rule)["Targets"]:
                self._sqs.send_message(QueueUrl=self._queue_url(target["Arn"]), MessageBody=body)

    def matching_rules(self, event: Event) -> list[str]:
        """Return the names of the rules that match an event."""
        body = json.dumps(event)
        return [
            name
            for name, pattern in self._patterns().items()
            if self._events.test_event_pattern(EventPattern=pattern, Event=body)["Result"]
        ]

    def _read_patterns(self) -> dict[str, str]:
        pages = self._events.get_paginator("list_rules").paginate()
        rules = (rule for page in pages for rule in page["Rules"])
        return {rule["Name"]: rule["EventPattern"] for rule in rules if "EventPattern" in rule}

    def _read_queue_url(self, arn: str) -> str:
        return str(self._sqs.get_queue_url(QueueName=arn.rsplit(":", 1)[1])["QueueUrl"])


@dataclass
class EventForwarder:
    """Queues events and delivers them on a separate thread."""

    targets: EventTargets
    delivery_faults: DeliveryFaults = field(default_factory=DeliveryFaults)

    def __post_init__(self) -> None:
        """Start the thread."""
        self._queue: queue.Queue[Event | None] = queue.Queue()
        self._random = random.Random(self.delivery_faults.seed)  # noqa: S311 - repeatable, not used for secrets
        self._timers: list[threading.Timer] = []
        self._thread = threading.Thread(target=self._run, name="event-forwarder", daemon=True)
        self._thread.start()

    def publish(self, event: Event) -> None:
        """Queue an event."""
        if self._random.random() < self.delivery_faults.duplicated:
            self._queue.put(event)
        if self._random.random() < self.delivery_faults.reordered:
            timer = threading.Timer(REORDER_DELAY_SECONDS, self._queue.put, args=(event,))
            timer.daemon = True
            self._timers.append(timer)
            timer.start()
        else:
            self._queue.put(event)

    def close(self) -> None:
        """Deliver the queued events and stop the thread."""
        for timer in self._timers:
            timer.join()
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (event := self._queue.get()) is not None:
            try:
                self.targets.deliver(event)
            except (ClientError, BotoCoreError):
                logger.exception("delivering %s", event.get("detail-type"))
