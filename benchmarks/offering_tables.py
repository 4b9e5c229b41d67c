"""All bundled offerings: each instance type in each zone of each region, spot and on-demand."""

from functools import cache

from relaunch.adapters.offerings.bundled import bundled_snapshot, known_regions, load_catalogue
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.offering import Offering
from relaunch.core.selection.offering_table import OfferingTable

# Spot prices are not bundled: these are varying shares of the on-demand price.
_LEAST_SHARE = 0.3
_SHARES = 50
_STEP = 0.012


@cache
def all_offerings() -> OfferingTable:
    """Return all offerings as a table for repeated selections."""
    catalogue = load_catalogue()
    rows = [
        (name, zone, snapshot.on_demand_usd_per_hour.get(name))
        for snapshot in map(bundled_snapshot, known_regions())
        for name, zones in snapshot.zones.items()
        for zone in zones
    ]
    return OfferingTable(
        Offering(
            instance_type=catalogue[name],
            purchase=purchase,
            zone=zone,
            price_usd_per_hour=_price(on_demand, purchase, number),
            on_demand_usd_per_hour=on_demand,
        )
        for number, (name, zone, on_demand) in enumerate(rows)
        for purchase in (PurchaseOption.SPOT, PurchaseOption.ON_DEMAND)
    )


def _price(on_demand: float | None, purchase: PurchaseOption, number: int) -> float | None:
    if on_demand is None or purchase is PurchaseOption.ON_DEMAND:
        return on_demand
    return round(on_demand * (_LEAST_SHARE + number % _SHARES * _STEP), 4)
