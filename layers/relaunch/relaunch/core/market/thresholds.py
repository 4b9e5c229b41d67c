"""The thresholds of the policy `cheapest`: how much time a job must have to spare to wait, or to leave on-demand.

They are made offline by a dynamic programme (policy/, docs/market-policy.md), for a grid of overheads, of ratios of
the on-demand price to the spot price, of how often outages and spells end compared with the usual, of the work left,
and of ages. Between the points of the grid the codes are interpolated linearly in the logarithms of the first five.

How often outages and spells of a spot pool end depends on their age: the ends per hour are those of the eight series of
October 2022 of skypilot-org/spot-traces (availability/1-node/aws-10-26-2022), the data of "Can't Be Late" (NSDI 2024),
by age group; a series that begins or ends within an outage or a spell counts for the time that is known. `python -m
policy hazards` computes them from a folder of series.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import field
from enum import IntEnum

from relaunch.core.records import dataclass

AGE_EDGES = tuple(ticks / 6 for ticks in (0, 1, 2, 4, 8, 16, 32, 64))
"""Where the age groups begin, in hours."""
NEVER = 255
"""The code of a threshold that no spare time reaches."""
# A code is a logarithm: 1 stands for SMALLEST hours, and every STEP further for e times as much.
SMALLEST = 0.02
STEP = 27.0


class Ladder(IntEnum):
    """What is decided by a threshold for each age."""

    WAIT = 0  # idle: wait, by the age of the outage
    BACK = 1  # on-demand: to a pool that is known to have capacity, by the age of its spell
    TRY = 2  # on-demand: try a pool of which nothing is known, by the time since it last refused


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Codes of thresholds, by ladder, overhead, price ratio, `outage_ends`, `spell_ends`, work left and age.

    The axes are in hours, as a ratio, as multiples, and in hours; all ascend. `source` says what the codes rest on.
    """

    overheads: Sequence[float]
    price_ratios: Sequence[float]
    outage_ends: Sequence[float]
    spell_ends: Sequence[float]
    work_left: Sequence[float]
    codes: bytes
    source: str = ""

    def spare_needed(self, ladder: Ladder, market: "Market", work_left: float, age_group: int) -> float:
        """Return the hours of spare time (Situation.spare) above which the ladder's choice pays; may be infinite."""
        return self.rungs(ladder, market).spare_needed(work_left, age_group)

    def rungs(self, ladder: Ladder, market: "Market") -> "Rungs":
        """Return the ladder of one market, for a decision that looks at many of its rungs."""
        axes = (self.overheads, self.price_ratios, self.outage_ends, self.spell_ends)
        at = (market.overhead, market.price_ratio, market.outage_ends, market.spell_ends)
        corners = [(int(ladder), 1.0)]
        for axis, value in zip(axes, at, strict=True):
            around = _between(axis, value)
            size = len(axis)
            corners = [(index * size + point, weight * share) for index, weight in corners for point, share in around]
        size = len(self.work_left) * len(AGE_EDGES)
        return Rungs(self.codes, self.work_left, tuple((index * size, weight) for index, weight in corners))


@dataclass(frozen=True, slots=True)
class Rungs:
    """A ladder between points of the grid: where the codes of each begin, with its weight."""

    codes: bytes
    work_left: Sequence[float]
    corners: Sequence[tuple[int, float]]
    # The codes between points by their offset: one decision asks for each of them many times.
    mixed: dict[int, float] = field(default_factory=dict, compare=False)

    def spare_needed(self, work_left: float, age_group: int) -> float:
        """Return the hours of spare time (Situation.spare) above which the ladder's choice pays; may be infinite."""
        code = 0.0
        for point, share in _between(self.work_left, work_left):
            code += share * self._code(point * len(AGE_EDGES) + age_group)
        # With less work than the first point the thresholds shrink with it, with more than the last they grow with it.
        nearest = min(max(work_left, self.work_left[0]), self.work_left[-1])
        needed = decode(code)
        # Nor is any time enough for a job that has outlived its estimate, of which no work is left.
        return needed if math.isinf(needed) else needed * work_left / nearest

    def _code(self, offset: int) -> float:
        code = self.mixed.get(offset)
        if code is None:
            codes = self.codes
            code = self.mixed[offset] = sum([weight * codes[begin + offset] for begin, weight in self.corners])
        return code


@dataclass(frozen=True, slots=True)
class Market:
    """What the thresholds depend on beside the job: hours, and ratios; see Thresholds."""

    overhead: float
    price_ratio: float
    outage_ends: float = 1.0
    spell_ends: float = 1.0


def age_group(age: float) -> int:
    """Return the age group of an age in hours."""
    # An age that is a multiple of a tick is not to fall below its group by rounding.
    return bisect_right(AGE_EDGES, age + 1e-9) - 1


def decode(code: float) -> float:
    """Return the spare hours of a code, between codes too."""
    if code >= NEVER - 1:
        return math.inf
    return 0.0 if code <= 0 else SMALLEST * math.exp((code - 1) / STEP) * min(code, 1.0)


def encode(hours: float) -> int:
    """Return the code of spare hours, rounded up; NEVER for infinity."""
    if hours <= 0:
        return 0
    if math.isinf(hours):
        return NEVER
    return min(max(1 + math.ceil(STEP * math.log(hours / SMALLEST) - 1e-9), 1), NEVER - 2)


def _between(axis: Sequence[float], value: float) -> tuple[tuple[int, float], ...]:
    """Return the points of an axis around a value with their weights: the last one alone beyond an end."""
    value = min(max(value, axis[0]), axis[-1])
    upper = min(bisect_right(axis, value), len(axis) - 1)
    lower = max(upper - 1, 0)
    if lower == upper or value == axis[upper]:
        return ((upper, 1.0),)
    share = math.log(value / axis[lower]) / math.log(axis[upper] / axis[lower])
    return ((lower, 1.0),) if share == 0 else ((lower, 1.0 - share), (upper, share))


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
    hours = 0.0
    lasting = 1.0
    end = age + at_most
    for ends, since, until in zip(ends_per_hour, AGE_EDGES, (*AGE_EDGES[1:], math.inf), strict=True):
        span = min(until, end) - max(since, age)
        if span > 0:
            ending = -math.expm1(-ends * multiple * span)
            rate = ends * multiple
            hours += lasting * ending / rate
            lasting *= 1 - ending
    return hours
