"""Offerings in groups that most filters evaluate only once."""

import math
from collections import Counter, defaultdict
from functools import cached_property

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import WORST_SCORE, Offering

RankKey = tuple[float, bool, bool, int, int, str, str, str, str, float]


OfferingGroup = tuple[Offering, ...]
"""Offerings of equal instance type, purchase option, interruption rates and kind of provider, the cheapest first.

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
        found: dict[tuple[object, ...], list[Offering]] = defaultdict(list)
        for each in self:
            kind = each.is_own_machine, each.is_managed, each.disk_gib
            rates = each.interruption_rate, each.gang_rates
            found[each.instance_type.name, each.purchase, rates, kind].append(each)
        return tuple(tuple(sorted(offerings, key=self.rank)) for offerings in found.values())

    def rank(self, offering: Offering) -> RankKey:
        """Return the sort key of an offering (see `rank_key`)."""
        return rank_key(offering, self.zone_counts[offering.instance_type.name, offering.purchase])


def rank_key(offering: Offering, zone_count: int) -> RankKey:
    """Return the sort key.

    Price, a known before an assumed one, a machine of our own before one of a capacity provider, higher placement
    score, more zones, then names; of reservations for the same, the one that lasts longer.
    """
    price = offering.expected_usd_per_hour
    score = offering.placement_score
    return (
        math.inf if price is None else price,
        offering.price_usd_per_hour is None,
        not offering.is_own_machine,
        -(WORST_SCORE if score is None else score),
        -(len(offering.zones) or zone_count),
        offering.instance_type.name,
        offering.purchase,
        offering.zone or "",
        offering.capacity_provider or "",
        -_seconds_usable(offering),
    )


def _seconds_usable(offering: Offering) -> float:
    """Return until when the reservation is usable, in seconds since 1970; 0 without one."""
    if offering.reservation is None:
        return 0.0
    until = offering.reservation.usable_until
    return math.inf if until is None else until.timestamp()
