"""Series of spot availability that are drawn, after what is published of real ones.

`draw_series` has outages and spells that end by their age as the hazards of October 2022 say. `draw_zones` knows of
February 2023 only what is published of it: how long spells last, and how much of the time each zone has capacity.
"""

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


# Of p3.2xlarge in nine zones in February 2023 (skypilot-org/spot-traces), one value in 195 seconds for 45 days: the
# share of the time with capacity. Spells last as Weibull's distribution with these figures has it: 41 % at least one
# hour and 20 % four; of those that are met at a random moment 85, 46 and 20 % last one, eight and 24 hours more, where
# 76, 38 and 18 % are published. Outages have the same shape, which is an assumption.
ZONES_AVAILABLE = (0.16, 0.44, 0.46, 0.59, 0.77, 0.70, 0.90, 0.91, 0.90)
_ZONES_GAP_HOURS = 195 / 3600
_SHAPE = 0.426
_SPELL_HOURS = 1.31


def draw_zones(days: float = 45.0, seed: int = 0) -> list[Series]:
    """Return a series for each of ZONES_AVAILABLE; the same seed draws the same series everywhere."""
    ticks = round(days * 24 / _ZONES_GAP_HOURS)
    return [
        _draw_zone(f"zone-{number}", available, ticks, seed + number)
        for number, available in enumerate(ZONES_AVAILABLE)
    ]


def _draw_zone(name: str, available: float, ticks: int, seed: int) -> Series:
    generator = random.Random(seed)  # noqa: S311 - the same series every time
    outage_hours = _SPELL_HOURS * (1 - available) / available
    is_up = generator.random() < available
    states = list[bool]()
    while len(states) < ticks:
        hours = generator.weibullvariate(_SPELL_HOURS if is_up else outage_hours, _SHAPE)
        states += [is_up] * math.ceil(hours / _ZONES_GAP_HOURS)
        is_up = not is_up
    return Series(name, _ZONES_GAP_HOURS, tuple(states[:ticks]))


def _scaled(ends_per_hour: Sequence[float], multiple: float) -> list[float]:
    """Return the chance by age group that a state ends within a tick."""
    return [1 - math.exp(-each * multiple * GAP_HOURS) for each in ends_per_hour]


def _draw(name: str, chances: tuple[Sequence[float], Sequence[float]], ticks: int, seed: int) -> Series:
    generator = random.Random(seed)  # noqa: S311 - the same series every time
    is_up = generator.random() < 0.5
    age = 0
    available = []
    for _ in range(ticks):
        available.append(is_up)
        if generator.random() < chances[is_up][age_group(age * GAP_HOURS)]:
            is_up = not is_up
            age = 0
        else:
            age += 1
    return Series(name, GAP_HOURS, tuple(available))
