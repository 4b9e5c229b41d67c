"""Reads what is on offer, whether there is capacity for it, and what spot has cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import CapacityMemory, Offering, OfferingKey
from relaunch.core.offerings.snapshot import PriceOrigin
from relaunch.core.offerings.spot_runs import SpotPool, SpotRuns
from relaunch.ports import Dependencies, PortError
from relaunch_cli import exit_codes
from relaunch_cli.dashboard.kept import Kept
from relaunch_cli.errors import CommandError, did_you_mean, explain_error

HISTORY = timedelta(days=7)
"""How far back prices are read; EC2 has those of 90 days."""
_OFFERING_SECONDS = 60.0
_CAPACITY_SECONDS = 15.0
_HISTORY_SECONDS = 600.0
# One call each; a region has six at most.
_MOST_ZONES = 8


@dataclass(frozen=True)
class Market:
    """What jobs of the stack could use, and what launches and runs have shown of it."""

    offerings: Sequence[Offering]
    origins: Sequence[PriceOrigin]
    memory: CapacityMemory
    runs: Sequence[SpotRuns]
    pools: Sequence[SpotPool]


@dataclass(frozen=True)
class PriceHistory:
    """The spot prices of a type by zone, oldest first; `problem` says why there are none."""

    instance_type: InstanceType
    on_demand_usd_per_hour: float | None
    since: datetime
    until: datetime
    by_zone: Mapping[str, Sequence[tuple[datetime, float]]] = field(default_factory=dict)
    problem: str = ""


def read_market(deps: Dependencies, kept: Kept) -> Market:
    """Return the market: prices at most once a minute, what launches and runs have shown at most every 15 seconds.

    Raises:
        PortError: one of them could not be read.
    """
    offerings, origins = _read_offerings(deps, kept)
    memory, runs, pools = kept.get("capacity", _CAPACITY_SECONDS, lambda: deps.capacity.load_capacity(deps.clock.now()))
    return Market(offerings, origins, memory, runs, pools)


def read_prices(name: str, deps: Dependencies, kept: Kept) -> PriceHistory:
    """Return what a type that is on offer has cost on spot, at most every ten minutes.

    Raises:
        CommandError: it is not on offer.
        PortError: what is on offer could not be read.
    """
    offerings, _ = _read_offerings(deps, kept)
    of_type = [each for each in offerings if each.instance_type.name == name]
    if not of_type:
        known = {each.instance_type.name for each in offerings}
        hint = did_you_mean(name, known) or "the page of the market lists what jobs could use"
        raise CommandError(f"{name!r} is not on offer", hint, exit_codes.NOT_FOUND)
    return kept.get(("prices", name), _HISTORY_SECONDS, lambda: _read_prices(of_type, deps))


def _read_offerings(deps: Dependencies, kept: Kept) -> tuple[Sequence[Offering], Sequence[PriceOrigin]]:
    now = deps.clock.now()
    source = deps.offerings
    return kept.get("offerings", _OFFERING_SECONDS, lambda: (source.offerings(now), source.price_origins(now)))


def _read_prices(of_type: Sequence[Offering], deps: Dependencies) -> PriceHistory:
    machine = of_type[0].instance_type
    until = deps.clock.now()
    since = until - HISTORY
    on_demand = next((usd for each in of_type if (usd := each.on_demand_usd_per_hour) is not None), None)
    by_zone: dict[str, Sequence[tuple[datetime, float]]] = {}
    problem = ""
    try:
        for zone in _zones(of_type, deps)[:_MOST_ZONES]:
            prices = deps.fleet.spot_prices(OfferingKey(machine.name, zone, PurchaseOption.SPOT), since)
            if prices:
                by_zone[zone] = prices
    except PortError as error:
        explained = explain_error(error)
        problem = f"{explained.message}. {explained.hint}" if explained is not None else str(error)
    return PriceHistory(machine, on_demand, since, until, by_zone, problem)


def _zones(of_type: Sequence[Offering], deps: Dependencies) -> Sequence[str]:
    """Return the zones of a type: those of the region if it is not known which a group uses."""
    known = {zone for each in of_type for zone in (each.zone, *each.offered_zones, *each.usd_per_hour_by_zone) if zone}
    return sorted(known or deps.offerings.snapshot(deps.clock.now()).zones.get(of_type[0].instance_type.name, ()))
