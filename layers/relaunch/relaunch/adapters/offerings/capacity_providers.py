"""Offerings of the stack's capacity providers, each with one instance type and one purchase option."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from relaunch.adapters.offerings.bundled import (
    has_prices_of_another_region,
    load_catalogue,
    load_interruption_bands,
    load_peaks,
    unknown_type,
)
from relaunch.adapters.offerings.current_snapshot import CurrentSnapshot
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.managed_instances import managed_fee_share
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.peaks import Peaks
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, PriceOrigin, SnapshotPart
from relaunch.ports import ANY_OPTION, CapacityProviderOffer, DecisionLog, SpotPriceSource, TransientError

ZonePrices = Mapping[str, tuple[float, datetime]]
"""Zone → (USD per hour, time of the price)."""


class CapacityProviderOfferings:
    """Implements OfferingSource for capacity providers, whose Auto Scaling group chooses the zone.

    On-demand prices and placement scores are those of the snapshot. The spot price is the current price of the most
    expensive zone of the group, or of the region if its zones are not known; if EC2 is unavailable, that of the
    snapshot; if that has none, selection uses the on-demand price. Prices of ECS Managed Instances contain their fee.
    """

    def __init__(
        self,
        providers: Sequence[CapacityProviderOffer],
        spot_prices: SpotPriceSource,
        snapshot: CurrentSnapshot,
        log: DecisionLog,
    ) -> None:
        self._providers = tuple(providers)
        self._spot_prices = spot_prices
        self._snapshot = snapshot
        self._log = log

    def offerings(
        self,
        now: datetime,
        options: Collection[PurchaseOption] = ANY_OPTION,  # noqa: ARG002 - required by the port
    ) -> tuple[Offering, ...]:
        snapshot = self._snapshot.at(now)
        known = {**load_catalogue(), **snapshot.instance_types}
        spot, _ = self._load_spot_prices(now)
        offerings = []
        for provider in self._providers:
            row = known.get(provider.instance_type) or unknown_type(provider.instance_type)
            offerings.append(_offering(provider, row, snapshot, spot.get(provider.instance_type, {})))
        return tuple(offerings)

    def catalogue(self) -> Mapping[str, InstanceType]:
        return load_catalogue()

    def peaks(self) -> Mapping[str, Peaks]:
        return load_peaks()

    def price_origins(self, now: datetime) -> tuple[PriceOrigin, ...]:
        origins = self._snapshot.at(now).origins
        _, spot = self._load_spot_prices(now)
        known = {SnapshotPart.ON_DEMAND_PRICES: origins.get(SnapshotPart.ON_DEMAND_PRICES)}
        if self._spot_types():
            known |= {
                SnapshotPart.SPOT_PRICES: spot,
                SnapshotPart.PLACEMENT_SCORES: origins.get(SnapshotPart.PLACEMENT_SCORES),
            }
        known[SnapshotPart.QUOTAS] = origins.get(SnapshotPart.QUOTAS)
        return tuple(PriceOrigin(part, origin) for part, origin in known.items() if origin is not None)

    def snapshot(self, now: datetime) -> OfferingsSnapshot:
        return self._snapshot.at(now)

    def _spot_types(self) -> set[str]:
        return {each.instance_type for each in self._providers if each.purchase is PurchaseOption.SPOT}

    def _load_spot_prices(self, now: datetime) -> tuple[Mapping[str, ZonePrices], Origin | None]:
        """Return spot prices by type, and their origin."""
        wanted = self._spot_types()
        if not wanted:
            return {}, None
        try:
            answered = self._spot_prices.spot_prices(wanted)
        except TransientError as error:
            self._log.decided("spot-prices-not-live", reason=str(error))
            return _stored_spot_prices(self._snapshot.at(now), wanted)
        prices: dict[str, dict[str, tuple[float, datetime]]] = {}
        for (name, zone), entry in answered.items():
            prices.setdefault(name, {})[zone] = entry
        return prices, Origin("EC2", now)


def _stored_spot_prices(
    snapshot: OfferingsSnapshot, wanted: set[str]
) -> tuple[Mapping[str, ZonePrices], Origin | None]:
    origin = snapshot.origins.get(SnapshotPart.SPOT_PRICES)
    if origin is None:
        return {}, None
    stored = snapshot.spot_usd_per_hour
    prices = {name: {zone: (price, origin.at) for zone, price in stored.get(name, {}).items()} for name in wanted}
    return prices, origin


def _offering(
    provider: CapacityProviderOffer, row: InstanceType, snapshot: OfferingsSnapshot, spot: ZonePrices
) -> Offering:
    listed = snapshot.on_demand_usd_per_hour.get(provider.instance_type)
    fee = (listed or 0.0) * managed_fee_share(provider.instance_type) if provider.is_managed else 0.0
    on_demand = listed + fee if listed is not None else None
    used = {f"{snapshot.region}{end}" for end in provider.zones}
    by_zone = {zone: (usd + fee, at) for zone, (usd, at) in spot.items() if not used or zone in used}
    is_spot = provider.purchase is PurchaseOption.SPOT
    if is_spot:
        price, price_at = max(by_zone.values()) if by_zone else (None, None)
    elif provider.purchase is PurchaseOption.RESERVED:
        price = fee
        price_at = None
    else:
        price = on_demand
        price_at = snapshot.origins[SnapshotPart.ON_DEMAND_PRICES].at if on_demand is not None else None
    return Offering(
        instance_type=row,
        purchase=provider.purchase,
        price_usd_per_hour=price,
        price_at=price_at,
        # As for machines of our own (RegionalOfferings).
        on_demand_usd_per_hour=None if by_zone and is_spot and has_prices_of_another_region(snapshot) else on_demand,
        capacity_provider=provider.name,
        usd_per_hour_by_zone={zone: usd for zone, (usd, _) in by_zone.items()} if is_spot else {},
        offered_zones=tuple(
            zone for zone in sorted(snapshot.zones.get(provider.instance_type, ())) if not used or zone in used
        ),
        interruption_band=load_interruption_bands(snapshot.region).get(row.name) if is_spot else None,
        placement_score=snapshot.placement_scores.get(provider.instance_type) if is_spot else None,
        is_managed=provider.is_managed,
        disk_gib=provider.disk_gib,
        reserved_until=provider.until,
    )
