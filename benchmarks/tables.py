"""Tables of measurements, printed as text or JSON."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Cell = str | float | int | None


@dataclass(frozen=True)
class Table:
    """A table with a title, column names with units, and notes."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    notes: tuple[str, ...] = ()

    def render(self) -> str:
        """Return the table as text, with numbers aligned to the right."""
        shown = [self.columns, *(tuple(_show(cell) for cell in row) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        is_number = [
            all(cell is None or isinstance(cell, int | float) for cell in column)
            for column in zip(*self.rows, strict=True)
        ] or [False] * len(widths)
        lines = [
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, is_number, strict=True)
            ).rstrip()
            for row in shown
        ]
        return "\n".join([self.title, *(f"  {line}" for line in lines), *(f"  {note}" for note in self.notes)])


def percentile(values: Iterable[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def median(values: Iterable[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def _show(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:.2f}" if abs(cell) < 10 else f"{cell:.1f}"
    return str(cell)
