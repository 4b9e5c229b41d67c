"""Remembers what happened, independently of what the story says about it."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from relaunch_local.stack.forwarder import Event

Rows = list[dict[str, Any]]


@dataclass
class Recorder:
    """Hears every event of ECS and EC2 at the moment in which it is made.

    When StopTask stops a task, the table is read before the caller has its answer: what is in it then was stored before
    the task was stopped, because the caller has not gone on yet.
    """

    read_jobs: Callable[[], Rows]
    events: list[Event] = field(default_factory=list)
    actions: Rows = field(default_factory=list)
    stored_at_stop: dict[str, Rows] = field(default_factory=dict)

    def record(self, event: Event) -> None:
        """Take an event; called by the simulator under its lock."""
        self.events.append(event)
        detail = event["detail"]
        if detail.get("stopCode") == "UserInitiated" and detail["taskArn"] not in self.stored_at_stop:
            # Without this the story will not come true; StopTask must not fail for it.
            with suppress(BotoCoreError, ClientError):
                self.stored_at_stop[detail["taskArn"]] = self.read_jobs()

    def record_action(self, action: str, **facts: Any) -> None:
        """Remember what the demo itself did to the world."""
        self.actions.append({"action": action, "at": datetime.now(UTC).isoformat(), **facts})
