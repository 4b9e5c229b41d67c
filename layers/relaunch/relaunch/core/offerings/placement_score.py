"""Spot placement scores: the instance types to request a score for, and the effect of a score.

Sources: "Spot placement score" and "How Spot placement score works" (EC2 User Guide), GetSpotPlacementScores (EC2 API
Reference). A score is for a set of alternative instance types, and is always low for fewer than three. The type of a
capacity provider is therefore scored together with the other sizes of its family, whose capacity is the most similar,
for its own number of vCPUs, and for the region, since an Auto Scaling group can use any of its zones.
"""

from collections.abc import Iterable

MIN_TYPES = 3
"""With fewer instance types the score is always low (Limitations, "Spot placement score")."""

WORST_SCORE, BEST_SCORE = 1, 10

# According to EC2, the pools with the most capacity have the lowest chance of interruption in the near term
# (SpotOptions, allocationStrategy, EC2 API Reference), and the score is about capacity. There are no published figures:
# half the interruption rate at the best score is an assumption.
_RATE_AT_BEST_SCORE = 0.5


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
