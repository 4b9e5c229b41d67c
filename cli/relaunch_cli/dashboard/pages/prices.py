"""What an instance type has cost on spot: a step line for each zone, and on demand above them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise

from relaunch_cli.dashboard.market_reader import PriceHistory
from relaunch_cli.dashboard.pages.scale import LABELS_AT, Scale, percent
from relaunch_cli.views.formatting import format_percentage, format_price

Prices = Sequence[tuple[datetime, float]]
_WIDTH = 1000.0
"""The width and the height of the drawing of lines, which is stretched."""
_LINE_KINDS = 6
_ROOM_ABOVE = 1.06


@dataclass(frozen=True)
class ZonePrices:
    """The prices in a zone: a path through them, and the table's row."""

    zone: str
    kind: int
    path: str
    now: str
    lowest: str
    highest: str
    mean: str
    changes: int
    saving: str


def prices_values(history: PriceHistory) -> Mapping[str, object]:
    """Return the values of the template `prices.html`."""
    on_demand = history.on_demand_usd_per_hour
    highest = max((usd for prices in history.by_zone.values() for _, usd in prices), default=0.0)
    scale = Scale(max(highest, on_demand or 0.0) * _ROOM_ABOVE)
    zones = [
        _of_zone(zone, number % _LINE_KINDS, prices, history, scale)
        for number, (zone, prices) in enumerate(sorted(history.by_zone.items()))
    ]
    return {
        "machine": history.instance_type,
        "history": history,
        "zones": zones,
        "scale": scale,
        "on_demand": f"${format_price(on_demand)}" if on_demand is not None else "",
        "on_demand_y": percent(scale.y(on_demand)) if on_demand is not None else "",
        "days": list(_days(history)),
        "labels_at": percent(LABELS_AT),
    }


def _of_zone(zone: str, kind: int, prices: Prices, history: PriceHistory, scale: Scale) -> ZonePrices:
    steps = _within(prices, history)
    amounts = [usd for _, usd in steps]
    ends = [*(at for at, _ in steps[1:]), history.until]
    paid = sum(usd * ((end - at) / timedelta(hours=1)) for (at, usd), end in zip(steps, ends, strict=True))
    hours = (history.until - steps[0][0]) / timedelta(hours=1)
    mean = paid / hours if hours > 0 else amounts[-1]
    on_demand = history.on_demand_usd_per_hour
    return ZonePrices(
        zone,
        kind,
        _path(steps, history, scale),
        f"${format_price(amounts[-1])}",
        f"${format_price(min(amounts))}",
        f"${format_price(max(amounts))}",
        f"${format_price(mean)}",
        sum(one != other for one, other in pairwise(amounts)),
        format_percentage(1 - mean / on_demand) if on_demand else "",
    )


def _within(prices: Prices, history: PriceHistory) -> Prices:
    """Return the price at the beginning, and each change after it."""
    before = [usd for at, usd in prices if at <= history.since]
    later = [(at, usd) for at, usd in prices if history.since < at <= history.until]
    steps = [(history.since, before[-1]), *later] if before else later
    return steps or [(history.until, prices[-1][1])]


def _path(steps: Prices, history: PriceHistory, scale: Scale) -> str:
    (first, usd), *later = steps
    parts = [f"M{_x(first, history):.1f} {_y(usd, scale):.1f}"]
    parts += [f"H{_x(at, history):.1f}V{_y(usd, scale):.1f}" for at, usd in later]
    return f"{''.join(parts)}H{_WIDTH:.0f}"


def _x(at: datetime, history: PriceHistory) -> float:
    share: float = (at - history.since) / (history.until - history.since)
    return _WIDTH * share


def _y(usd: float, scale: Scale) -> float:
    return scale.y(usd) * _WIDTH / 100


def _days(history: PriceHistory) -> Iterable[tuple[str, str]]:
    """Yield where each day (UTC) begins, and its name."""
    day = history.since.astimezone(UTC).date() + timedelta(days=1)
    while (at := datetime.combine(day, time(0), UTC)) < history.until:
        yield percent(_x(at, history) * 100 / _WIDTH), f"{day:%b} {day.day}"
        day += timedelta(days=1)
