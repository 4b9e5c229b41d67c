"""Where prices, spot placement scores and quotas come from, and how old they are."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from relaunch.core.offerings.snapshot import PriceOrigin
from relaunch_cli.views.formatting import format_count

_NOW = timedelta(minutes=15)


def describe_prices(origins: Iterable[PriceOrigin], now: datetime) -> str:
    """Describe them in one line: `on-demand prices of AWS Price List, 5 hours old; spot prices of EC2, now`."""
    return "; ".join(
        f"{each.part.label} of {each.origin.source}, {_format_age(now - each.origin.at)}" for each in origins
    )


def stale_warning(origins: Iterable[PriceOrigin], now: datetime) -> str:
    """Return a warning of prices that are no longer refreshed; empty if there are none.

    Bundled ones are in use until the first refresh, and offline.
    """
    stale = [each.part.label for each in origins if each.origin.is_stale(now) and not each.origin.is_bundled]
    if not stale:
        return ""
    return (
        f"warning: {' and '.join(stale)} are more than three days old and may have changed. The stack refreshes "
        "them once a day; see the log of its function refresh_offerings"
    )


def _format_age(age: timedelta) -> str:
    """Format an age with one unit: `now`, `40 minutes old`, `5 hours old`, `124 days old`."""
    if age < _NOW:
        return "now"
    minutes = int(age.total_seconds()) // 60
    if minutes < 120:
        return f"{format_count(minutes, 'minute')} old"
    hours = minutes // 60
    return f"{hours} hours old" if hours < 48 else f"{hours // 24} days old"
