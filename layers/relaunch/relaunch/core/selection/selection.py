"""Selection: named filters keep or reject offerings; those kept are ordered by expected cost, doubted ones later."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TypeVar

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import CapacityMemory, Offering
from relaunch.core.offerings.reservations import Reservation
from relaunch.core.offerings.spot_runs import ShortageRisks
from relaunch.core.records import dataclass
from relaunch.core.revisions.revision import Revision
from relaunch.core.selection.expected_cost import WorkAhead, cost_range_of, is_late_of, order_cost_of
from relaunch.core.selection.instance_type_filters import TYPE_FILTERS
from relaunch.core.selection.offering_filters import (
    GROUP_FILTERS,
    OFFERING_FILTERS,
    OfferingCriteria,
    SelectionLimits,
    derive_criteria,
)
from relaunch.core.selection.offering_table import OfferingGroup, OfferingTable, RankKey, rank_key
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.requirements import Requirements, derive_requirements

_NONE = timedelta(0)
FILTER_NAMES = tuple(name for name, _ in (*TYPE_FILTERS, *GROUP_FILTERS, *OFFERING_FILTERS))


@dataclass(frozen=True, slots=True)
class RejectedOffering:
    """An offering, the name of the first filter that rejected it, and the rejection."""

    offering: Offering
    filter_name: str
    rejection: Rejection


@dataclass(frozen=True)
class Selection:
    """The kept offerings, best first, and the rejected ones, those that passed the most filters first.

    `filter_counts` are (filter name, offerings before, offerings after) in the order of the filters. `work` is the work
    that the expected costs are for; None if the order is by price. `market_reason` is why the market policy of the job
    kept these; empty if none chose.
    """

    kept: tuple[Offering, ...]
    rejected: tuple[RejectedOffering, ...]
    filter_counts: tuple[tuple[str, int, int], ...]
    work: WorkAhead | None = None
    market_reason: str = ""

    @property
    def chosen(self) -> Offering | None:
        """Return the best offering, None if none was kept."""
        return self.kept[0] if self.kept else None

    @property
    def last_filter(self) -> str | None:
        """Return the name of the filter that rejected the last offering; None if one was kept or there were none."""
        emptied = [name for name, before, after in self.filter_counts if before and not after]
        return emptied[0] if emptied else None

    @property
    def is_permanent(self) -> bool:
        """Return whether no offering was kept and all rejections are permanent."""
        return self.chosen is None and all(each.rejection.is_permanent for each in self.rejected)

    @property
    def retry_at(self) -> datetime | None:
        """Return the earliest time at which a rejection ends.

        None if an offering was kept, or if only prices reject, which change at unknown times.
        """
        if self.chosen is not None:
            return None
        times = (each.rejection.retry_at for each in self.rejected)
        return min((retry_at for retry_at in times if retry_at is not None), default=None)

    @property
    def is_unready(self) -> bool:
        """Return whether nothing was kept, and all that may come back is avoided as no machine became ready there."""
        returning = [each.rejection for each in self.rejected if each.rejection.retry_at is not None]
        return self.chosen is None and bool(returning) and all(each.is_unready for each in returning)

    @property
    def nearest_rejection(self) -> RejectedOffering | None:
        """Return the offering rejected by the last filter with the least shortfall, the cheapest of equals.

        One whose rejection is not permanent comes before all others.
        """
        last = [each for each in self.rejected if each.filter_name == self.last_filter]
        return min(
            last,
            key=lambda each: (each.rejection.is_permanent, each.rejection.shortfall, *rank_key(each.offering, 0)),
            default=None,
        )


class _DeferredSelection(Selection):
    """A selection that finds the chosen offering first, and computes the table of all offerings on first access."""

    def __init__(self, filtering: "_Filtering") -> None:
        object.__setattr__(self, "_filtering", filtering)
        object.__setattr__(self, "work", filtering.work)

    _filtering: "_Filtering"

    @cached_property
    def chosen(self) -> Offering | None:
        return self._filtering.choose()

    @cached_property
    def kept(self) -> tuple[Offering, ...]:
        return self._table[0]

    @cached_property
    def rejected(self) -> tuple[RejectedOffering, ...]:
        return self._table[1]

    @cached_property
    def filter_counts(self) -> tuple[tuple[str, int, int], ...]:
        return _count_by_filter(len(self._filtering.offerings), self.rejected)

    @cached_property
    def _table(self) -> tuple[tuple[Offering, ...], tuple[RejectedOffering, ...]]:
        return self._filtering.filter_all()


def select(  # noqa: PLR0913 - all that a selection depends on
    definition: JobDefinition,
    revision: Revision | None,
    offerings: Sequence[Offering],
    memory: CapacityMemory,
    now: datetime,
    limits: SelectionLimits,
    *,
    left: float = 1.0,
    ran: timedelta = _NONE,
    machines: int | None = None,
) -> Selection:
    """Apply all filters to the offerings, and order those that are kept by expected cost of the share that is `left`.

    Those on which that may outlast `max_runtime`, of which `ran` is used up, come after all that end in time. Without
    an estimated duration the order is by price. An offering of unknown price, or on which the speed of the job is
    unknown, comes after all others that end in time, or of the rest. Among equals, a known price comes before an
    assumed one, a machine of our own before one of a capacity provider, then the higher placement score, more zones,
    and the name.
    A job of several nodes that keeps some of its machines needs so many `machines` at once, by default all. Without a
    revision, only the definition's requirements are checked. Several selections from one OfferingTable share its
    groups.
    """
    required = derive_requirements(definition, revision)
    criteria = derive_criteria(definition, required, dict(memory), now, limits, left=left, ran=ran, machines=machines)
    table = offerings if isinstance(offerings, OfferingTable) else OfferingTable(offerings)
    return _DeferredSelection(_Filtering(required, criteria, table))


_Filtered = tuple[str, Rejection]
_Criteria = TypeVar("_Criteria")
_Judged = TypeVar("_Judged")


class _Filtering:
    """Applies the group filters to each group of offerings, and the other filters to each offering."""

    def __init__(self, required: Requirements, criteria: OfferingCriteria, offerings: OfferingTable) -> None:
        self.criteria = criteria
        self.work = criteria.work
        self.offerings = offerings
        rejections = {each.name: _first_rejection(TYPE_FILTERS, required, each) for each in offerings.machines}
        self.groups = [
            (group, rejections[group[0].instance_type.name] or _first_rejection(GROUP_FILTERS, criteria, group[0]))
            for group in offerings.groups
        ]

    def choose(self) -> Offering | None:
        """Return the best offering, comparing only the best one of each group."""
        heads = [head for group, rejection in self.groups if rejection is None and (head := self._head(group))]
        return min(heads, key=self._rank_among(heads), default=None)

    def filter_all(self) -> tuple[tuple[Offering, ...], tuple[RejectedOffering, ...]]:
        """Return the kept and the rejected offerings."""
        kept: list[Offering] = []
        rejected: list[RejectedOffering] = []
        for group, group_rejection in self.groups:
            for offering in group:
                rejection = group_rejection or _first_rejection(OFFERING_FILTERS, self.criteria, offering)
                if rejection is None:
                    kept.append(offering)
                else:
                    rejected.append(RejectedOffering(offering, *rejection))
        return tuple(sorted(kept, key=self._rank_among(kept))), _rank_rejections(rejected)

    def _head(self, group: OfferingGroup) -> Offering | None:
        """Return the best offering of a group that passes all filters."""
        return next((each for each in group if not _first_rejection(OFFERING_FILTERS, self.criteria, each)), None)

    def _rank_among(self, compared: Iterable[Offering]) -> Callable[[Offering], tuple[bool, float, RankKey]]:
        costs = order_cost_of(self.work, compared)
        is_late = is_late_of(self.work)

        def rank(offering: Offering) -> tuple[bool, float, RankKey]:
            cost = costs(offering)
            key = self.offerings.rank(offering)
            # Without work the order is by price, the first element of `key`; with it, an unknown cost comes last.
            unknown = key[0] if self.work is None else math.inf
            return (is_late(offering), unknown if cost is None else cost, key)

        return rank


def explain_rejection(selection: Selection) -> str:
    """Return a sentence on why no offering was kept: the filter that rejected the last one, and the nearest one.

    Empty if an offering was kept.
    """
    if selection.kept:
        return ""
    nearest = selection.nearest_rejection
    name = selection.last_filter
    if nearest is None or name is None:
        return (
            "there is no offering at all: the stack names no capacity providers (CapacityProviders), and EC2 is not "
            "known to offer an accelerated instance type in a zone with a subnet for machines (MachineSubnets)"
        )
    verdict = "nothing satisfies this job" if selection.is_permanent else "nothing is available right now"
    removed = sum(each.filter_name == name for each in selection.rejected)
    of = f"the last {removed} of {len(selection.rejected)} offerings" if removed > 1 else "the last offering"
    return f"{verdict}: {name} removed {of}; the nearest was {nearest.offering.key}: {nearest.rejection.reason}"


def _first_rejection(
    filters: Iterable[tuple[str, Callable[[_Criteria, _Judged], Rejection | None]]],
    criteria: _Criteria,
    judged: _Judged,
) -> _Filtered | None:
    for name, check in filters:
        if rejection := check(criteria, judged):
            return name, rejection
    return None


def _rank_rejections(rejected: list[RejectedOffering]) -> tuple[RejectedOffering, ...]:
    """Order rejected offerings by how many filters they passed, most first."""
    places = {name: place for place, name in enumerate(FILTER_NAMES)}
    return tuple(sorted(rejected, key=lambda each: (-places[each.filter_name], *rank_key(each.offering, 0))))


def _count_by_filter(offered: int, rejected: Sequence[RejectedOffering]) -> tuple[tuple[str, int, int], ...]:
    removed = Counter(each.filter_name for each in rejected)
    counts = []
    left = offered
    for name in FILTER_NAMES:
        counts.append((name, left, left - removed[name]))
        left -= removed[name]
    return tuple(counts)


_COMPARABLE = 1.25
"""An offering is preferred to a doubted one if it costs at most so many times as much."""


def prefer_low_risk(selection: Selection, risks: ShortageRisks) -> Selection:
    """Return the selection with the least doubted of the offerings first that cost about as much as the best one.

    Costs are expected costs, without an estimated duration prices. An offering of unknown price is comparable to none.
    Nothing is rejected.
    """
    if not selection.kept or selection.kept[0].key not in risks:
        return selection
    costs = order_cost_of(selection.work, selection.kept)

    def cost(offering: Offering) -> float:
        usd = offering.expected_usd_per_hour if selection.work is None else costs(offering)
        return math.inf if usd is None else usd

    is_late = is_late_of(selection.work)
    limit = _COMPARABLE * cost(selection.kept[0])
    # The best one has no known price, or the job is expected never to finish on it: nothing compares with that.
    if math.isinf(limit):
        return selection
    of_first = is_late(selection.kept[0])
    comparable = [each for each in selection.kept if is_late(each) is of_first and cost(each) <= limit]
    first = min(comparable, key=lambda each: risks.get(each.key, 0))
    kept = (first, *(each for each in selection.kept if each is not first))
    return Selection(kept, selection.rejected, selection.filter_counts, selection.work)


def explain_rows(selection: Selection) -> tuple[Mapping[str, object], ...]:
    """Return all offerings as JSON-serializable rows, the kept ones first.

    Keys: `rank` (1 is the chosen one; None if rejected), `instance_type`, `purchase`, `zone`, `zones`,
    `capacity_provider`, `is_own_machine`, `reservation` (None, or `id`, `type`, `state`, `total`, `available`,
    `starts_at`, `ends_at`), `accelerator`, `accelerator_count`, `accelerator_memory_mib`, `vcpus`,
    `memory_mib`, `price_usd_per_hour` (None: unknown), `expected_usd_per_hour`, `price_at` (ISO 8601),
    `on_demand_usd_per_hour`, `saving` (fraction of the on-demand price), `expected_cost_usd` (until the job has
    finished; None without an estimated duration, a price or a speed, or if it would never finish),
    `least_cost_usd` (the same at the fast end of the speed), `speed` (None if it is unknown or there is no duration; or
    `slow`, `middle`, `fast`, `basis`, `jobs`, `save_seconds`: core.selection.speeds), `interruptions_per_hour`
    (expected, of all nodes of a job whose work is known; 0 for on-demand), `placement_score` (EC2's spot placement
    score, 1 to 10; None: unknown), `verdict` (`kept`, `rejected`), `filter`, `reason`, `is_permanent`.
    """
    costs = cost_range_of(selection.work)
    kept = [_row(each, rank, selection.work, costs(each)) for rank, each in enumerate(selection.kept, start=1)]
    rejected = (_rejected_row(each, selection.work, costs(each.offering)) for each in selection.rejected)
    return (*kept, *rejected)


def _row(
    offering: Offering, rank: int | None, work: WorkAhead | None, costs: tuple[float, float] | None
) -> dict[str, object]:
    machine = offering.instance_type
    return {
        "rank": rank,
        "instance_type": machine.name,
        "purchase": offering.purchase.value,
        "zone": offering.zone,
        "zones": list(offering.zones),
        "capacity_provider": offering.capacity_provider,
        "is_own_machine": offering.is_own_machine,
        "reservation": _reservation(offering.reservation),
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
        "expected_cost_usd": costs[1] if costs and math.isfinite(costs[1]) else None,
        "least_cost_usd": costs[0] if costs and math.isfinite(costs[0]) else None,
        "speed": _speed(work, machine),
        "interruptions_per_hour": offering.interruption_rate_of(1 if work is None else work.nodes),
        "placement_score": offering.placement_score,
        "verdict": "kept",
        "filter": None,
        "reason": "",
        "is_permanent": None,
    }


def _reservation(reservation: Reservation | None) -> dict[str, object] | None:
    if reservation is None:
        return None
    starts_at = reservation.starts_at
    ends_at = reservation.ends_at
    return {
        "id": reservation.reservation_id,
        "type": reservation.type.value,
        "state": reservation.state,
        "total": reservation.total,
        "available": reservation.available,
        "starts_at": starts_at.isoformat() if starts_at else None,
        "ends_at": ends_at.isoformat() if ends_at else None,
    }


def _speed(work: WorkAhead | None, machine: InstanceType) -> dict[str, object] | None:
    speed = None if work is None else work.speed_of(machine)
    if speed is None:
        return None
    ends = {"slow": speed.slow, "middle": speed.middle, "fast": speed.fast}
    return {**ends, "basis": speed.basis.value, "jobs": speed.jobs, "save_seconds": speed.save_seconds}


def _rejected_row(
    rejected: RejectedOffering, work: WorkAhead | None, costs: tuple[float, float] | None
) -> dict[str, object]:
    return _row(rejected.offering, None, work, costs) | {
        "verdict": "rejected",
        "filter": rejected.filter_name,
        "reason": rejected.rejection.reason,
        "is_permanent": rejected.rejection.is_permanent,
    }
