"""Offerings with what selection asks of them again and again, read once: groups that most filters treat as one."""

import math
from collections import Counter, defaultdict
from functools import cached_property

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.placement_score import WORST_SCORE

RankKey = tuple[float, bool, int, int, str, str, str, str]


OfferingGroup = tuple[Offering, ...]
"""Offerings of one type by one purchase option and kind of provider, interrupted equally often; the cheapest first.

Among them the expected cost follows the price: this is their order by either.
"""


class OfferingTable(tuple[Offering, ...]):
    """A tuple of offerings that keeps its groups: made once, selected from as often as one likes."""

    @cached_property
    def machines(self) -> tuple[InstanceType, ...]:
        """Return each instance type once."""
        return tuple({offering.instance_type.name: offering.instance_type for offering in self}.values())

    @cached_property
    def zone_counts(self) -> Counter[tuple[str, PurchaseOption]]:
        """Count the offerings of each type by each purchase option: zones, where zones are chosen."""
        return Counter((offering.instance_type.name, offering.purchase) for offering in self)

    @cached_property
    def groups(self) -> tuple[OfferingGroup, ...]:
        """Return all offerings in groups."""
        found: dict[tuple[str, PurchaseOption, float, bool, int | None], list[Offering]] = defaultdict(list)
        for offering in self:
            name, rate = offering.instance_type.name, offering.interruption_rate
            found[name, offering.purchase, rate, offering.is_managed, offering.disk_gib].append(offering)
        return tuple(tuple(sorted(offerings, key=self.rank)) for offerings in found.values())

    def rank(self, offering: Offering) -> RankKey:
        """Return what offerings are ordered by: price, then what tells equal prices apart; no two are equal."""
        return rank_key(offering, self.zone_counts[offering.instance_type.name, offering.purchase])


def rank_key(offering: Offering, zone_count: int) -> RankKey:
    """Return the order by price: a known price before an assumed one, better odds, more zones; names make it total."""
    price, score = offering.expected_usd_per_hour, offering.placement_score
    return (
        math.inf if price is None else price,
        offering.price_usd_per_hour is None,
        -(WORST_SCORE if score is None else score),
        -(len(offering.zones) or zone_count),
        offering.instance_type.name,
        offering.purchase,
        offering.zone or "",
        offering.capacity_provider or "",
    )
