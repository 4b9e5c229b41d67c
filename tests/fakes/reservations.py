"""Capacity reservations for tests."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from fakes.builders import NOW, make_instance_type
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.reservations import Reservation, ReservationType

BLOCK_ID, RESERVATION_ID = "cr-0b10c0b10c0b10c00", "cr-0de0de0de0de0de00"


def make_block(**fields: Any) -> Reservation:
    """Build an active Capacity Block of 4 instances, of which 3 are free, that ends in a day."""
    block = Reservation(
        BLOCK_ID,
        ReservationType.CAPACITY_BLOCK,
        "g5.xlarge",
        "us-east-1a",
        "active",
        total=4,
        available=3,
        starts_at=NOW - timedelta(hours=1),
        ends_at=NOW + timedelta(days=1),
    )
    return replace(block, **fields)


def make_reservation(**fields: Any) -> Reservation:
    """Build an active on-demand capacity reservation of 2 instances, both free, without an end."""
    open_end = {"reservation_id": RESERVATION_ID, "type": ReservationType.ON_DEMAND, "ends_at": None}
    return make_block(**{**open_end, "total": 2, "available": 2, **fields})


def make_reserved(reservation: Reservation | None = None, **fields: Any) -> Offering:
    """Build the offering of a machine of our own in a reservation, by default the usual block."""
    reservation = reservation or make_block()
    return Offering(
        instance_type=fields.pop("instance_type", None) or make_instance_type(reservation.instance_type),
        purchase=PurchaseOption.RESERVED,
        zone=reservation.zone,
        price_usd_per_hour=0.0,
        on_demand_usd_per_hour=1.0,
        is_own_machine=True,
        reservation=reservation,
        **fields,
    )


class FakeReservations:
    """Implements ReservationSource over a list; `failure`, as long as it is set, is raised."""

    def __init__(self, *reservations: Reservation) -> None:
        self.known = {each.reservation_id: each for each in reservations}
        self.failure: Exception | None = None

    def reservations(self, reservation_ids: tuple[str, ...]) -> tuple[Reservation, ...]:
        """Return the known ones of these."""
        if self.failure:
            raise self.failure
        return tuple(self.known[each] for each in reservation_ids if each in self.known)
