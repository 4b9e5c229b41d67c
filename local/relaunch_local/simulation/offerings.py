"""The offerings of the simulated account, with spot prices from EC2."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from relaunch.adapters.aws.ec2.reservations import Ec2Reservations
from relaunch.adapters.aws.ec2.spot_prices import Ec2SpotPrices
from relaunch.adapters.offerings.bundled import load_catalogue, load_peaks
from relaunch.adapters.offerings.combined import CombinedOfferings
from relaunch.adapters.offerings.current_snapshot import CurrentSnapshot
from relaunch.adapters.offerings.regional import CurrentRegionalOfferings, OwnMachines
from relaunch.adapters.offerings.reserved import ReservedOfferings
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.peaks import Peaks
from relaunch.core.offerings.quotas import quota_of
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, PriceOrigin, SnapshotPart
from relaunch.ports import (
    ANY_OPTION,
    CapacityProviderOffer,
    Clock,
    DecisionLog,
    OfferingSource,
    SnapshotSource,
    TransientError,
)
from relaunch_local.simulation.aws.template import REGION
from relaunch_local.simulation.region import zones_of
from relaunch_local.simulation.scenario import Scenario

_SNAPSHOT_AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SimulatedOfferings:
    """Implements OfferingSource: spot at the price of its most expensive zone, on-demand at a fixed price or none."""

    _providers: Sequence[CapacityProviderOffer]
    _spot_prices: Ec2SpotPrices
    _on_demand_usd_per_hour: Mapping[str, float]

    def offerings(
        self,
        now: datetime,
        options: Collection[PurchaseOption] = ANY_OPTION,  # noqa: ARG002 - the port's
    ) -> tuple[Offering, ...]:
        """Return every provider's offering at its current price, without a spot price if EC2 cannot be called."""
        names = {each.instance_type for each in self._providers if each.purchase is PurchaseOption.SPOT}
        try:
            spot = self._spot_prices.spot_prices(sorted(names)) if names else {}
        except TransientError:
            spot = {}
        return tuple(self._offering(each, spot, now) for each in self._providers)

    def catalogue(self) -> Mapping[str, InstanceType]:
        """Return the instance types."""
        return load_catalogue()

    def peaks(self) -> Mapping[str, Peaks]:
        """Return the published peaks."""
        return load_peaks()

    def price_origins(self, now: datetime) -> tuple[PriceOrigin, ...]:  # noqa: ARG002 - the port's
        """Return none: nothing is told of these prices."""
        return ()

    def snapshot(self, now: datetime) -> OfferingsSnapshot:  # noqa: ARG002 - the port's
        """Return an empty snapshot."""
        return OfferingsSnapshot(REGION)

    def _offering(
        self, provider: CapacityProviderOffer, spot: Mapping[tuple[str, str], tuple[float, datetime]], now: datetime
    ) -> Offering:
        on_demand = self._on_demand_usd_per_hour.get(provider.instance_type)
        is_spot = provider.purchase is PurchaseOption.SPOT
        prices = {zone: usd for (name, zone), (usd, _) in spot.items() if is_spot and name == provider.instance_type}
        return Offering(
            instance_type=load_catalogue()[provider.instance_type],
            purchase=provider.purchase,
            price_usd_per_hour=max(prices.values(), default=None) if is_spot else on_demand,
            price_at=now,
            on_demand_usd_per_hour=on_demand,
            capacity_provider=provider.name,
            usd_per_hour_by_zone=prices,
        )


@dataclass(frozen=True, slots=True)
class _GivenSnapshot:
    """Implements SnapshotSource with one snapshot, which is never refreshed."""

    _snapshot: OfferingsSnapshot

    def load_snapshot(self) -> OfferingsSnapshot:
        return self._snapshot


def own_and_provided(
    scenario: Scenario, ec2: Any, clock: Clock, log: DecisionLog, refreshed: SnapshotSource
) -> OfferingSource:
    """Return the offerings of a scenario: machines of our own, what is reserved, and those of the capacity providers.

    `refreshed` is the snapshot that the hourly refresh stores, for scenarios with one.
    """
    spot_prices = Ec2SpotPrices(ec2, clock)
    provided = SimulatedOfferings(scenario.providers, spot_prices, scenario.on_demand_usd_per_hour)
    machines = scenario.machines
    if not machines.types:
        return provided
    snapshots = refreshed if scenario.has_refreshes else _GivenSnapshot(first_snapshot(scenario))
    current = CurrentSnapshot(snapshots, REGION, log)
    own = OwnMachines(frozenset(machines.zones), machines.settings.disk_gib)
    source = CurrentRegionalOfferings(current, spot_prices, log, own)
    others: list[OfferingSource] = [provided] if scenario.providers else []
    if reservation_ids := machines.settings.reservation_ids:
        reservations = Ec2Reservations(ec2, clock)
        others.append(ReservedOfferings(reservation_ids, reservations, current, own, log))
    return CombinedOfferings(source, *others) if others else source


def first_snapshot(scenario: Scenario) -> OfferingsSnapshot:
    """Return the snapshot with which a run begins."""
    machines = scenario.machines
    snapshot = OfferingsSnapshot(REGION)
    sold_as = (PurchaseOption.SPOT, PurchaseOption.ON_DEMAND)
    quotas = {quota.code for name in machines.types for each in sold_as if (quota := quota_of(name, each))}
    # The bundled zones and prices of a region would fill what is missing.
    for part, content in (
        (SnapshotPart.INSTANCE_TYPES, {}),
        (SnapshotPart.ZONES, {name: tuple(zones) for name, zones in zones_of(scenario).items()}),
        (SnapshotPart.ON_DEMAND_PRICES, scenario.on_demand_usd_per_hour),
        (SnapshotPart.SPOT_PRICES, {}),
        (SnapshotPart.QUOTAS, {quota: float(machines.vcpu_quota) for quota in quotas}),
    ):
        snapshot = snapshot.with_part(part, content, Origin("the scenario", _SNAPSHOT_AT))
    return snapshot
