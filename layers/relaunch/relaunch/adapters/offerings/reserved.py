"""Offerings of machines of our own in the reservations that the stack may use."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from relaunch.adapters.offerings.bundled import load_catalogue, load_peaks, unknown_type
from relaunch.adapters.offerings.current_snapshot import CurrentSnapshot
from relaunch.adapters.offerings.regional import OwnMachines
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.peaks import Peaks
from relaunch.core.offerings.reservations import Reservation
from relaunch.core.offerings.snapshot import OfferingsSnapshot, PriceOrigin
from relaunch.ports import ANY_OPTION, DecisionLog, ReservationSource, ReservationsUnreadableError, TransientError


class ReservedOfferings:
    """Implements OfferingSource for reservations, also for those that cannot be used: selection says why.

    Raises ReservationsUnreadableError if they cannot be read: without them a job that takes nothing else would fail.
    For jobs that take nothing reserved they are not asked for, so that these wait for no permission to read them.
    """

    def __init__(
        self,
        reservation_ids: Sequence[str],
        source: ReservationSource,
        snapshot: CurrentSnapshot,
        machines: OwnMachines,
        log: DecisionLog,
    ) -> None:
        self._ids = tuple(reservation_ids)
        self._source = source
        self._snapshot = snapshot
        self._machines = machines
        self._log = log

    def offerings(self, now: datetime, options: Collection[PurchaseOption] = ANY_OPTION) -> tuple[Offering, ...]:
        if PurchaseOption.RESERVED not in options:
            return ()
        snapshot = self._snapshot.at(now)
        try:
            found = self._source.reservations(self._ids)
        except TransientError as error:
            raise ReservationsUnreadableError(str(error)) from error
        if unknown := set(self._ids) - {each.reservation_id for each in found}:
            self._log.decided("reservations-unknown", reservation_ids=sorted(unknown), reason="EC2 does not know them")
        return tuple(self._offering(each, snapshot) for each in found)

    def catalogue(self) -> Mapping[str, InstanceType]:
        return load_catalogue()

    def peaks(self) -> Mapping[str, Peaks]:
        return load_peaks()

    def price_origins(self, now: datetime) -> tuple[PriceOrigin, ...]:  # noqa: ARG002 - required by the port
        return ()

    def snapshot(self, now: datetime) -> OfferingsSnapshot:
        return self._snapshot.at(now)

    def _offering(self, reservation: Reservation, snapshot: OfferingsSnapshot) -> Offering:
        name = reservation.instance_type
        zone = reservation.zone
        if zone not in self._machines.zones and not reservation.obstacle:
            reservation = replace(reservation, obstacle=f"is in {zone}, where the stack has no subnet (MachineSubnets)")
        return Offering(
            instance_type={**load_catalogue(), **snapshot.instance_types}.get(name) or unknown_type(name),
            purchase=PurchaseOption.RESERVED,
            zone=zone,
            price_usd_per_hour=0.0,
            on_demand_usd_per_hour=snapshot.on_demand_usd_per_hour.get(name),
            disk_gib=self._machines.disk_gib,
            is_own_machine=True,
            reservation=reservation,
        )
