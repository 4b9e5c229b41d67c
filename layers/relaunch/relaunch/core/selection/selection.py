"""Selection: named filters keep or reject offerings with a reason; what is kept is ordered by expected cost."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import CapacityMemory, Offering
from relaunch.core.revisions.revision import Revision
from relaunch.core.selection.expected_cost import WorkAhead, cost_of, derive_work
from relaunch.core.selection.instance_type_filters import TYPE_FILTERS
from relaunch.core.selection.offering_filters import (
    GROUP_FILTERS,
    OFFERING_FILTERS,
    OfferingCriteria,
    OfferingFilter,
    SelectionLimits,
    derive_criteria,
)
from relaunch.core.selection.offering_table import OfferingGroup, OfferingTable, RankKey, rank_key
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.requirements import Requirements, derive_requirements

FILTER_NAMES = tuple(name for name, _ in (*TYPE_FILTERS, *GROUP_FILTERS, *OFFERING_FILTERS))


@dataclass(frozen=True, slots=True)
class RejectedOffering:
    """An offering, the name of the first filter that rejected it, and the rejection."""

    offering: Offering
    filter_name: str
    rejection: Rejection


@dataclass(frozen=True)
class Selection:
    """What was kept, best first, and everything that was rejected, furthest come first.

    `filter_counts` lists (filter name, kept before, kept after) in the order the filters ran: it tells which filter
    removed the last offering. `work` is what the order reckons with; None: the order is that of prices.
    """

    kept: tuple[Offering, ...]
    rejected: tuple[RejectedOffering, ...]
    filter_counts: tuple[tuple[str, int, int], ...]
    work: WorkAhead | None = None

    @property
    def chosen(self) -> Offering | None:
        """Return the best offering, None when nothing was kept."""
        return self.kept[0] if self.kept else None

    @property
    def last_filter(self) -> str | None:
        """Return the filter that removed the last offering; None when one was kept or there was none at all."""
        emptied = [name for name, before, after in self.filter_counts if before and not after]
        return emptied[0] if emptied else None

    @property
    def is_permanent(self) -> bool:
        """Tell whether nothing was kept and waiting will not change that."""
        return self.chosen is None and all(each.rejection.is_permanent for each in self.rejected)

    @property
    def retry_at(self) -> datetime | None:
        """Return when the first offering may go again: the capacity memory lets it, or a quota has room.

        None when something was kept, and when only prices stand in the way: those change at times nobody knows.
        """
        if self.chosen is not None:
            return None
        times = (each.rejection.retry_at for each in self.rejected)
        return min((retry_at for retry_at in times if retry_at is not None), default=None)

    @property
    def nearest_rejection(self) -> RejectedOffering | None:
        """Return, of those the last filter removed, the one that missed by least; the cheapest of equals.

        One that waiting may help is nearer than any other.
        """
        last = [each for each in self.rejected if each.filter_name == self.last_filter]
        return min(
            last,
            key=lambda each: (each.rejection.is_permanent, each.rejection.shortfall, *rank_key(each.offering, 0)),
            default=None,
        )


class _DeferredSelection(Selection):
    """A selection that knows what was chosen, and makes the whole table when it is asked for."""

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
        return self._filtering.sift()


def select(
    definition: JobDefinition,
    revision: Revision | None,
    offerings: Sequence[Offering],
    memory: CapacityMemory,
    now: datetime,
    limits: SelectionLimits,
) -> Selection:
    """Choose among offerings: every filter in turn, then by the expected cost to finish.

    Without an estimated duration the order is that of prices. Equal ones: a known price before an assumed one, better
    odds of a launch, more zones, then by name. Without a revision (not yet pinned) only the definition is held against
    the machines. Selecting several times from an OfferingTable saves the reading of the offerings; the table of kept
    and rejected is made when it is asked for.
    """
    required = derive_requirements(definition, revision)
    criteria = derive_criteria(definition, required, dict(memory), now, limits)
    table = offerings if isinstance(offerings, OfferingTable) else OfferingTable(offerings)
    return _DeferredSelection(
        _Filtering(required, criteria, derive_work(definition, limits.gp3_usd_per_gib_month), table)
    )


_Filtered = tuple[str, Rejection]


class _Filtering:
    """Holds every group of offerings against the filters that judge it as one; the others judge one by one."""

    def __init__(
        self, required: Requirements, criteria: OfferingCriteria, work: WorkAhead | None, offerings: OfferingTable
    ) -> None:
        self.criteria, self.work, self.offerings = criteria, work, offerings
        self._cost = cost_of(work)
        rejections = {machine.name: _first_type_rejection(required, machine) for machine in offerings.machines}
        self.groups = [
            (group, rejections[group[0].instance_type.name] or _first_rejection(GROUP_FILTERS, criteria, group[0]))
            for group in offerings.groups
        ]

    def choose(self) -> Offering | None:
        """Return the best offering, which is the best of one group: within a group the order is known already."""
        heads = (self._head(group) for group, rejection in self.groups if rejection is None)
        return min((head for head in heads if head is not None), key=self._rank, default=None)

    def sift(self) -> tuple[tuple[Offering, ...], tuple[RejectedOffering, ...]]:
        """Return every offering, as kept or as rejected."""
        kept: list[Offering] = []
        rejected: list[RejectedOffering] = []
        for group, group_rejection in self.groups:
            for offering in group:
                rejection = group_rejection or _first_rejection(OFFERING_FILTERS, self.criteria, offering)
                if rejection is None:
                    kept.append(offering)
                else:
                    rejected.append(RejectedOffering(offering, *rejection))
        return tuple(sorted(kept, key=self._rank)), _rank_rejections(rejected)

    def _head(self, group: OfferingGroup) -> Offering | None:
        """Return the best offering of a group that passes."""
        cheapest_usd_per_hour = group[0].expected_usd_per_hour
        if cheapest_usd_per_hour is None or cheapest_usd_per_hour > self.criteria.price_cap:
            return None
        return next((each for each in group if not _first_rejection(OFFERING_FILTERS, self.criteria, each)), None)

    def _rank(self, offering: Offering) -> tuple[float, RankKey]:
        cost, rank = self._cost(offering), self.offerings.rank(offering)
        # The price comes first in `rank`: it is the measure where there is no work to reckon with.
        return (rank[0] if cost is None else cost, rank)


def explain_rejection(selection: Selection) -> str:
    """Say in one sentence why nothing was kept: which filter removed the last offering, and what came nearest.

    Empty when something was kept.
    """
    if selection.kept:
        return ""
    nearest, name = selection.nearest_rejection, selection.last_filter
    if nearest is None or name is None:
        return "there is no offering at all: the stack names no capacity providers (CapacityProviders)"
    verdict = "nothing satisfies this job" if selection.is_permanent else "nothing is to be had right now"
    removed = sum(each.filter_name == name for each in selection.rejected)
    of = f"the last {removed} of {len(selection.rejected)} offerings" if removed > 1 else "the last offering"
    return f"{verdict}: {name} removed {of}; the nearest was {nearest.offering.key}: {nearest.rejection.reason}"


def _first_type_rejection(required: Requirements, machine: InstanceType) -> _Filtered | None:
    for name, check in TYPE_FILTERS:
        if rejection := check(required, machine):
            return name, rejection
    return None


def _first_rejection(
    filters: Sequence[tuple[str, OfferingFilter]], criteria: OfferingCriteria, offering: Offering
) -> _Filtered | None:
    for name, check in filters:
        if rejection := check(criteria, offering):
            return name, rejection
    return None


def _rank_rejections(rejected: list[RejectedOffering]) -> tuple[RejectedOffering, ...]:
    """Order rejections so that those which came furthest are first."""
    places = {name: place for place, name in enumerate(FILTER_NAMES)}
    return tuple(sorted(rejected, key=lambda each: (-places[each.filter_name], *rank_key(each.offering, 0))))


def _count_by_filter(offered: int, rejected: Sequence[RejectedOffering]) -> tuple[tuple[str, int, int], ...]:
    removed = Counter(each.filter_name for each in rejected)
    counts, left = [], offered
    for name in FILTER_NAMES:
        counts.append((name, left, left - removed[name]))
        left -= removed[name]
    return tuple(counts)
