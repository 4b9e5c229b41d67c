"""Capacity reservations of the region: Capacity Blocks for ML, and on-demand capacity reservations.

Sources: "Capacity Blocks for ML", "Monitor Capacity Blocks using EventBridge", "Cancel a Capacity Reservation" (EC2
User Guide), CapacityReservation and ModifyCapacityReservation (EC2 API Reference), "Error codes for the Amazon EC2
API". The message for a full one is that of a user's RunInstances, which speaks of "compatible and available capacity"
(scylladb/scylla-cluster-tests#8839); the code for one that has ended or was cancelled, and the reason of instances that
end with a block, are not published.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch_local.ecs.engine.ec2_listing import filters_of, matches, page_of
from relaunch_local.ecs.engine.instances import Instances
from relaunch_local.ecs.engine.model import Instance, InstanceState, JsonObject, StateReason
from relaunch_local.ecs.engine.pools import Place
from relaunch_local.ecs.engine.region import Region, iso
from relaunch_local.ecs.errors import EcsError
from relaunch_local.ecs.rules.fleet import CAPACITY_BLOCK

WARNED_BEFORE_END = timedelta(minutes=40)
"""EC2 announces the end of a block so long before it."""
ENDED_BEFORE_END = timedelta(minutes=30)
"""EC2 begins to terminate the instances of a block so long before its end."""

_ID = re.compile(r"cr-([0-9a-f]{8}|[0-9a-f]{17})")
_OVER = frozenset({"expired", "cancelled"})
FULL = "ReservationCapacityExceeded"
_NOT_ACTIVE = "InvalidCapacityReservationState"
_NOT_STARTED = "InvalidCapacityReservationState.PendingActivation"
"""Of a Capacity Block; for another reservation no such code is documented ("Error codes for the Amazon EC2 API")."""


@dataclass(slots=True, eq=False)
class CapacityReservation:
    """A reservation of `total` instances of one type in one zone, of which others have `taken`."""

    reservation_id: str
    instance_type: str
    zone: str
    total: int
    type: str
    starts_at: datetime
    ends_at: datetime | None = None
    expires_late: timedelta = timedelta(0)
    """How long after its end an on-demand capacity reservation expires: EC2 says within an hour."""
    shown_late: timedelta = timedelta(0)
    """How long it is described as pending after its start: up to five minutes, in which it can be launched into."""
    state: str = "scheduled"
    taken: int = 0
    owner: str = ""
    """The account that shares it; empty: it is the account's own."""
    over_since: datetime | None = None
    """When it expired or was cancelled."""

    @property
    def is_block(self) -> bool:
        """Whether it is a Capacity Block."""
        return self.type == CAPACITY_BLOCK


@dataclass(slots=True)
class CapacityReservations:
    """The reservations of the region, their states, and the instances in them."""

    region: Region
    instances: Instances
    by_id: dict[str, CapacityReservation] = field(default_factory=dict)
    on_ending: list[Callable[[CapacityReservation, list[Instance]], None]] = field(default_factory=list)
    """Called when EC2 begins to terminate the instances of a block, before it does."""

    def add(self, reservation: CapacityReservation) -> None:
        """Add a reservation; it becomes active at its start, now if that has passed."""
        self.by_id[reservation.reservation_id] = reservation
        now = self.region.clock.now()
        self._at(reservation.starts_at, now, lambda: self._start(reservation))
        if reservation.ends_at is None:
            return
        if not reservation.is_block:
            self._at(reservation.ends_at + reservation.expires_late, now, lambda: self._leave(reservation, "expired"))
            return
        warning = "Capacity Block Reservation Expiration Warning"
        self._at(reservation.ends_at - WARNED_BEFORE_END, now, lambda: self._publish(reservation, warning))
        self._at(reservation.ends_at - ENDED_BEFORE_END, now, lambda: self._end(reservation))
        self._at(reservation.ends_at, now, lambda: self._leave(reservation, "expired"))

    def cancel(self, reservation_id: str) -> None:
        """CancelCapacityReservation: its instances run on at the on-demand price.

        Raises:
            EcsError: InvalidCapacityReservationId.NotFound; UnsupportedOperation for a block, which nobody can cancel.
        """
        reservation = self.find(reservation_id)
        if reservation.is_block:
            raise EcsError("UnsupportedOperation", f"The Capacity Block {reservation_id} cannot be cancelled.")
        self._leave(reservation, "cancelled")

    def find(self, reservation_id: str) -> CapacityReservation:
        """Return a reservation; raises InvalidCapacityReservationId.Malformed and .NotFound."""
        if not _ID.fullmatch(reservation_id):
            raise EcsError("InvalidCapacityReservationId.Malformed", f'Invalid id: "{reservation_id}"')
        found = self.by_id.get(reservation_id)
        if found is None:
            message = f"The capacity reservation '{reservation_id}' does not exist"
            raise EcsError("InvalidCapacityReservationId.NotFound", message)
        return found

    def available(self, reservation: CapacityReservation) -> int:
        """Return how many instances are free; one that ends keeps its place until it is terminated."""
        if reservation.state != "active":
            return 0
        return max(reservation.total - reservation.taken - len(self.inside(reservation)), 0)

    def refusal_of(self, reservation: CapacityReservation, reservation_type: str, place: Place) -> str | None:
        """Return the error code of a launch into a reservation; None if there is a free instance for it."""
        if reservation.state in _OVER:
            return _NOT_ACTIVE
        if reservation.state != "active":
            return _NOT_STARTED if reservation.is_block else FULL
        is_of_type = reservation.type == reservation_type
        is_alike = is_of_type and (reservation.instance_type, reservation.zone) == (place.instance_type, place.zone)
        ends_at = reservation.ends_at if reservation.is_block else None
        is_ending = ends_at is not None and self.region.clock.now() >= ends_at - ENDED_BEFORE_END
        return None if is_alike and not is_ending and self.available(reservation) else FULL

    def describe(self, request: JsonObject) -> JsonObject:
        """DescribeCapacityReservations, by ID or by filters.

        Raises:
            EcsError: InvalidCapacityReservationId.Malformed and .NotFound; InvalidParameterValue.
        """
        ids = request.get("CapacityReservationIds")
        found = [self.find(each) for each in ids] if ids else [*self.by_id.values()]
        filters = filters_of(request)
        rows = [
            row
            for row in map(self._view, found)
            if all(matches(values, [_filtered(row, name)]) for name, values in filters.items())
        ]
        return page_of("CapacityReservations", rows, request)

    def shown_state(self, reservation: CapacityReservation) -> str:
        """Return the state as EC2 describes it."""
        is_late = self.region.clock.now() < reservation.starts_at + reservation.shown_late
        return "pending" if is_late and reservation.state == "active" else reservation.state

    def _view(self, reservation: CapacityReservation) -> JsonObject:
        owner = reservation.owner or self.region.arns.account
        row: JsonObject = {
            "CapacityReservationId": reservation.reservation_id,
            "OwnerId": owner,
            "CapacityReservationArn": self.region.arns.ec2(f"capacity-reservation/{reservation.reservation_id}"),
            "InstanceType": reservation.instance_type,
            "InstancePlatform": "Linux/UNIX",
            "AvailabilityZone": reservation.zone,
            "Tenancy": "default",
            "TotalInstanceCount": reservation.total,
            "AvailableInstanceCount": self.available(reservation),
            "State": self.shown_state(reservation),
            "StartDate": reservation.starts_at,
            "EndDateType": "unlimited" if reservation.ends_at is None else "limited",
            "InstanceMatchCriteria": "targeted",
            "ReservationType": reservation.type if reservation.is_block else "default",
        }
        return row if reservation.ends_at is None else {**row, "EndDate": reservation.ends_at}

    def _at(self, at: datetime, now: datetime, then: Callable[[], None]) -> None:
        if at <= now:
            then()
        else:
            self.region.clock.call_later((at - now).total_seconds(), then)

    def _start(self, reservation: CapacityReservation) -> None:
        if reservation.state != "scheduled":
            return
        reservation.state = "active"
        if reservation.is_block:
            self._publish(reservation, "Capacity Block Reservation Delivered")

    def inside(self, reservation: CapacityReservation) -> list[Instance]:
        """Return the instances that have a place in a reservation, those that end included."""
        return [
            each
            for each in self.instances.by_id.values()
            if each.reservation_id == reservation.reservation_id and each.state is not InstanceState.TERMINATED
        ]

    def _end(self, reservation: CapacityReservation) -> None:
        inside = [each for each in self.inside(reservation) if each.is_alive]
        for listener in self.on_ending:
            listener(reservation, inside)
        for instance in inside:
            self.instances.terminate(instance, StateReason.SCHEDULED_STOP)

    def _leave(self, reservation: CapacityReservation, state: str) -> None:
        if reservation.state in _OVER:
            return
        reservation.state = state
        reservation.over_since = self.region.clock.now()
        self.instances.charge_on_demand(self.inside(reservation))

    def _publish(self, reservation: CapacityReservation, detail_type: str) -> None:
        end = reservation.ends_at or reservation.starts_at
        detail = {
            "capacity-reservation-id": reservation.reservation_id,
            "end-date": iso(end, timespec="milliseconds"),
        }
        arn = self.region.arns.ec2(f"capacity-reservation/{reservation.reservation_id}")
        self.region.events.publish("aws.ec2", detail_type, arn, lambda: detail)


_FILTERED = {
    "instance-type": "InstanceType",
    "availability-zone": "AvailabilityZone",
    "state": "State",
    "owner-id": "OwnerId",
}


def _filtered(row: JsonObject, name: str) -> str:
    if name not in _FILTERED:
        raise EcsError("InvalidParameterValue", f"The filter '{name}' is invalid")
    return str(row[_FILTERED[name]])
