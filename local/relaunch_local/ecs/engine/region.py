"""What the parts of the engine share: clock, identifiers, timing, event bus."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from relaunch_local.ecs.clock import Clock
from relaunch_local.ecs.engine.identifiers import Arns, IdSource
from relaunch_local.ecs.engine.settings import InstanceShape, PriceOf, Timing

Event = dict[str, Any]


def iso(time: datetime, *, timespec: str = "milliseconds") -> str:
    """Format a datetime as in events: `2020-01-23T17:57:34.402Z`."""
    return time.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


@dataclass(slots=True)
class EventBus:
    """Publishes EventBridge events to subscribers, in order."""

    clock: Clock
    ids: IdSource
    arns: Arns
    subscribers: list[Callable[[Event], None]] = field(default_factory=list)

    def publish(self, source: str, detail_type: str, resource: str, detail: Callable[[], dict[str, Any]]) -> None:
        """Publish an event; `detail` is called only if there are subscribers."""
        if not self.subscribers:
            return
        event = {
            "version": "0",
            "id": self.ids.uuid(),
            "detail-type": detail_type,
            "source": source,
            "account": self.arns.account,
            "time": iso(self.clock.now(), timespec="seconds"),
            "region": self.arns.region,
            "resources": [resource],
            "detail": detail(),
        }
        for subscriber in self.subscribers:
            subscriber(event)


@dataclass(slots=True)
class Region:
    """An account in a region."""

    clock: Clock
    ids: IdSource
    arns: Arns
    timing: Timing
    shapes: Mapping[str, InstanceShape]
    events: EventBus
    price_of: PriceOf
    instance_resource_events: bool
    """Whether an event is published for each change of a container instance's free resources, as ECS does."""
