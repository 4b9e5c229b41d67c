"""Offerings in groups that most filters evaluate only once."""

import math
from collections import Counter, defaultdict
from functools import cached_property

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.placement_score import WORST_SCORE

RankKey = tuple[float, bool, int, int, str, str, str, str]


OfferingGroup = tuple[Offering, ...]
"""Offerings of equal instance type, purchase option, interruption rate and kind of provider, the cheapest first.

Within a group the order by expected cost is the order by price.
"""


class OfferingTable(tuple[Offering, ...]):
    """A tuple of offerings with cached groups, for several selections from the same offerings."""

    @cached_property
    def machines(self) -> tuple[InstanceType, ...]:
        """Return the distinct instance types."""
        return tuple({offering.instance_type.name: offering.instance_type for offering in self}.values())

    @cached_property
    def zone_counts(self) -> Counter[tuple[str, PurchaseOption]]:
        """Return the number of offerings of each type and purchase option, one per zone."""
        return Counter((offering.instance_type.name, offering.purchase) for offering in self)

    @cached_property
    def groups(self) -> tuple[OfferingGroup, ...]:
        """Return the groups."""
        found: dict[tuple[str, PurchaseOption, float, bool, int | None], list[Offering]] = defaultdict(list)
        for offering in self:
            name, rate = offering.instance_type.name, offering.interruption_rate
            found[name, offering.purchase, rate, offering.is_managed, offering.disk_gib].append(offering)
        return tuple(tuple(sorted(offerings, key=self.rank)) for offerings in found.values())

    def rank(self, offering: Offering) -> RankKey:
        """Return the sort key of an offering (see `rank_key`)."""
        return rank_key(offering, self.zone_counts[offering.instance_type.name, offering.purchase])


def rank_key(offering: Offering, zone_count: int) -> RankKey:
    """Return the sort key: price, a known before an assumed one, higher placement score, more zones, then names."""
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
