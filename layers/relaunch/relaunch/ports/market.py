"""What machines can be had, where, for how much."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import CapacityFailure, CapacityMemory, Offering
from relaunch.core.offerings.snapshot import OfferingsSnapshot, PriceOrigin


class CapacityStore(Protocol):
    """The capacity memory, shared by all jobs."""

    def load_capacity_memory(self, now: datetime) -> CapacityMemory:
        """Return what failed lately and has not expired, with one read."""
        ...

    def remember(self, failure: CapacityFailure) -> None:
        """Remember a failure on top of what is remembered of its offering (core.offerings.capacity_memory)."""
        ...


class SpotPriceSource(Protocol):
    """Current spot prices."""

    def spot_prices(self, instance_types: Iterable[str]) -> Mapping[tuple[str, str], tuple[float, datetime]]:
        """Return (type, zone) → (USD per hour, since when), for Linux.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...


@dataclass(frozen=True, slots=True)
class CapacityProviderOffer:
    """A capacity provider of the stack's settings: `name=instance-type/purchase`.

    `is_managed`: ECS Managed Instances are behind it (`/managed-instances`), not an Auto Scaling group. `disk_gib` is
    the size of its machines' root volume (`/200GiB`), None where the settings do not say it.
    """

    name: str
    instance_type: str
    purchase: PurchaseOption
    is_managed: bool = False
    disk_gib: int | None = None


class OfferingSource(Protocol):
    """What can be launched at all."""

    def offerings(self, now: datetime) -> tuple[Offering, ...]:
        """Return every offering with its present price; falls back to reference prices when prices cannot be had."""
        ...

    def catalogue(self) -> Mapping[str, InstanceType]:
        """Return the instance types known, by name."""
        ...

    def price_origins(self, now: datetime) -> tuple[PriceOrigin, ...]:
        """Return where the prices, odds and quotas are from that there are at this time, and of when."""
        ...

    def snapshot(self, now: datetime) -> OfferingsSnapshot:
        """Return what was refreshed last of the region, without the parts that are too old to count."""
        ...


class SnapshotStore(Protocol):
    """Where the refreshed offerings of the stack's region are kept."""

    def load_snapshot(self) -> OfferingsSnapshot | None:
        """Load the last one; None before the first refresh.

        Raises:
            PermanentError: it cannot be read.
            TransientError: throttled or unreachable.
        """
        ...

    def save_snapshot(self, snapshot: OfferingsSnapshot) -> None:
        """Keep it in place of the last one.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...


class InstanceTypeSource(Protocol):
    """What EC2 says of instance types."""

    def instance_types(self) -> Mapping[str, InstanceType]:
        """Return the region's types with accelerators; one that cannot be read is left out.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...


class ZoneSource(Protocol):
    """Where EC2 offers instance types."""

    def zones(self, instance_types: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the region's zones by type, of those of the types that it offers.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...


class ZoneScoreSource(Protocol):
    """EC2's odds of spot machines, zone by zone, as the command asks for them."""

    def zone_scores(self, instance_types: Iterable[str]) -> Mapping[str, int]:
        """Return zone → odds, 1 (hardly) to 10 (very likely), that one of these types can be launched there on spot.

        What is not known is not there: no error is raised.
        """
        ...


class RegionScoreSource(Protocol):
    """EC2's odds of spot machines in the whole region."""

    def region_score(self, instance_types: Sequence[str], vcpus: int) -> int | None:
        """Return the odds, 1 to 10, that so many vCPU of any of these types can be launched; None: EC2 gives none.

        Raises:
            PermanentError: EC2 refuses the question: its limit of new questions a day, or of capacity asked about.
            TransientError: throttled or unreachable.
        """
        ...


class QuotaSource(Protocol):
    """The account's quotas."""

    def vcpu_quotas(self, codes: Iterable[str]) -> Mapping[str, float]:
        """Return code → vCPU that may run at once; a quota that the region does not have is not there.

        Raises:
            PermanentError: the caller may not ask.
            TransientError: throttled or unreachable.
        """
        ...


class PriceListSource(Protocol):
    """List prices of the region, in USD, for Linux."""

    def on_demand_prices(self, instance_types: Iterable[str]) -> Mapping[str, float]:
        """Return prices per hour by type, of those of the types that have one.

        Raises:
            PermanentError: the prices are in another currency, or the caller may not ask.
            TransientError: throttled or unreachable.
        """
        ...

    def gp3_price(self) -> float:
        """Return the price of a gp3 volume per GiB and month.

        Raises:
            PermanentError: there is none in USD, or the caller may not ask.
            TransientError: throttled or unreachable.
        """
        ...
