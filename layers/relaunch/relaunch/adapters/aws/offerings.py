"""What can be launched on the stack's capacity providers: each names one instance type and one purchase option."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from relaunch.adapters.catalogue import load_catalogue, load_on_demand_prices
from relaunch.core.accelerator import PurchaseOption
from relaunch.core.catalogue import InstanceType
from relaunch.core.offering import Offering
from relaunch.ports import CapacityProviderOffer, DecisionLog, SpotPriceSource, TransientError


class CapacityProviderOfferings:
    """Offerings of capacity providers: without a zone, because the provider's Auto Scaling group chooses it.

    On-demand prices are the bundled ones. Spot costs at most what its dearest zone costs; where EC2 cannot be asked
    the spot price is unknown, and selection reckons with the on-demand price.
    """

    def __init__(
        self, providers: Sequence[CapacityProviderOffer], spot_prices: SpotPriceSource, log: DecisionLog
    ) -> None:
        self._providers = tuple(providers)
        self._spot_prices = spot_prices
        self._log = log

    def offerings(self, now: datetime) -> tuple[Offering, ...]:  # noqa: ARG002 - the port's; spot prices know the time
        spot = self._load_spot_prices()
        return tuple(self._offering(provider, spot) for provider in self._providers)

    def catalogue(self) -> Mapping[str, InstanceType]:
        return load_catalogue()

    def _offering(
        self, provider: CapacityProviderOffer, spot: Mapping[tuple[str, str], tuple[float, datetime]]
    ) -> Offering:
        reference = load_on_demand_prices()
        on_demand = reference.usd_per_hour.get(provider.instance_type)
        if provider.purchase is PurchaseOption.SPOT:
            price, price_at, zones = _dearest_zone(provider.instance_type, spot)
        else:
            price, price_at, zones = on_demand, reference.at if on_demand is not None else None, ()
        return Offering(
            instance_type=load_catalogue().get(provider.instance_type) or _unknown_type(provider.instance_type),
            purchase=provider.purchase,
            price_usd_per_hour=price,
            price_at=price_at,
            on_demand_usd_per_hour=on_demand,
            capacity_provider=provider.name,
            zones=zones,
        )

    def _load_spot_prices(self) -> Mapping[tuple[str, str], tuple[float, datetime]]:
        wanted = {each.instance_type for each in self._providers if each.purchase is PurchaseOption.SPOT}
        if not wanted:
            return {}
        try:
            return self._spot_prices.spot_prices(wanted)
        except TransientError as error:
            self._log.decided("spot-prices-unknown", reason=str(error))
            return {}


def _dearest_zone(
    instance_type: str, spot: Mapping[tuple[str, str], tuple[float, datetime]]
) -> tuple[float | None, datetime | None, tuple[str, ...]]:
    """Return the highest price of the type's zones, its time, and the zones; nothing where no price is known."""
    found = {zone: entry for (name, zone), entry in spot.items() if name == instance_type}
    if not found:
        return None, None, ()
    price, since = max(found.values())
    return price, since, tuple(sorted(found))


def _unknown_type(name: str) -> InstanceType:
    """Return a type that selection rejects and names, so that one mistyped provider does not hide the others."""
    return InstanceType(name, 0, 0, "", "", "", source="unknown")
