"""Where moments and numbers lie in a drawing, in permille of its width or height, and the round ticks of its axes."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

WIDTH = 1000.0
"""The width and the height of a drawing, in permille of itself."""
MOST_TICKS = 8
_SPACE = 0.04
_MOST = sys.float_info.max
_SHORTEST = timedelta(seconds=1)
_DAY = 86_400
# Each is at most twice the one before: where one has more than eight ticks, the next has four at least.
_STEPS = (
    *(1, 2, 3, 5, 10, 15, 30, 60, 120, 180, 300, 600, 900, 1800),
    *(3600, 7200, 3 * 3600, 6 * 3600, 12 * 3600, _DAY, 2 * _DAY, 3 * _DAY, 5 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY),
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of an axis: where it is, and what it says there."""

    position: float
    label: str


@dataclass(frozen=True, slots=True)
class TimeScale:
    """The time that a drawing shows, from its left edge to its right one; at least a second."""

    began_at: datetime
    ended_at: datetime

    @classmethod
    def between(cls, began_at: datetime, ended_at: datetime) -> "TimeScale":
        """Return the scale of this time; an end that is before the beginning, by another clock, counts as the same."""
        return cls(began_at, max(ended_at, began_at + _SHORTEST))

    def position(self, at: datetime) -> float:
        """Return where a moment is, in permille of the width; what is beyond an edge is at the edge."""
        share = (at - self.began_at) / (self.ended_at - self.began_at)
        return round(min(max(share, 0.0), 1.0) * WIDTH, 1)

    def width(self, began_at: datetime, ended_at: datetime | None) -> float:
        """Return how wide a span is, in permille; 0 if it ends before it begins, to the right edge without an end."""
        until = WIDTH if ended_at is None else self.position(ended_at)
        return round(max(until - self.position(began_at), 0.0), 1)

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Return four to eight moments that are round in UTC, with the date at midnight; in three seconds fewer."""
        seconds = (self.ended_at - self.began_at).total_seconds()
        step = next((each for each in _STEPS if self._count(each) <= MOST_TICKS), None)
        step = step or math.ceil(seconds / MOST_TICKS / _DAY) * _DAY
        first = math.ceil((self.began_at - _EPOCH).total_seconds() / step)
        moments = [_EPOCH + timedelta(seconds=(first + index) * step) for index in range(self._count(step))]
        return tuple(Tick(self.position(each), _label(each, step)) for each in moments)

    def _count(self, step: int) -> int:
        first = math.ceil((self.began_at - _EPOCH).total_seconds() / step)
        return math.floor((self.ended_at - _EPOCH).total_seconds() / step) - first + 1


def _label(at: datetime, step: int) -> str:
    if at.timestamp() % _DAY == 0:
        return f"{at.day} {at:%b}"
    return f"{at:%H:%M:%S}" if step % 60 else f"{at:%H:%M}"


@dataclass(frozen=True, slots=True)
class NumberScale:
    """The numbers that a drawing shows, from `low` to `high`, which differ; above 0 where it is logarithmic."""

    low: float
    high: float
    is_logarithmic: bool = False

    def position(self, value: float) -> float:
        """Return where a number is, in permille from `low`."""
        if self.is_logarithmic:
            share = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        else:
            # Halved: the difference of two finite numbers may be none.
            share = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return round(min(max(share, 0.0), 1.0) * WIDTH, 1)

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Return up to eight round numbers within the scale."""
        numbers = _powers(self.low, self.high) if self.is_logarithmic else _multiples(self.low, self.high)
        return tuple(Tick(self.position(each), format_number(each)) for each in numbers)


def scale_of(values: Sequence[float], *, logarithmic_above: float | None = None) -> NumberScale:
    """Return the scale of these finite numbers, of which there is one at least.

    It is logarithmic if all are above 0 and the highest is more than so many times the lowest.
    """
    low = min(values)
    high = max(values)
    if logarithmic_above is not None and low > 0 and high / logarithmic_above > low:
        return NumberScale(low, high, is_logarithmic=True)
    # What a float cannot tell apart is one number.
    space = (high / 2 - low / 2) * 2 * _SPACE
    if low - space == low or high + space == high or not math.isfinite(space):
        space = abs(low) / 2 or 1.0
    return NumberScale(max(low - space, -_MOST), min(high + space, _MOST))


def _multiples(low: float, high: float) -> list[float]:
    """Return the multiples of 1, 2 or 5 times a power of ten, the smallest with up to seven of them."""
    exponent = math.floor(math.log10(high / 2 - low / 2)) - 1
    for power in range(exponent, exponent + 4):
        for factor in (1, 2, 5):
            step = factor * 10.0**power
            first = math.ceil(low / step) if step else 0
            count = math.floor(high / step) - first + 1 if step else math.inf
            if count <= 7:
                return [float(f"{(first + index) * step:.12g}") for index in range(int(count))]
    return []


def _powers(low: float, high: float) -> list[float]:
    """Return the powers of ten within, with 2 and 5 times as much where they are few, or else every second or third."""
    first = math.floor(math.log10(low))
    last = math.floor(math.log10(high) + 1e-9)
    every = math.ceil((last - first + 1) / MOST_TICKS)
    factors = (1, 2, 5) if last - first < 3 else (1,)
    numbers = [float(f"{factor}e{power}") for power in range(first, last + 1, every) for factor in factors]
    return [each for each in numbers if low * (1 - 1e-9) <= each <= high * (1 + 1e-9)]


def format_number(value: float) -> str:
    """Format a number shortly: `0`, `12,500`, `0.25`, `1e-05`, `3.2M`."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e15 or size < 1e-4:
        return f"{value:.3g}"
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if size >= limit:
            return f"{value / limit:.4g}{unit}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"
