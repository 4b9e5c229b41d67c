"""The market: what jobs could use, what it costs, and whether there is capacity for it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from relaunch.core.offerings.capacity_memory import describe_key
from relaunch.core.offerings.instance_types import InstanceType, is_same_name
from relaunch.core.offerings.offering import CapacityFailure, Offering
from relaunch.core.offerings.spot_runs import find_shortage_risks, with_observed_rates
from relaunch_cli.dashboard.http_messages import Request
from relaunch_cli.dashboard.market_reader import Market
from relaunch_cli.dashboard.pages.pools import Facts, PoolRow, pool_row, type_link
from relaunch_cli.errors import CommandError, did_you_mean
from relaunch_cli.views.price_origins import describe_prices, stale_warning

_MOST_ROWS = 100
_MOST_FAILURES = 50


@dataclass(frozen=True)
class TypeRows:
    """An instance type with its places, the cheapest first."""

    machine: InstanceType
    link: str
    hardware: str
    rows: Sequence[PoolRow]

    @property
    def usd(self) -> float:
        """Return the lowest price of one of its accelerators in USD an hour."""
        return min(row.usd for row in self.rows) / max(self.machine.accelerator_count, 1)


@dataclass(frozen=True)
class ModelRows:
    """The types with one kind of accelerator, the cheapest for one of them first."""

    model: str
    types: Sequence[TypeRows]

    @property
    def usd(self) -> float:
        """Return the lowest price of one in USD an hour."""
        return self.types[0].usd


@dataclass(frozen=True)
class Avoided:
    """What all jobs avoid now; `failures` is how many launches in a row found nothing there."""

    what: str
    failure: CapacityFailure
    failures: int


def market_values(request: Request, market: Market, now: datetime) -> Mapping[str, object]:
    """Return the values of the template `market.html`.

    Raises:
        CommandError: no accelerator of this model is on offer.
    """
    model = request.parameter("model")
    name = request.parameter("type")
    usable = [each for each in market.offerings if each.instance_type.is_supported and each.instance_type.is_listed]
    models = sorted({each.instance_type.accelerator_model for each in usable})
    if model and not any(is_same_name(model, each) for each in models):
        hint = did_you_mean(model, models) or f"on offer are {', '.join(models) or 'none'}"
        raise CommandError(f"no accelerator {model!r} is on offer", hint)
    wanted = [each for each in usable if _matches(each.instance_type, model, name)]
    found = _by_model(wanted, market, now)
    shown, left_out = _cut(found)
    avoided = _avoided(market, now)
    return {
        "models": models,
        "chosen": next((each for each in models if is_same_name(model, each)), ""),
        "type_filter": name,
        "shown": shown,
        "left_out": left_out,
        "avoided": avoided[:_MOST_FAILURES],
        "avoided_more": len(avoided) - len(avoided[:_MOST_FAILURES]),
        "short": _short(found),
        "origins": describe_prices(market.origins, now),
        "stale": stale_warning(market.origins, now),
    }


def _matches(machine: InstanceType, model: str, name: str) -> bool:
    return (not model or is_same_name(model, machine.accelerator_model)) and name.lower() in machine.name


def _by_model(offerings: Sequence[Offering], market: Market, now: datetime) -> Sequence[ModelRows]:
    rated = with_observed_rates(offerings, market.runs, now)
    facts = Facts(market, find_shortage_risks(market.runs, now), now)
    by_type: dict[str, list[tuple[Offering, Offering]]] = {}
    for each in zip(offerings, rated, strict=True):
        by_type.setdefault(each[0].instance_type.name, []).append(each)
    by_model: dict[str, list[TypeRows]] = {}
    for pairs in by_type.values():
        machine = pairs[0][0].instance_type
        by_model.setdefault(machine.accelerator_model, []).append(_of_type(machine, pairs, facts))
    models = [ModelRows(model, sorted(types, key=lambda each: each.usd)) for model, types in by_model.items()]
    # Few jobs train on what serves inference only.
    return sorted(models, key=lambda each: (each.types[0].machine.is_for_inference, each.usd, each.model))


def _of_type(machine: InstanceType, pairs: Iterable[tuple[Offering, Offering]], facts: Facts) -> TypeRows:
    by_place: dict[tuple[object, ...], list[tuple[Offering, Offering]]] = {}
    for offering, rated in pairs:
        reserved = offering.reservation.reservation_id if offering.reservation else ""
        by_place.setdefault((offering.zone or "", offering.capacity_provider or "", reserved), []).append(
            (offering, rated)
        )
    rows = sorted((pool_row(each, facts) for each in by_place.values()), key=lambda row: (row.usd, row.where))
    memory = f"{machine.accelerator_memory_mib / 1024:.0f} GiB each, " if machine.accelerator_memory_mib else ""
    hardware = f"{machine.accelerator_count} × {machine.accelerator_model}, {memory}"  # noqa: RUF001 - as in prose
    return TypeRows(
        machine, type_link(machine.name), f"{hardware}{machine.vcpus} vCPU, {machine.memory_mib / 1024:g} GiB", rows
    )


def _cut(found: Iterable[ModelRows]) -> tuple[Sequence[ModelRows], int]:
    """Return as many whole types as fit, and how many types were left out."""
    shown: list[ModelRows] = []
    left = _MOST_ROWS
    left_out = 0
    for model in found:
        types = []
        for each in model.types:
            if left <= 0:
                left_out += 1
                continue
            left -= len(each.rows)
            types.append(each)
        if types:
            shown.append(ModelRows(model.model, types))
    return shown, left_out


def _short(found: Iterable[ModelRows]) -> Sequence[tuple[str, str]]:
    """Return the spot pools that had no capacity when they were last tried, with the pages of their types."""
    return [
        (f"{each.machine.name} in {row.where}", each.link)
        for model in found
        for each in model.types
        for row in each.rows
        if row.is_short
    ]


def _avoided(market: Market, now: datetime) -> Sequence[Avoided]:
    failures = [each for each in market.memory.values() if each.until > now]
    failures.sort(key=lambda each: (each.until, str(each.key)))
    return [Avoided(describe_key(each.key), each, each.consecutive_failures) for each in failures]
