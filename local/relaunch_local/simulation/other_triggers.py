"""What starts jobs in some seeds besides GitHub, uploads, images and requests: schedules, events and topics of SNS.

People add such triggers to definitions, change them and remove them again. In the end every schedule is removed, or it
would start jobs for ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from relaunch.core.definitions.definition import Trigger

TOPICS = tuple(f"arn:aws:sns:us-east-1:111122223333:{name}" for name in ("features", "labels"))
"""The topics of a stack that takes messages of some."""
EVENT_SOURCE = "com.acme.features"
EVENT_TYPE = "Features Built"


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """Somebody removes triggers of a definition, adds others, and applies that."""

    at_seconds: float
    definition: str
    removed: tuple[Trigger, ...]
    added: tuple[Trigger, ...]


@dataclass(frozen=True, slots=True)
class PlannedBusEvent:
    """Somebody sends an event with so many rows to the event bus; `size` is the value of an input."""

    at_seconds: float
    source: str
    rows: int
    size: str | None


@dataclass(frozen=True, slots=True)
class PlannedTopicMessage:
    """Somebody publishes a message on a topic; its attributes have an input."""

    at_seconds: float
    topic: str
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OtherTriggers:
    """What happens in a seed."""

    changes: tuple[PlannedChange, ...] = ()
    events: tuple[PlannedBusEvent, ...] = ()
    messages: tuple[PlannedTopicMessage, ...] = ()
