"""What jobs cost by day, grouped: `relaunch costs`."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta

from relaunch.core.jobs.cost import CostEntry, CostKey
from relaunch.core.records import dataclass

KEPT = timedelta(days=2 * 366)
"""How long the costs of a month are kept after its end."""


def months_between(first: date, last: date) -> tuple[str, ...]:
    """Return the months from one day to another: `2026-11`."""
    count = (last.year - first.year) * 12 + last.month - first.month
    months = (first.month - 1 + each for each in range(count + 1))
    return tuple(f"{first.year + each // 12}-{each % 12 + 1:02d}" for each in months)


_GROUPS: Mapping[str, Callable[[CostKey, date], str]] = {
    "definition": lambda key, _day: key.definition,
    "repository": lambda key, _day: key.repository,
    "caller": lambda key, _day: key.caller,
    "type": lambda key, _day: key.instance_type,
    "purchase": lambda key, _day: key.purchase,
    "day": lambda _key, day: day.isoformat(),
    "month": lambda _key, day: f"{day:%Y-%m}",
}
GROUPS = tuple(_GROUPS)
"""What costs can be grouped by."""


@dataclass(frozen=True, slots=True)
class CostRow:
    """The costs of a group in USD; `running_usd` is the part of what is not over, and `group` its values."""

    group: tuple[str, ...]
    usd: float = 0.0
    on_demand_usd: float = 0.0
    hours: float = 0.0
    unpriced_hours: float = 0.0
    running_usd: float = 0.0

    @property
    def saving(self) -> float | None:
        """Return which part of the price on demand was saved; None if that is not known."""
        return 1 - self.usd / self.on_demand_usd if self.on_demand_usd > 0 else None


def sum_costs(paid: Iterable[CostEntry], running: Iterable[CostEntry], by: Sequence[str]) -> list[CostRow]:
    """Return the costs by these GROUPS, in order of time if that is the first of them, else the highest first."""
    sums: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0] * 5)
    for entries, is_running in ((paid, False), (running, True)):
        for entry in entries:
            for day in entry.days:
                row = sums[tuple(_GROUPS[each](entry.key, day.day) for each in by)]
                added = (day.usd, day.on_demand_usd, day.hours, day.unpriced_hours, day.usd if is_running else 0.0)
                row[:] = [one + other for one, other in zip(row, added, strict=True)]
    rows = [CostRow(group, *values) for group, values in sums.items()]
    if by and by[0] in ("day", "month"):
        return sorted(rows, key=lambda row: row.group)
    return sorted(rows, key=lambda row: (-row.usd, row.group))
