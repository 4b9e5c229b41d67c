"""Series of several machines at once that are drawn, after what is counted in real ones.

The figures are of the traces of several V100 (p3.2xlarge) at once of skypilot-org/spot-traces, one value in 300
seconds: availability/16-node/aws-08-27-2023 and preemption/4-node/aws-08-03-2023. Full gangs, and the times without
one, last as Weibull's distribution with their mean and median has it, each by itself; of the tick in which a gang is
lost it is counted how often all are gone, or one alone.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from policy.series import Series, SeriesError

GAP_HOURS = 1 / 12


@dataclass(frozen=True, slots=True)
class Zone:
    """What is counted of a zone for so many machines: the share of the time in which all are there, and times in hours.

    `all_lost` and `one_lost` are the shares of the losses of a full gang that take all, or one, within a tick.
    """

    name: str
    size: int
    share: float
    mean: float
    median: float
    back_median: float
    all_lost: float
    one_lost: float

    @property
    def back_mean(self) -> float:
        """Return how long it takes on average until all are there again."""
        return self.mean * (1 - self.share) / self.share


ZONES = (
    Zone("us-east-2b", 16, 0.46, 1.67, 0.33, 0.33, 0.23, 0.12),
    Zone("us-west-2a", 16, 0.42, 1.76, 0.42, 0.75, 0.60, 0.09),
    Zone("us-west-2c", 16, 0.41, 1.97, 0.42, 0.92, 0.69, 0.04),
    Zone("us-east-1f", 4, 0.30, 1.75, 0.75, 0.58, 0.04, 0.60),
    Zone("us-east-2a", 4, 0.71, 7.96, 2.58, 0.17, 0.00, 0.78),
    Zone("us-west-2c", 4, 0.79, 3.73, 1.58, 0.67, 0.14, 0.51),
)


def draw_gangs(nodes: int, days: float = 27.0, seed: int = 0, each_zone: int = 3) -> list[Series]:
    """Return series for so many machines at once, some of each zone of which so many or more were counted.

    Raises:
        SeriesError: so many were counted of no zone.
    """
    sizes = sorted({zone.size for zone in ZONES if zone.size >= nodes})
    if not sizes:
        most = max(zone.size for zone in ZONES)
        raise SeriesError(f"gangs of {nodes} cannot be drawn: there are figures of {most} machines at most")
    ticks = round(days * 24 / GAP_HOURS)
    zones = [zone for zone in ZONES if zone.size == sizes[0]]
    drawn = ((zone, number) for zone in zones for number in range(each_zone))
    return [
        Series(
            f"{zone.name}-{zone.size}-{number}",
            GAP_HOURS,
            tuple(count >= nodes for count in draw_counts(zone, ticks, seed + 100 * number + ZONES.index(zone))),
        )
        for zone, number in drawn
    ]


def draw_counts(zone: Zone, ticks: int, seed: int) -> Sequence[int]:
    """Return how many machines of a zone are there at each tick; after a loss as many as it left, until all are back.

    The same seed draws the same counts everywhere.
    """
    generator = random.Random(seed)  # noqa: S311 - the same series every time
    full = _weibull(zone.mean, zone.median)
    back = _weibull(zone.back_mean, zone.back_median)
    is_full = generator.random() < zone.share
    counts: list[int] = []
    while len(counts) < ticks:
        scale, shape = full if is_full else back
        count = zone.size if is_full else _left(zone, generator)
        counts += [count] * max(round(generator.weibullvariate(scale, shape) / GAP_HOURS), 1)
        is_full = not is_full
    return counts[:ticks]


def _left(zone: Zone, generator: random.Random) -> int:
    chance = generator.random()
    if chance < zone.all_lost:
        return 0
    return zone.size - 1 if chance < zone.all_lost + zone.one_lost else generator.randint(1, zone.size - 2)


def _weibull(mean: float, median: float) -> tuple[float, float]:
    """Return the scale and the shape of Weibull's distribution with this mean and this median, which is below it."""
    low = 0.05
    high = 3.0
    for _ in range(60):
        shape = (low + high) / 2
        ratio = math.log(2) ** (1 / shape) / math.gamma(1 + 1 / shape)
        if ratio < median / mean:
            low = shape
        else:
            high = shape
    return mean / math.gamma(1 + 1 / low), low
