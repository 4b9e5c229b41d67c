"""How often outages and spells of a spot pool end, by their age.

Ends per hour of the eight series of October 2022 of skypilot-org/spot-traces (availability/1-node/aws-10-26-2022), the
data of "Can't Be Late" (NSDI 2024), by age group; a series that begins or ends within an outage or a spell counts for
the time that is known. `python -m policy hazards` computes them from a folder of series.
"""

import math

from relaunch.core.market.thresholds import AGE_EDGES

OUTAGE_ENDS_PER_HOUR = (3.81, 1.47, 1.03, 0.80, 0.34, 0.31, 0.16, 0.04)
SPELL_ENDS_PER_HOUR = (2.45, 1.48, 1.05, 0.62, 0.41, 0.24, 0.18, 0.08)


def expected_ends(ends_per_hour: tuple[float, ...], start: float, end: float) -> float:
    """Return how often a state would have ended between two of its ages, in hours, if it ended as usual."""
    groups = zip(ends_per_hour, AGE_EDGES, (*AGE_EDGES[1:], end), strict=True)
    return sum(ends * max(min(until, end) - max(since, start), 0.0) for ends, since, until in groups)


def expected_hours(ends_per_hour: tuple[float, ...], age: float, multiple: float, at_most: float) -> float:
    """Return how much longer a state of an age lasts on average, in hours, where no more than `at_most` counts.

    It ends `multiple` times as often as usual.
    """
    hours, lasting, end = 0.0, 1.0, age + at_most
    for ends, since, until in zip(ends_per_hour, AGE_EDGES, (*AGE_EDGES[1:], math.inf), strict=True):
        span = min(until, end) - max(since, age)
        if span > 0:
            ending, rate = -math.expm1(-ends * multiple * span), ends * multiple
            hours += lasting * ending / rate
            lasting *= 1 - ending
    return hours
