"""Series of spot availability that are drawn: outages and spells that end by their age as hazards say."""

import math
import random
from collections.abc import Sequence

from policy.hazards import Hazards
from policy.series import Series
from relaunch.core.market.thresholds import age_group

GAP_HOURS = 1 / 6
# How often outages and spells end, compared with the usual: pools of which little is to be had, and much.
MULTIPLES = ((0.5, 1.0), (1.0, 2.0), (1.0, 1.0), (1.0, 1.0), (2.0, 2.0), (2.0, 1.0), (1.0, 0.5), (0.5, 0.5))


def draw_series(hazards: Hazards, days: float = 27.0, seed: int = 0) -> list[Series]:
    """Return a series for each of MULTIPLES; the same seed draws the same series everywhere."""
    ticks = round(days * 24 / GAP_HOURS)
    return [
        _draw(f"drawn-{number}", (_scaled(hazards.outage, outage), _scaled(hazards.spell, spell)), ticks, seed + number)
        for number, (outage, spell) in enumerate(MULTIPLES)
    ]


def _scaled(ends_per_hour: Sequence[float], multiple: float) -> list[float]:
    """Return the chance by age group that a state ends within a tick."""
    return [1 - math.exp(-each * multiple * GAP_HOURS) for each in ends_per_hour]


def _draw(name: str, chances: tuple[Sequence[float], Sequence[float]], ticks: int, seed: int) -> Series:
    generator = random.Random(seed)  # noqa: S311 - the same series every time
    is_up, age, available = generator.random() < 0.5, 0, []
    for _ in range(ticks):
        available.append(is_up)
        if generator.random() < chances[is_up][age_group(age * GAP_HOURS)]:
            is_up, age = not is_up, 0
        else:
            age += 1
    return Series(name, GAP_HOURS, tuple(available))
