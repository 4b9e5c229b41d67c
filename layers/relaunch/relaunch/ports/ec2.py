"""EC2: instance types, the zones that offer them, prices, spot placement scores and quotas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from relaunch.core.launches.launch import HostObservation
    from relaunch.core.machines.events import InstanceObservation
    from relaunch.core.offerings.instance_types import InstanceType
    from relaunch.core.offerings.reservations import Reservation


class InstanceTypeSource(Protocol):
    """Instance types described by EC2."""

    def instance_types(self) -> Mapping[str, InstanceType]:
        """Return the types of the region with accelerators, except those that cannot be parsed."""


class ZoneSource(Protocol):
    """Zones in which EC2 offers instance types."""

    def zones(self, instance_types: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the zones of the region by type, for the types that it offers."""


class SpotPriceSource(Protocol):
    """Current spot prices."""

    def spot_prices(self, instance_types: Iterable[str]) -> Mapping[tuple[str, str], tuple[float, datetime]]:
        """Return (type, zone) → (USD per hour, effective since), for Linux."""


class ReservationSource(Protocol):
    """Capacity Blocks and on-demand capacity reservations."""

    def reservations(self, reservation_ids: Sequence[str]) -> tuple[Reservation, ...]:
        """Return these reservations, without those that EC2 does not know."""


class HostSource(Protocol):
    """The instances that tasks run on."""

    def look(self, instance_id: str, *, is_spot: bool) -> HostObservation:
        """Return what EC2 says of the end of an instance; nothing of one that it does not know.

        Raises:
            TransientError, PermanentError: EC2 does not answer, or access is denied.
        """

    def find_address(self, instance_id: str) -> str:
        """Return the private IPv4 address of an instance.

        Raises:
            TransientError: EC2 does not know the instance, or not yet its address; or it does not answer.
            PermanentError: access is denied.
        """
        ...

    def running_in_groups(self) -> Sequence[InstanceObservation]:
        """Return the running instances of the groups that are named like capacity providers of the stack.

        Raises:
            TransientError, PermanentError: EC2 does not answer, or access is denied.
        """
        ...


class ZoneScoreSource(Protocol):
    """Spot placement scores by zone."""

    def zone_scores(self, instance_types: Iterable[str]) -> Mapping[str, int]:
        """Return the spot placement score, 1 to 10, of these types by zone.

        Zones without a score are missing; errors are not raised.
        """


class RegionScoreSource(Protocol):
    """Spot placement scores of the region."""

    def region_score(self, instance_types: Sequence[str], vcpus: int) -> int | None:
        """Return the spot placement score, 1 to 10, of this many vCPUs of these types; None if there is none.

        Raises:
            PermanentError: EC2 rejects the request, such as for its limits on new configurations and target capacity.
        """


class PriceListSource(Protocol):
    """List prices of the region, in USD, for Linux."""

    def on_demand_prices(self, instance_types: Iterable[str]) -> Mapping[str, float]:
        """Return prices per hour by type, for the types that have one.

        Raises:
            PermanentError: the prices are in another currency, or access is denied.
        """

    def gp3_price(self) -> float:
        """Return the price of a gp3 volume per GiB and month.

        Raises:
            PermanentError: there is none in USD, or access is denied.
        """


class QuotaSource(Protocol):
    """The quotas of the account."""

    def vcpu_quotas(self, codes: Iterable[str]) -> Mapping[str, float]:
        """Return the number of vCPUs by quota code; quotas that the region does not have are missing.

        Raises:
            PermanentError: access is denied.
        """
