"""Where prices, odds and quotas are from and how old they are, in words and as JSON."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from relaunch.core.offerings.snapshot import PriceOrigin
from relaunch_cli.views.formats import write_count

_NOW = timedelta(minutes=15)


def describe_prices(origins: Iterable[PriceOrigin], now: datetime) -> str:
    """Say it in one line: `on-demand prices of AWS Price List, 5 hours old; spot prices of EC2, now`."""
    return "; ".join(
        f"{each.part.label} of {each.origin.source}, {_write_age(now - each.origin.at)}" for each in origins
    )


def stale_prices(origins: Iterable[PriceOrigin], now: datetime) -> str:
    """Warn of prices that are too old to be relied on; empty when there are none."""
    stale = [each.part.label for each in origins if each.origin.is_stale(now)]
    if not stale:
        return ""
    return (
        f"warning: {' and '.join(stale)} are more than three days old: what things cost may have changed. The stack "
        "refreshes them once a day; its function refresh_offerings says why it did not"
    )


def price_shapes(origins: Iterable[PriceOrigin], now: datetime) -> list[dict[str, object]]:
    """Return it as JSON-ready mappings."""
    return [
        {
            "prices": each.part.label,
            "source": each.origin.source,
            "at": each.origin.at.isoformat(),
            "is_stale": each.origin.is_stale(now),
        }
        for each in origins
    ]


def _write_age(age: timedelta) -> str:
    """Write an age with one unit: `now`, `40 minutes old`, `5 hours old`, `124 days old`."""
    if age < _NOW:
        return "now"
    minutes = int(age.total_seconds()) // 60
    if minutes < 120:
        return f"{write_count(minutes, 'minute')} old"
    hours = minutes // 60
    return f"{hours} hours old" if hours < 48 else f"{hours // 24} days old"
