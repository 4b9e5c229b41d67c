"""Offerings: instance types with zone, purchase option and price.

The expected interruption rate of a spot instance is that of its type. The EC2 Spot Instance Advisor publishes the share
of spot instances that were interrupted in the last month, in bands, by type and region. A rate per hour of running is
estimated from it: the highest band, in which nearly every accelerated type is in some region, is taken as the rate
measured in market traces; other bands are scaled down in proportion. Where the band of the region is not known, that of
the worst region is taken.

A spot placement score makes an offering cheaper or dearer. Sources: "Spot placement score" and "How Spot placement
score works" (EC2 User Guide), GetSpotPlacementScores (EC2 API Reference). A score is for a set of alternative instance
types, and is always low for fewer than three. The type of a capacity provider is therefore scored together with the
other sizes of its family, whose capacity is the most similar, for its own number of vCPUs, and for the region, since an
Auto Scaling group can use any of its zones.

Machines of our own may be of any type, and EC2 limits how many new questions an account may ask in 24 hours, by a
number that it does not publish: of them each family is asked about once, for as many vCPUs as its middle size has.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from datetime import datetime
from types import MappingProxyType

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering_key import OfferingKey as OfferingKey  # noqa: PLC0414 - of an offering, for all that have one
from relaunch.core.offerings.offering_key import has_purchase_options as has_purchase_options  # noqa: PLC0414
from relaunch.core.offerings.reservations import Reservation
from relaunch.core.records import dataclass

GP3_USD_PER_GIB_MONTH = 0.08
"""gp3 in us-east-1 (EBS price page, November 2026), used if the price in the region is unknown."""

MIN_TYPES = 3
"""With fewer instance types the score is always low (Limitations, "Spot placement score")."""

MAX_QUESTIONS = 24
"""Of families nothing is asked beyond so many questions; the same ones are asked each hour, so that none is new."""

WORST_SCORE = 1
BEST_SCORE = 10

# According to EC2, the pools with the most capacity have the lowest chance of interruption in the near term
# (SpotOptions, allocationStrategy, EC2 API Reference), and the score is about capacity. There are no published figures:
# half the interruption rate at the best score is an assumption.
_RATE_AT_BEST_SCORE = 0.5
# The same assumption, for a pool that no launch has seen lately: at the best score its spells end half as often as at
# the worst, and its outages twice as often; in the middle both end as usual.
_CAPACITY_BEST_TO_WORST = 2.0


@dataclass(frozen=True, slots=True)
class ScoreQuestion:
    """One call of GetSpotPlacementScores: how likely `vcpus` of these `sizes` can be had, and the types it is `about`.

    `name` is the type, or the family.
    """

    name: str
    sizes: tuple[str, ...]
    vcpus: int
    about: tuple[str, ...]


def score_questions(
    provided: Iterable[str], own: Iterable[str], known: Mapping[str, InstanceType], offered: Collection[str]
) -> tuple[ScoreQuestion, ...]:
    """Return what to ask: each type of a capacity provider by itself, the others that machines may have by family."""
    by_type = tuple(
        ScoreQuestion(name, sizes, known[name].vcpus, (name,))
        for name in sorted(set(provided) & known.keys())
        if name in (sizes := sizes_of_family(name, offered))
    )
    asked = {question.name for question in by_type}
    by_family = _of_families(sorted(set(own) & known.keys() - asked), known, offered)
    return (*by_type, *list(by_family)[: max(MAX_QUESTIONS - len(by_type), 0)])


def _of_families(
    names: Iterable[str], known: Mapping[str, InstanceType], offered: Collection[str]
) -> Iterator[ScoreQuestion]:
    families: dict[str, list[str]] = {}
    for name in names:
        if name in offered:
            families.setdefault(name.partition(".")[0], []).append(name)
    for family, types in families.items():
        vcpus = sorted(known[name].vcpus for name in types)
        sizes = sizes_of_family(types[0], offered)
        if sizes:
            yield ScoreQuestion(family, sizes, vcpus[(len(vcpus) - 1) // 2], tuple(types))


def sizes_of_family(instance_type: str, offered: Iterable[str]) -> tuple[str, ...]:
    """Return the offered types of the type's family, sorted; empty if there are too few of them for a score."""
    family = instance_type.partition(".")[0]
    sizes = tuple(sorted(name for name in offered if name.partition(".")[0] == family))
    return sizes if len(sizes) >= MIN_TYPES else ()


def interruption_rate_factor(score: int | None) -> float:
    """Return the factor for the usual interruption rate: 1 at the worst score or without a score."""
    if score is None:
        return 1.0
    return 1.0 - (1.0 - _RATE_AT_BEST_SCORE) * (score - WORST_SCORE) / (BEST_SCORE - WORST_SCORE)


def capacity_factor(score: int) -> float:
    """Return the factor for how often outages of a pool end; that for its spells is the inverse. 1 in the middle."""
    share = (score - WORST_SCORE) / (BEST_SCORE - WORST_SCORE)
    factor: float = _CAPACITY_BEST_TO_WORST ** (share - 0.5)
    return factor


# In the traces of "Can't Be Late" (NSDI 2024), 6 to 18 % of the instances ran for another 24 hours, and 12 hours of
# work without a checkpoint took 27; both correspond to 0.1. The traces are of one old, scarce type in 2023.
SCARCE_PER_HOUR = 0.1

# Midpoints of the advisor's bands in percent; the last band is "more than 20".
_BAND_MIDPOINTS = (2.5, 7.5, 12.5, 17.5, 30.0)
_RATES = tuple(SCARCE_PER_HOUR * midpoint / _BAND_MIDPOINTS[-1] for midpoint in _BAND_MIDPOINTS)

# The highest band of each type in any region (EC2 Spot Instance Advisor, 2025-06-28); others are in the last band.
_BAND_OF_TYPE = MappingProxyType(
    {
        "g5g.16xlarge": 1,
        "g5g.metal": 1,
        "trn1.2xlarge": 1,
        "g5g.8xlarge": 2,
        "trn1.32xlarge": 2,
        "g5g.xlarge": 3,
        "g6.16xlarge": 3,
        "gr6.8xlarge": 3,
        "inf2.24xlarge": 3,
        "p4de.24xlarge": 3,
        "trn1n.32xlarge": 3,
    }
)


_GANG_EXPONENT = 0.3
"""How the interruptions of several machines of a pool grow with their number: less than in proportion, as EC2 takes
many at once. The full gangs of the traces of "Can't Be Late" (NSDI 2024; V100, 2023) ended 1.0 to 2.0 times as often as
one machine was taken, at 4 and at 16 machines: exponents from 0 to 0.5."""


def hazard_of(nodes: int) -> float:
    """Return how many times as often one of several spot machines in a zone is interrupted as a single one is."""
    return float(nodes**_GANG_EXPONENT)


def estimated_interruptions_per_hour(instance_type: str, band: int | None = None) -> float:
    """Return the expected interruptions per hour of a spot instance; an unknown type has the highest rate.

    `band` is the advisor's for the type in the region, 0 to 4, None if unknown.
    """
    band = _BAND_OF_TYPE.get(instance_type) if band is None else band
    return SCARCE_PER_HOUR if band is None else _RATES[band]


@dataclass(frozen=True, slots=True)
class Offering:
    """An instance type in a zone with a purchase option, at a price in USD per hour.

    `zone` is None for capacity providers, whose Auto Scaling group chooses the zone; `usd_per_hour_by_zone` has then
    the prices that are known, of which the price is the highest; `offered_zones` are the zones that EC2 offers the type
    in, of which the group uses some or all. `price_usd_per_hour` is None if unknown; `price_at` is the
    time of the price. `on_demand_usd_per_hour` is the on-demand price of the same type. `is_managed` is whether the
    capacity provider is one of ECS Managed Instances. `is_own_machine`: Relaunch itself requests the instance from EC2
    Fleet, in `zone`. `disk_gib` is the size of the root volume, None if unknown.
    `interruptions_per_hour` is the expected rate for spot; None means the usual rate of the type, by its
    `interruption_band` in the region if that is known, which is less with a better spot placement score.
    `gang_rates` are those of several machines at once by their number, as far as such were seen
    (core.offerings.spot_runs).
    `placement_score` is EC2's, from 1 (very unlikely) to 10 (very likely): without a zone, and for a machine of our
    own, that of the type's family in the region (core.offerings.offering), else that of the spot types in the zone.
    Prices of ECS Managed Instances contain their fee (core.offerings.managed_instances).
    What is reserved has price 0 but for that, because it is paid for anyway: `reservation` is what a machine of our own
    is launched into, None for other purchase options, and for a capacity provider, whose reservations only ECS or its
    group knows: `reserved_until` is when they end, None if the settings do not say.
    """

    instance_type: InstanceType
    purchase: PurchaseOption
    zone: str | None = None
    price_usd_per_hour: float | None = None
    price_at: datetime | None = None
    on_demand_usd_per_hour: float | None = None
    capacity_provider: str | None = None
    usd_per_hour_by_zone: Mapping[str, float] = field(default_factory=dict, hash=False)
    offered_zones: tuple[str, ...] = ()
    interruptions_per_hour: float | None = None
    interruption_band: int | None = None
    placement_score: int | None = None
    is_managed: bool = False
    disk_gib: int | None = None
    is_own_machine: bool = False
    reservation: Reservation | None = None
    reserved_until: datetime | None = None
    gang_rates: tuple[tuple[int, float], ...] = ()

    @property
    def key(self) -> "OfferingKey":
        """Return the key of this offering."""
        return OfferingKey(self.instance_type.name, self.zone, self.purchase)

    @property
    def zones(self) -> tuple[str, ...]:
        """Return the zones whose prices are known, of an offering without a zone."""
        return tuple(sorted(self.usd_per_hour_by_zone))

    @property
    def expected_usd_per_hour(self) -> float | None:
        """Return the known price, else the on-demand price, else None.

        A spot price is never above the on-demand price.
        """
        if self.price_usd_per_hour is not None:
            return self.price_usd_per_hour
        return self.on_demand_usd_per_hour

    @property
    def interruption_rate(self) -> float:
        """Return the expected interruptions per hour, 0 for other than spot."""
        if self.purchase is not PurchaseOption.SPOT:
            return 0.0
        if self.interruptions_per_hour is not None:
            return self.interruptions_per_hour
        usual = estimated_interruptions_per_hour(self.instance_type.name, self.interruption_band)
        # The score of a zone is that of all requested types together, which says nothing about a scarce one among them.
        is_of_family = self.zone is None or self.is_own_machine
        return usual * interruption_rate_factor(self.placement_score) if is_of_family else usual

    def interruption_rate_of(self, nodes: int) -> float:
        """Return how often a job on so many of it is expected to be interrupted per hour, by any of them."""
        if nodes == 1:
            return self.interruption_rate
        seen = dict(self.gang_rates).get(nodes)
        return self.interruption_rate * hazard_of(nodes) if seen is None else seen

    @property
    def saving(self) -> float | None:
        """Return the saving as a fraction of the on-demand price.

        None if either price is unknown, and for what is reserved, whose price is paid elsewhere.
        """
        is_reserved = self.purchase is PurchaseOption.RESERVED
        if is_reserved or self.price_usd_per_hour is None or not self.on_demand_usd_per_hour:
            return None
        return 1 - self.price_usd_per_hour / self.on_demand_usd_per_hour

    @property
    def spot_ratio(self) -> float | None:
        """Return the spot price as a fraction of the on-demand price; None for others or if a price is unknown.

        Where a group chooses the zone it is that of the cheapest one: it is not known which others are used.
        """
        if self.purchase is not PurchaseOption.SPOT or (saving := self.saving) is None:
            return None
        if not self.usd_per_hour_by_zone or not self.on_demand_usd_per_hour:
            return 1 - saving
        return min(self.usd_per_hour_by_zone.values()) / self.on_demand_usd_per_hour


@dataclass(frozen=True, slots=True)
class CapacityFailure:
    """A recent launch that found no capacity for an offering, which is avoided until `until`.

    All jobs avoid it, or only the job that keeps the failure as its own.

    Each of `consecutive_failures` extends the time (core.offerings.capacity_memory). An instance of `capacity_provider`
    that registers later, with the `gpu_count` whole GPUs that the launch needed, ends it: `is_refuted`. Instance types
    with fewer than `vcpus` are not avoided: a quota without room for a large instance may have some for a small one.
    `is_shortage`: EC2 itself answered that it has no capacity, which holds for whoever asks for the same. `is_unready`:
    EC2 launched a machine, which is paid for, and it did not become ready.
    `is_queue`: the capacity provider has machines, and other tasks of the stack run on them. That says nothing of EC2's
    capacity, as a group at its maximum size asks EC2 for nothing, and ends when one of them is free. `machine_id` is
    the machine of our own that was of no use, where each counts once; once stored, those before it too, with blanks.
    """

    offering: OfferingKey
    reason: str
    at: datetime
    until: datetime
    consecutive_failures: int = 1
    capacity_provider: str = ""
    gpu_count: int = 0
    is_refuted: bool = False
    vcpus: int = 0
    is_shortage: bool = False
    is_queue: bool = False
    is_unready: bool = False
    machine_id: str = ""

    def is_avoided(self, now: datetime) -> bool:
        """Return whether its offering is avoided; one that is over at once is not, where another clock is behind."""
        return self.until > max(now, self.at)

    @property
    def key(self) -> OfferingKey:
        """Return the key under which the failure is remembered."""
        return remembered_key(self.offering, self.capacity_provider)


def remembered_key(offering: OfferingKey, capacity_provider: str) -> OfferingKey:
    """Return the key of an offering in the capacity memory: `g5.xlarge@name` if it is that of a capacity provider.

    Two providers of one type and purchase option are two offerings: their groups may be in other zones, and of another
    maximum size.
    """
    if not capacity_provider:
        return offering
    return replace(offering, instance_type=f"{offering.instance_type}@{capacity_provider}")


CapacityMemory = Mapping[OfferingKey, CapacityFailure]
