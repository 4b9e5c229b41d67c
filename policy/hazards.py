"""How often outages and spells end, by age group, counted in series."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from policy.series import Series
from relaunch.core.market.thresholds import AGE_EDGES, age_group

# Where little was seen of an age, half an end in ten ticks of exposure.
_PRIOR_ENDS = 0.5
_PRIOR_TICKS = 10.0


@dataclass(frozen=True, slots=True)
class Hazards:
    """Ends per hour by age group."""

    outage: tuple[float, ...]
    spell: tuple[float, ...]


def count_hazards(series: Iterable[Series]) -> Hazards:
    """Return the hazards of series; what had begun before a series is of unknown age, and left out."""
    ends = {state: [_PRIOR_ENDS] * len(AGE_EDGES) for state in (False, True)}
    ticks = {state: [_PRIOR_TICKS] * len(AGE_EDGES) for state in (False, True)}
    gaps = set()
    for each in series:
        gaps.add(each.gap_hours)
        for state, age, is_end in _ages(each):
            group = age_group(age)
            ticks[state][group] += 1
            ends[state][group] += is_end
    (gap_hours,) = gaps
    outage, spell = (
        tuple(-math.log(1 - end / tick) / gap_hours for end, tick in zip(ends[state], ticks[state], strict=True))
        for state in (False, True)
    )
    return Hazards(outage, spell)


def _ages(series: Series) -> Iterable[tuple[bool, float, bool]]:
    """Yield the state of each tick with its age, and whether it ends before the next one."""
    began: int | None = None
    for tick in range(1, len(series.available) - 1):
        state = series.available[tick]
        if state != series.available[tick - 1]:
            began = tick
        if began is not None:
            yield state, (tick - began) * series.gap_hours, state != series.available[tick + 1]
