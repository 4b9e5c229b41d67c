"""Spot placement scores: the instance types to request a score for, and the effect of a score.

Sources: "Spot placement score" and "How Spot placement score works" (EC2 User Guide), GetSpotPlacementScores (EC2 API
Reference). A score is for a set of alternative instance types, and is always low for fewer than three. The type of a
capacity provider is therefore scored together with the other sizes of its family, whose capacity is the most similar,
for its own number of vCPUs, and for the region, since an Auto Scaling group can use any of its zones.

Machines of our own may be of any type, and EC2 limits how many new questions an account may ask in 24 hours, by a
number that it does not publish: of them each family is asked about once, for as many vCPUs as its middle size has.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from relaunch.core.offerings.instance_types import InstanceType

MIN_TYPES = 3
"""With fewer instance types the score is always low (Limitations, "Spot placement score")."""

MAX_QUESTIONS = 24
"""Of families nothing is asked beyond so many questions; the same ones are asked each hour, so that none is new."""

WORST_SCORE, BEST_SCORE = 1, 10

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
