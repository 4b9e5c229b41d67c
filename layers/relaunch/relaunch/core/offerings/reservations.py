"""Capacity reservations that the stack may use: Capacity Blocks for ML, and on-demand capacity reservations.

Sources: "Capacity Blocks for ML" and "On-Demand Capacity Reservations" (EC2 User Guide), and "CapacityReservation" (EC2
API Reference).
"""

from datetime import datetime, timedelta
from enum import StrEnum

from relaunch.core.records import dataclass

WARNED_BEFORE_END = timedelta(minutes=40)
"""EC2 announces the end of a Capacity Block so long before it ("Monitor Capacity Blocks using EventBridge")."""
TAKEN_BEFORE_END = timedelta(minutes=30)
"""EC2 begins to terminate the instances in a Capacity Block so long before its end."""

_ACTIVE = "active"
# Nothing brings these back. Of the other states EC2 makes `active`, or one of these.
_OVER = frozenset({"expired", "cancelled", "cancelling", "failed", "payment-failed", "unsupported"})


class ReservationType(StrEnum):
    """The type of a reservation; the values are those of `ReservationTypes` of CreateFleet."""

    CAPACITY_BLOCK = "capacity-block"
    ON_DEMAND = "on-demand-capacity-reservation"

    @property
    def label(self) -> str:
        """Return what AWS calls it."""
        return "Capacity Block" if self is ReservationType.CAPACITY_BLOCK else "capacity reservation"


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation of instances of one type in one zone, as EC2 described it.

    `total` instances are reserved, of which `available` are free. `ends_at` is None if it lasts until it is cancelled.
    `has_room`: a machine of ours in it has room for another job, whether or not an instance is free.
    `obstacle` is why no machine of the stack can ever be launched into it, empty if one can. `is_launchable` is whether
    EC2 launches instances into it now; only those of UltraServers are ever without that.
    """

    reservation_id: str
    type: ReservationType
    instance_type: str
    zone: str
    state: str
    total: int = 0
    available: int = 0
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    obstacle: str = ""
    has_room: bool = False
    is_launchable: bool = True

    def __str__(self) -> str:
        """Return `Capacity Block cr-0123456789abcdef0`."""
        return f"{self.type.label} {self.reservation_id}"

    @property
    def is_active(self) -> bool:
        """Return whether instances can be launched into it."""
        return self.state == _ACTIVE

    @property
    def is_over(self) -> bool:
        """Return whether it will never be active again."""
        return self.state in _OVER

    def describe_size(self, machines: int) -> str:
        """Return why it never has so many machines at once; empty if it may.

        A Capacity Block is extended in time alone ("Extend Capacity Blocks", EC2 User Guide). A capacity reservation
        may be given more instances.
        """
        if self.type is ReservationType.ON_DEMAND or not 0 < self.total < machines:
            return ""
        return f"{self} has {_instances(self.total)}, and the job needs {machines} at once"

    def describe_lack(self, machines: int) -> str:
        """Return why it does not have so many machines at once now; empty if it has."""
        if self.available >= machines or (machines == 1 and self.has_room):
            return ""
        if machines == 1:
            return f"none of the {self.total} instances of {self} is free"
        free = max(self.available, 0)
        verb = "is" if free == 1 else "are"
        return f"{free} of the {_instances(self.total)} of {self} {verb} free, and the job needs {machines} at once"

    @property
    def usable_until(self) -> datetime | None:
        """Return when its instances are taken away, or are paid for beside it; None if it has no end.

        Instances in an on-demand capacity reservation go on after its end, at the on-demand price.
        """
        if self.ends_at is None or self.type is ReservationType.ON_DEMAND:
            return self.ends_at
        return self.ends_at - TAKEN_BEFORE_END


def _instances(count: int) -> str:
    return "1 instance" if count == 1 else f"{count} instances"
