"""EC2 events: spot interruption warnings, rebalance recommendations, state changes, ends of Capacity Blocks.

The detail types are "EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation" and "EC2 Instance
State-change Notification" (Amazon EC2 User Guide; samples in events/aws.ec2.*.json). The instance ID is read from
`detail`, because the format of the ARN in `resources` has changed over time. A warning comes at most two minutes before
the interruption, and may not come at all.

The owner of an interruptible capacity reservation takes its instances two minutes after "EC2 Capacity Reservation
Instance Interruption Warning" ("Monitor interruptible Capacity Reservations", EC2 User Guide).

The end of a Capacity Block is announced 40 minutes before it ("Monitor Capacity Blocks using EventBridge", EC2 User
Guide, which has had two names for it, and does not show the form of its date).
"""

from collections.abc import Mapping
from dataclasses import field

from pydantic_core import ValidationError

from relaunch.adapters.received_type import ReceivedType
from relaunch.adapters.validation import Timestamp, permanent_if_invalid
from relaunch.core.launches.instance_events import InstanceEvent, InstanceEventKind, ReservationEnding
from relaunch.core.offerings.reservations import WARNED_BEFORE_END
from relaunch.core.records import dataclass

_RESERVATION_WARNING = "EC2 Capacity Reservation Instance Interruption Warning"
_KINDS = {
    "EC2 Spot Instance Interruption Warning": InstanceEventKind.INTERRUPTION_WARNING,
    _RESERVATION_WARNING: InstanceEventKind.INTERRUPTION_WARNING,
    "EC2 Instance Rebalance Recommendation": InstanceEventKind.REBALANCE_RECOMMENDATION,
    "EC2 Instance State-change Notification": InstanceEventKind.STATE_CHANGE,
}
_BLOCK_ENDS = frozenset({"Capacity Block Reservation Expiration Warning", "Capacity Block Expiration Warning"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _BlockDetail:
    reservation_id: str = field(metadata={"names": ("capacity-reservation-id",), "pattern": r"^cr-[0-9a-f]+$"})
    end_date: str = field(default="", metadata={"names": ("end-date",)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _BlockEvent:
    detail: _BlockDetail
    time: Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class _Detail:
    instance_id: str = field(metadata={"names": ("instance-id",), "pattern": r"^i-[0-9a-f]+$"})
    instance_action: str = field(default="", metadata={"names": ("instance-action",)})
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    detail: _Detail
    time: Timestamp | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    date: Timestamp


_BLOCK_EVENT = ReceivedType(_BlockEvent)
_EVENT = ReceivedType(_Event)
_END = ReceivedType(_End)


def parse_ec2_event(event: Mapping[str, object]) -> InstanceEvent | ReservationEnding | None:
    """Parse an EventBridge event from `aws.ec2`; return None for other detail types.

    `state` is the new state of a state change (`shutting-down`, `terminated`…) or the action announced by a warning
    (`terminate`, `stop`, `hibernate`).

    Raises:
        PermanentError: the event has no valid ID of an instance or a reservation, or no time.
    """
    detail_type = str(event.get("detail-type"))
    if detail_type in _BLOCK_ENDS:
        return _parse_block_end(event)
    kind = _KINDS.get(detail_type)
    if kind is None:
        return None
    with permanent_if_invalid("reading an event from EC2"):
        parsed = _EVENT.read(event)
    return InstanceEvent(
        kind,
        parsed.detail.instance_id,
        parsed.detail.state or parsed.detail.instance_action,
        parsed.time,
        cause="interruption of the capacity reservation" if detail_type == _RESERVATION_WARNING else "",
    )


def _parse_block_end(event: Mapping[str, object]) -> ReservationEnding:
    with permanent_if_invalid("reading an event from EC2"):
        parsed = _BLOCK_EVENT.read(event)
    latest = parsed.time + WARNED_BEFORE_END
    try:
        ends_at = _END.read({"date": parsed.detail.end_date}).date
    except ValidationError:
        ends_at = latest
    # A date that was misread must not keep a task from being stopped in time.
    is_credible = parsed.time < ends_at < latest
    return ReservationEnding(parsed.detail.reservation_id, parsed.time, ends_at if is_credible else latest)
