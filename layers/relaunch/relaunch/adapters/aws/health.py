"""Events of AWS Health about EC2 instances that AWS will retire, stop, reboot or maintain.

"Reference: AWS Health events Amazon EventBridge schema" (AWS Health User Guide; a sample in
events/aws.health.instance-retirement.json). Health sends an event at least once and again when something about it
changes, also when it is over, as `closed`.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from relaunch.adapters.received_type import ReceivedType
from relaunch.adapters.validation import Timestamp, permanent_if_invalid
from relaunch.core.launches.instance_events import InstancesRetiring
from relaunch.core.records import dataclass

_DETAIL_TYPE = "AWS Health Event"
_INSTANCE = r"i-[0-9a-f]+"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entity:
    value: str = field(default="", metadata={"names": ("entityValue",)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Detail:
    status: str = field(default="", metadata={"names": ("statusCode",)})
    start_time: str = field(default="", metadata={"names": ("startTime",)})
    entities: tuple[_Entity, ...] = field(default=(), metadata={"names": ("affectedEntities",)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    detail: _Detail
    time: Timestamp


_EVENT = ReceivedType(_Event)


def parse_health_event(event: Mapping[str, object]) -> InstancesRetiring | None:
    """Parse an EventBridge event from `aws.health` that the stack's rule lets in; return None for what is over.

    Without a date that can be read the end may come at any time: it counts as the event's own.

    Raises:
        PermanentError: the event cannot be read, or has no time.
    """
    if event.get("detail-type") != _DETAIL_TYPE:
        return None
    with permanent_if_invalid("reading an event from AWS Health"):
        parsed = _EVENT.read(event)
    # Maintenance may be of a host, or of a subnet's network, too.
    instance_ids = tuple(each.value for each in parsed.detail.entities if re.fullmatch(_INSTANCE, each.value))
    if parsed.detail.status == "closed" or not instance_ids:
        return None
    ends_at = _read_date(parsed.detail.start_time) or parsed.time
    return InstancesRetiring(instance_ids, parsed.time, max(ends_at, parsed.time))


def _read_date(text: str) -> datetime | None:
    """Read a date like `Thu, 26 Nov 2026 10:00:00 GMT`; None if it is none."""
    try:
        found = parsedate_to_datetime(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
