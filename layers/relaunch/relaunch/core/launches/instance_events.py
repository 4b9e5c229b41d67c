"""Events of EC2 and of AWS Health about instances: one is interrupted, retires, or has another state."""

from datetime import datetime
from enum import StrEnum

from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.records import dataclass


class InstanceEventKind(StrEnum):
    """The kinds of instance events."""

    INTERRUPTION_WARNING = "interruption-warning"
    REBALANCE_RECOMMENDATION = "rebalance-recommendation"
    STATE_CHANGE = "state-change"


@dataclass(frozen=True, slots=True)
class InstanceEvent:
    """An EC2 event about an instance: interruption warning, rebalance recommendation or state change.

    `ends_at` is when an announced interruption begins, None for about two minutes after the warning. `cause` is what
    interrupts, empty for EC2's spot market and the end of a Capacity Block.
    """

    kind: InstanceEventKind
    instance_id: str
    state: str = ""
    at: datetime | None = None
    offering: OfferingKey | None = None
    ends_at: datetime | None = None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class InstancesRetiring:
    """AWS announces that it ends or reboots instances on `ends_at`, mostly days ahead and because of their hosts."""

    instance_ids: tuple[str, ...]
    at: datetime
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class ReservationEnding:
    """EC2 announces the end of a Capacity Block, at `ends_at`; it takes the instances before that."""

    reservation_id: str
    at: datetime
    ends_at: datetime
