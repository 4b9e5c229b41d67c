"""One place of an instance type: what it costs there, and whether there is capacity."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.market.learning import PoolRecord, pool_of
from relaunch.core.offerings.capacity_memory import find_failures
from relaunch.core.offerings.offering import CapacityFailure, Offering
from relaunch.core.offerings.spot_runs import DOUBTED_FOR, KEPT_FOR, ShortageRisks, pool_hours, pool_time
from relaunch_cli.dashboard.market_reader import Market
from relaunch_cli.views.formatting import format_count, format_duration, format_percentage, format_price, join_zones

Pair = tuple[Offering, Offering]
"""An offering as it is usually, and with the interruption rate that was observed."""
_BANDS = ("less than 5 %", "5 to 10 %", "10 to 15 %", "15 to 20 %", "more than 20 %")
"""Of the EC2 Spot Instance Advisor: which share of spot instances was interrupted in the last month."""
_UNKNOWN_PRICE = float("inf")
# Of less than this was seen nothing speaks.
_LEAST_SEEN = 0.05


@dataclass(frozen=True)
class Facts:
    """What rows are made of."""

    market: Market
    risks: ShortageRisks
    now: datetime


@dataclass(frozen=True)
class Seen:
    """What a spot pool has shown: whether it had capacity when it was last tried, since when, and what it taught."""

    zone: str
    has_capacity: bool
    at: datetime
    since: datetime
    taught: str
    is_recent: bool


@dataclass(frozen=True)
class PoolRow:
    """A zone, or a capacity provider; `usd` is the lowest price that a job may expect to pay an hour."""

    where: str
    usd: float
    spot: str
    on_demand: str
    saving: str
    rate: str
    basis: Sequence[str]
    seen: Sequence[Seen]
    avoided: Sequence[tuple[str, CapacityFailure]]
    is_doubted: bool

    @property
    def is_short(self) -> bool:
        """Return whether EC2 had none when it was last asked, and may have none still."""
        return any(each.is_recent and not each.has_capacity for each in self.seen)


def type_link(name: str) -> str:
    """Return the address of the prices of an instance type."""
    return f"/market/{quote(name, safe='')}"


def pool_row(pairs: Iterable[Pair], facts: Facts) -> PoolRow:
    """Return the row of the offerings of one place, each of another purchase option."""
    by_purchase = {offering.purchase: (offering, rated) for offering, rated in pairs}
    spot = by_purchase.get(PurchaseOption.SPOT)
    any_of = next(iter(by_purchase.values()))[0]
    prices = (offering.expected_usd_per_hour for offering, _ in by_purchase.values())
    return PoolRow(
        _where(any_of),
        min((usd for usd in prices if usd is not None), default=_UNKNOWN_PRICE),
        _price(spot[0].price_usd_per_hour) if spot else "-",
        "reserved" if PurchaseOption.RESERVED in by_purchase else _price(any_of.on_demand_usd_per_hour),
        format_percentage(spot[0].saving) if spot else "",
        _rate(spot[1].interruption_rate) if spot else "",
        list(_basis(spot, facts)) if spot else (),
        [_seen(zone, record, facts.now) for zone, record in _records(spot[0], facts)] if spot else (),
        list(_avoided(by_purchase, facts)),
        spot is not None and spot[0].key in facts.risks,
    )


def _where(offering: Offering) -> str:
    if offering.reservation is not None:
        return f"{offering.reservation} in {offering.zone}, {offering.reservation.available} free"
    if not offering.capacity_provider:
        return offering.zone or "any zone"
    zones = offering.offered_zones or offering.zones
    return f"{offering.capacity_provider}{f' ({join_zones(zones)})' if zones else ''}"


def _price(usd: float | None) -> str:
    return f"${format_price(usd)}" if usd is not None else "?"


def _rate(per_hour: float) -> str:
    return f"every {format_duration(timedelta(hours=1 / per_hour))}" if per_hour > 0 else ""


def _basis(spot: Pair, facts: Facts) -> Iterable[str]:
    """Yield what the rate rests on: what runs of the stack have shown, and what is usual."""
    usual, _ = spot
    runs = [each for each in facts.market.runs if _is_of(each.offering.instance_type, each.offering.zone, usual)]
    runs = [each for each in runs if each.offering.purchase is PurchaseOption.SPOT]
    if runs:
        hours = sum(each.hours for each in runs)
        interruptions = sum(each.interruptions for each in runs)
        yield f"observed: {interruptions:g} in {hours:.1f} hours of the last {KEPT_FOR.days} days"
    band = usual.interruption_band
    share = f"{_BANDS[band]} a month in this region" if band is not None else "the worst region's share"
    score = f", placement score {usual.placement_score} of 10" if usual.placement_score else ""
    yield f"{'usual, ' + _rate(usual.interruption_rate) if runs else 'usual'}: {share}{score}"


def _is_of(instance_type: str, zone: str | None, offering: Offering) -> bool:
    return instance_type == offering.instance_type.name and offering.zone in {None, zone}


def _records(spot: Offering, facts: Facts) -> Iterable[tuple[str, PoolRecord]]:
    """Yield the records of the pools of an offering, by their zones; a capacity provider may use several."""
    for pool in facts.market.pools:
        key = pool.offering
        is_used = not spot.offered_zones or key.zone in {None, *spot.offered_zones}
        is_of_one = pool.nodes == 1 and _is_of(key.instance_type, key.zone, spot)
        if is_of_one and is_used and pool.record.has_capacity is not None:
            yield ("" if spot.zone else key.zone or ""), pool.record


def _seen(zone: str, record: PoolRecord, now: datetime) -> Seen:
    at = pool_time(record.seen_at)
    since = pool_time(record.state_since)
    return Seen(zone, bool(record.has_capacity), at, since, _taught(record, now), now - at < DOUBTED_FOR)


def _taught(record: PoolRecord, now: datetime) -> str:
    """Return how often spells of capacity and outages end there, compared with the usual; empty if little was seen."""
    pool = pool_of(record, 0.0, pool_hours(now))
    parts = []
    if max(record.spell_ends, record.spell_expected) >= _LEAST_SEEN:
        seen = format_count(round(record.spell_ends), "recent one")
        parts.append(f"lost {pool.spell_ends:.2f} times as often as usual, by {seen}")
    if max(record.outage_ends, record.outage_expected) >= _LEAST_SEEN:
        seen = format_count(round(record.outage_ends), "recent one")
        parts.append(f"outages end {pool.outage_ends:.2f} times as often as usual, by {seen}")
    return ", ".join(parts)


def _avoided(by_purchase: Mapping[PurchaseOption, Pair], facts: Facts) -> Iterable[tuple[str, CapacityFailure]]:
    """Yield what keeps launches away, and from which purchase options."""
    purchases: dict[tuple[str, datetime], list[str]] = {}
    found: dict[tuple[str, datetime], CapacityFailure] = {}
    for purchase, (offering, _) in by_purchase.items():
        failures = [each for each in find_failures(offering, facts.market.memory) if each.until > facts.now]
        if failures:
            failure = max(failures, key=lambda each: each.until)
            purchases.setdefault((failure.reason, failure.until), []).append(purchase.value)
            found[failure.reason, failure.until] = failure
    for key, failure in found.items():
        yield " and ".join(purchases[key]), failure
