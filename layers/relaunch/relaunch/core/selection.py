"""Selection: named filters keep or reject offerings with a reason; what is kept is ordered by expected price."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from relaunch.core.catalogue import InstanceType
from relaunch.core.definition import JobDefinition
from relaunch.core.fit import TYPE_FILTERS, Miss
from relaunch.core.need import Need, derive_need
from relaunch.core.offering import CapacityMemory, Offering
from relaunch.core.revision import Revision
from relaunch.core.terms import OFFERING_FILTERS, SelectionLimits, Terms, derive_terms

FILTER_NAMES = tuple(name for name, _ in (*TYPE_FILTERS, *OFFERING_FILTERS))


@dataclass(frozen=True, slots=True)
class Rejection:
    """An offering that was not kept: by which filter, and why in words for the user.

    `shortfall` is how far off it was, as a share of what is asked. `is_permanent`: waiting does not change it.
    `retry_at`: when it ends by itself, where that is known.
    """

    offering: Offering
    filter_name: str
    reason: str
    shortfall: float = 0.0
    is_permanent: bool = True
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """What was kept, best first, and everything that was rejected.

    `filter_counts` lists (filter name, kept before, kept after) in the order the filters ran: it tells which filter
    removed the last offering.
    """

    kept: tuple[Offering, ...]
    rejected: tuple[Rejection, ...]
    filter_counts: tuple[tuple[str, int, int], ...]

    @property
    def last_filter(self) -> str | None:
        """Return the filter that removed the last offering; None when one was kept or there was none at all."""
        emptied = [name for name, before, after in self.filter_counts if before and not after]
        return emptied[0] if emptied else None

    @property
    def is_permanent(self) -> bool:
        """Tell whether nothing was kept and waiting will not change that."""
        return not self.kept and all(rejection.is_permanent for rejection in self.rejected)

    @property
    def retry_at(self) -> datetime | None:
        """Return when the capacity memory first lets an offering go again.

        None when something was kept, and when only prices stand in the way: those change at times nobody knows.
        """
        times = [rejection.retry_at for rejection in self.rejected if rejection.retry_at is not None]
        return None if self.kept else min(times, default=None)

    @property
    def nearest_miss(self) -> Rejection | None:
        """Return, of those the last filter removed, the one that missed by least; the cheapest of equals."""
        last = [rejection for rejection in self.rejected if rejection.filter_name == self.last_filter]
        return min(last, key=lambda each: (each.shortfall, *_rank(each.offering, 0)), default=None)


def select(
    definition: JobDefinition,
    revision: Revision | None,
    offerings: Sequence[Offering],
    memory: CapacityMemory,
    now: datetime,
    limits: SelectionLimits,
) -> Selection:
    """Choose among offerings: every filter in turn, then by expected price.

    Equal prices: a known price before an assumed one, then the type with more zones, then by name. Without a revision
    (not yet pinned) only the definition is held against the machines.
    """
    need = derive_need(definition, revision)
    terms = derive_terms(definition, need, memory, now, limits)
    misses: dict[str, tuple[str, Miss] | None] = {}
    kept: list[Offering] = []
    rejected: list[Rejection] = []
    for offering in offerings:
        machine = offering.instance_type
        if machine.name not in misses:
            misses[machine.name] = _first_type_miss(need, machine)
        miss = misses[machine.name] or _first_offering_miss(terms, offering)
        if miss is None:
            kept.append(offering)
        else:
            rejected.append(_reject(offering, *miss))
    ranked = rank_offerings(kept)
    return Selection(ranked, _rank_rejections(rejected), _count_by_filter(len(offerings), rejected))


def rank_offerings(offerings: Iterable[Offering]) -> tuple[Offering, ...]:
    """Order offerings by expected price; the order is total, and the same whatever order they come in."""
    listed = list(offerings)
    found = Counter((each.instance_type.name, each.purchase) for each in listed)
    return tuple(sorted(listed, key=lambda each: _rank(each, found[each.instance_type.name, each.purchase])))


def explain_rejection(selection: Selection) -> str:
    """Say in one sentence why nothing was kept: which filter removed the last offering, and what came nearest.

    Empty when something was kept.
    """
    if selection.kept:
        return ""
    miss, name = selection.nearest_miss, selection.last_filter
    if miss is None or name is None:
        return "there is no offering at all: the stack names no capacity providers (CapacityProviders)"
    verdict = "nothing satisfies this job" if selection.is_permanent else "nothing is to be had right now"
    removed = sum(rejection.filter_name == name for rejection in selection.rejected)
    of = f"the last {removed} of {len(selection.rejected)} offerings" if removed > 1 else "the last offering"
    return f"{verdict}: {name} removed {of}; the nearest was {miss.offering.key}: {miss.reason}"


def explain_rows(selection: Selection) -> tuple[Mapping[str, object], ...]:
    """Return the whole table as JSON-ready rows, kept offerings first: the one form that is stored and printed.

    Keys: `rank` (1 is what was chosen; None when rejected), `instance_type`, `purchase`, `zone`, `zones`,
    `capacity_provider`, `accelerator`, `accelerator_count`, `accelerator_memory_mib`, `vcpus`, `memory_mib`,
    `price_usd_per_hour` (None: unknown), `expected_usd_per_hour`, `price_at` (ISO 8601), `on_demand_usd_per_hour`,
    `saving` (share of the on-demand price), `verdict` (`kept`, `rejected`), `filter`, `reason`, `is_permanent`.
    """
    kept = [_row(each, rank) for rank, each in enumerate(selection.kept, start=1)]
    return (*kept, *(_rejected_row(rejection) for rejection in selection.rejected))


def _first_type_miss(need: Need, machine: InstanceType) -> tuple[str, Miss] | None:
    for name, check in TYPE_FILTERS:
        if miss := check(need, machine):
            return name, miss
    return None


def _first_offering_miss(terms: Terms, offering: Offering) -> tuple[str, Miss] | None:
    for name, check in OFFERING_FILTERS:
        if miss := check(terms, offering):
            return name, miss
    return None


def _reject(offering: Offering, filter_name: str, miss: Miss) -> Rejection:
    return Rejection(offering, filter_name, miss.reason, miss.shortfall, miss.is_permanent, miss.retry_at)


def _rank(offering: Offering, zones_found: int) -> tuple[float, bool, int, str, str, str, str]:
    """Return what offerings are ordered by: price, price known, zones; the names make the order total."""
    price = offering.expected_usd_per_hour
    return (
        math.inf if price is None else price,
        offering.price_usd_per_hour is None,
        -(len(offering.zones) or zones_found),
        offering.instance_type.name,
        offering.purchase,
        offering.zone or "",
        offering.capacity_provider or "",
    )


def _rank_rejections(rejected: list[Rejection]) -> tuple[Rejection, ...]:
    """Order rejections so that those which came furthest are first."""
    return tuple(sorted(rejected, key=lambda each: (-FILTER_NAMES.index(each.filter_name), *_rank(each.offering, 0))))


def _count_by_filter(offered: int, rejected: list[Rejection]) -> tuple[tuple[str, int, int], ...]:
    removed = Counter(rejection.filter_name for rejection in rejected)
    counts, left = [], offered
    for name in FILTER_NAMES:
        counts.append((name, left, left - removed[name]))
        left -= removed[name]
    return tuple(counts)


def _row(offering: Offering, rank: int | None) -> dict[str, object]:
    machine = offering.instance_type
    return {
        "rank": rank,
        "instance_type": machine.name,
        "purchase": offering.purchase.value,
        "zone": offering.zone,
        "zones": list(offering.zones),
        "capacity_provider": offering.capacity_provider,
        "accelerator": machine.accelerator_model,
        "accelerator_count": machine.accelerator_count,
        "accelerator_memory_mib": machine.accelerator_memory_mib,
        "vcpus": machine.vcpus,
        "memory_mib": machine.memory_mib,
        "price_usd_per_hour": offering.price_usd_per_hour,
        "expected_usd_per_hour": offering.expected_usd_per_hour,
        "price_at": offering.price_at.isoformat() if offering.price_at else None,
        "on_demand_usd_per_hour": offering.on_demand_usd_per_hour,
        "saving": offering.saving,
        "verdict": "kept",
        "filter": None,
        "reason": "",
        "is_permanent": None,
    }


def _rejected_row(rejection: Rejection) -> dict[str, object]:
    verdict = {"verdict": "rejected", "filter": rejection.filter_name, "reason": rejection.reason}
    return _row(rejection.offering, None) | verdict | {"is_permanent": rejection.is_permanent}
