"""EC2's odds of a spot machine: what is asked of them for a capacity provider, and what they say.

Sources: "Spot placement score" and "How Spot placement score works" (EC2 User Guide), GetSpotPlacementScores (EC2 API
Reference). A score is for a set of types of which any will do. One or two types always score low whatever the market
is like, and so would a capacity provider's one type. It is therefore asked about together with the other sizes of its
family, whose market is the likest to its own, for as many vCPU as it has itself, and for the region: an Auto Scaling
group takes any of its zones.
"""

from collections.abc import Iterable

FEWEST_TYPES = 3
"""Of fewer types the score is always low (Limitations, "Spot placement score")."""

WORST_SCORE, BEST_SCORE = 1, 10

# EC2 takes the pools with the most capacity for those with the least chance of interruption in the near term
# (SpotOptions, allocationStrategy, EC2 API Reference), and a score is its word on capacity. It promises nothing of
# interruptions, nor are there figures: that the best market interrupts half as often as the worst is our choice, until
# it is measured.
_RATE_OF_THE_BEST = 0.5


def sizes_of_family(instance_type: str, offered: Iterable[str]) -> tuple[str, ...]:
    """Return the offered types of the type's family, sorted; nothing where they are too few for a score."""
    family = instance_type.partition(".")[0]
    sizes = tuple(sorted(name for name in offered if name.partition(".")[0] == family))
    return sizes if len(sizes) >= FEWEST_TYPES else ()


def share_of_usual_interruptions(score: int | None) -> float:
    """Return which share of the usual interruptions to reckon with: all at the worst score and at an unknown one."""
    if score is None:
        return 1.0
    return 1.0 - (1.0 - _RATE_OF_THE_BEST) * (score - WORST_SCORE) / (BEST_SCORE - WORST_SCORE)
