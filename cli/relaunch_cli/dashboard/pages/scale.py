"""Where amounts of money are in a drawing: places are percentages of its size, so that text in it keeps its own."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_TOP = 6.0
_BOTTOM = 88.0
LABELS_AT = 97.0
"""Where labels are, below what is drawn."""
_MOST_LINES = 4
_STEPS = (1, 2, 2.5, 5, 10)
_DECIMALS = (0, 2, 3, 4, 5)


@dataclass(frozen=True)
class Line:
    """A horizontal line with its amount."""

    y: str
    label: str


@dataclass(frozen=True)
class Scale:
    """The scale of amounts from 0 to the highest one."""

    most: float

    def y(self, amount: float) -> float:
        """Return where an amount is, from the top."""
        return _BOTTOM - (_BOTTOM - _TOP) * amount / self.most if self.most > 0 else _BOTTOM

    def height(self, amount: float) -> float:
        """Return how high an amount is."""
        return _BOTTOM - self.y(amount)

    @property
    def lines(self) -> Sequence[Line]:
        """Return the line of 0 and up to four more, at round amounts."""
        step = _step(self.most)
        count = math.floor(self.most / step + 1e-9) if step else 0
        decimals = next((each for each in _DECIMALS if math.isclose(round(step, each), step)), _DECIMALS[-1])
        return [Line(percent(self.y(step * each)), f"${step * each:,.{decimals}f}") for each in range(count + 1)]


def percent(place: float) -> str:
    """Return a place as an attribute has it."""
    return f"{place:.3f}%"


def _step(most: float) -> float:
    if most <= 0:
        return 0.0
    least = most / _MOST_LINES
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in _STEPS if step * power >= least * (1 - 1e-9))
