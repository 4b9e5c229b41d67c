"""Records what happens, independently of what the demo prints."""

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
    """Records every event of ECS and EC2 while it is published.

    When StopTask stops a task, the jobs table is read before the caller gets the response, so what is read was stored
    before the task was stopped.
    """

    read_jobs: Callable[[], Rows]
    events: list[Event] = field(default_factory=list)
    actions: Rows = field(default_factory=list)
    stored_at_stop: dict[str, Rows] = field(default_factory=dict)

    def record(self, event: Event) -> None:
        """Record an event; called by the simulator under its lock."""
        self.events.append(event)
        detail = event["detail"]
        if detail.get("stopCode") == "UserInitiated" and detail["taskArn"] not in self.stored_at_stop:
            # StopTask must not fail if the table cannot be read; the demo notices later.
            with suppress(BotoCoreError, ClientError):
                self.stored_at_stop[detail["taskArn"]] = self.read_jobs()

    def record_action(self, action: str, **facts: Any) -> None:
        """Record an action of the demo itself."""
        self.actions.append({"action": action, "at": datetime.now(UTC).isoformat(), **facts})
