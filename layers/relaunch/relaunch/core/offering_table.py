"""Offerings with what selection asks of them again and again, read once: groups that most filters treat as one."""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property

from relaunch.core.accelerator import PurchaseOption
from relaunch.core.catalogue import InstanceType
from relaunch.core.offering import Offering

# Between the odds that EC2 calls good and bad: an offering without a score is neither preferred nor put back.
_UNKNOWN_SCORE = 5

RankKey = tuple[float, bool, int, int, str, str, str, str]


@dataclass(frozen=True, slots=True)
class OfferingGroup:
    """The offerings of one type by one purchase option and kind of provider that are interrupted equally often.

    `ranked` begins with the cheapest; among them the expected cost follows the price, so that this is their order by
    either. `is_priced` tells whether every one has a price to reckon with; `lowest_usd_per_hour` and
    `highest_usd_per_hour` are those of the priced ones, `highest_spot_ratio` the greatest share of the on-demand price.
    """

    machine: InstanceType
    purchase: PurchaseOption
    interruption_rate: float
    ranked: tuple[Offering, ...]
    is_priced: bool
    lowest_usd_per_hour: float
    highest_usd_per_hour: float
    highest_spot_ratio: float


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
        found: dict[tuple[str, PurchaseOption, float, bool], list[Offering]] = defaultdict(list)
        for offering in self:
            name, rate = offering.instance_type.name, offering.interruption_rate
            found[name, offering.purchase, rate, offering.is_managed].append(offering)
        return tuple(self._group(offerings, rate) for (_, _, rate, _), offerings in found.items())

    def rank(self, offering: Offering) -> RankKey:
        """Return what offerings are ordered by: price, then what tells equal prices apart; no two are equal."""
        return rank_key(offering, self.zone_counts[offering.instance_type.name, offering.purchase])

    def _group(self, offerings: list[Offering], rate: float) -> OfferingGroup:
        prices = [each.expected_usd_per_hour for each in offerings]
        known = [price for price in prices if price is not None]
        ratios = [ratio for each in offerings if (ratio := each.spot_ratio) is not None]
        return OfferingGroup(
            machine=offerings[0].instance_type,
            purchase=offerings[0].purchase,
            interruption_rate=rate,
            ranked=tuple(sorted(offerings, key=self.rank)),
            is_priced=len(known) == len(prices),
            lowest_usd_per_hour=min(known, default=math.inf),
            highest_usd_per_hour=max(known, default=math.inf),
            highest_spot_ratio=max(ratios, default=0.0),
        )


def rank_key(offering: Offering, zone_count: int) -> RankKey:
    """Return the order by price: a known price before an assumed one, better odds, more zones; names make it total."""
    price, score = offering.expected_usd_per_hour, offering.placement_score
    return (
        math.inf if price is None else price,
        offering.price_usd_per_hour is None,
        -(_UNKNOWN_SCORE if score is None else score),
        -(len(offering.zones) or zone_count),
        offering.instance_type.name,
        offering.purchase,
        offering.zone or "",
        offering.capacity_provider or "",
    )
