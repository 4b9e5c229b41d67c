"""All offerings of a region by zone, and those of them that the stack can start as machines of its own."""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime

from relaunch.adapters.offerings.bundled import (
    has_prices_of_another_region,
    load_catalogue,
    load_interruption_bands,
    load_peaks,
)
from relaunch.adapters.offerings.current_snapshot import CurrentSnapshot
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.peaks import Peaks
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, PriceOrigin, SnapshotPart, offered_types
from relaunch.core.records import dataclass
from relaunch.ports import ANY_OPTION, DecisionLog, SpotPriceSource, TransientError


@dataclass(frozen=True, slots=True)
class OwnMachines:
    """What is offered of a region as machines of our own: the zones with a subnet, and the size of the root volume."""

    zones: frozenset[str]
    disk_gib: int


class RegionalOfferings:
    """Implements OfferingSource for a region: each type in each of its zones, with both purchase options.

    With `machines` they are machines of our own. For a spot price that is not in the snapshot, selection uses the
    on-demand price.
    """

    def __init__(self, snapshot: OfferingsSnapshot, machines: OwnMachines | None = None) -> None:
        self._snapshot = snapshot
        self._machines = machines
        self._catalogue = {**load_catalogue(), **snapshot.instance_types}
        self._is_priced_elsewhere = has_prices_of_another_region(snapshot)

    def offerings(
        self,
        now: datetime,  # noqa: ARG002 - required by the port
        options: Collection[PurchaseOption] = ANY_OPTION,  # noqa: ARG002 - required by the port
    ) -> tuple[Offering, ...]:
        return tuple(
            offering
            for name, zones in self._snapshot.zones.items()
            if name in self._catalogue
            for zone in zones
            if self._machines is None or zone in self._machines.zones
            for offering in self._in_zone(self._catalogue[name], zone)
        )

    def catalogue(self) -> Mapping[str, InstanceType]:
        return self._catalogue

    def peaks(self) -> Mapping[str, Peaks]:
        return load_peaks()

    def price_origins(self, now: datetime) -> tuple[PriceOrigin, ...]:  # noqa: ARG002 - required by the port
        scores = (SnapshotPart.PLACEMENT_SCORES,) if self._machines else ()
        parts = (SnapshotPart.ON_DEMAND_PRICES, SnapshotPart.SPOT_PRICES, *scores, SnapshotPart.QUOTAS)
        return tuple(
            PriceOrigin(part, self._snapshot.origins[part]) for part in parts if part in self._snapshot.origins
        )

    def snapshot(self, now: datetime) -> OfferingsSnapshot:  # noqa: ARG002 - required by the port
        return self._snapshot

    def _in_zone(self, row: InstanceType, zone: str) -> Iterator[Offering]:
        on_demand = self._snapshot.on_demand_usd_per_hour.get(row.name)
        spot = self._snapshot.spot_usd_per_hour.get(row.name, {}).get(zone)
        machines = self._machines
        bands = load_interruption_bands(self._snapshot.region)
        score = self._snapshot.placement_scores.get(row.name)
        for purchase, price, part in (
            (PurchaseOption.SPOT, spot, SnapshotPart.SPOT_PRICES),
            (PurchaseOption.ON_DEMAND, on_demand, SnapshotPart.ON_DEMAND_PRICES),
        ):
            # What spot costs here is not held against what on-demand costs in another region.
            is_comparable = purchase is not PurchaseOption.SPOT or price is None or not self._is_priced_elsewhere
            yield Offering(
                instance_type=row,
                purchase=purchase,
                zone=zone,
                price_usd_per_hour=price,
                price_at=self._snapshot.origins[part].at if price is not None else None,
                on_demand_usd_per_hour=on_demand if is_comparable else None,
                interruption_band=bands.get(row.name) if purchase is PurchaseOption.SPOT else None,
                placement_score=score if machines and purchase is PurchaseOption.SPOT else None,
                disk_gib=machines.disk_gib if machines else None,
                is_own_machine=machines is not None,
            )


class CurrentRegionalOfferings:
    """Implements OfferingSource for a region with the refreshed snapshot and current spot prices.

    With `machines` the offerings are machines of our own. If EC2 is unavailable, the spot prices are those of the
    snapshot, as the price origins show.
    """

    def __init__(
        self,
        snapshot: CurrentSnapshot,
        spot_prices: SpotPriceSource,
        log: DecisionLog,
        machines: OwnMachines | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._spot_prices = spot_prices
        self._log = log
        self._machines = machines

    def offerings(
        self,
        now: datetime,
        options: Collection[PurchaseOption] = ANY_OPTION,  # noqa: ARG002 - required by the port
    ) -> tuple[Offering, ...]:
        return self._at(now).offerings(now)

    def catalogue(self) -> Mapping[str, InstanceType]:
        return load_catalogue()

    def peaks(self) -> Mapping[str, Peaks]:
        return load_peaks()

    def price_origins(self, now: datetime) -> tuple[PriceOrigin, ...]:
        return self._at(now).price_origins(now)

    def snapshot(self, now: datetime) -> OfferingsSnapshot:
        return self._snapshot.at(now)

    def _at(self, now: datetime) -> RegionalOfferings:
        snapshot = self._snapshot.at(now)
        try:
            answered = self._spot_prices.spot_prices(offered_types(snapshot, load_catalogue()))
        except TransientError as error:
            self._log.decided("spot-prices-not-live", reason=str(error))
            return RegionalOfferings(snapshot, self._machines)
        prices: dict[str, dict[str, float]] = {}
        for (name, zone), (price, _) in answered.items():
            prices.setdefault(name, {})[zone] = price
        priced = snapshot.with_part(SnapshotPart.SPOT_PRICES, prices, Origin("EC2", now))
        return RegionalOfferings(priced, self._machines)
