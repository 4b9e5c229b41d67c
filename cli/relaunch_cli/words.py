"""Times, spans and money as people read them."""

from datetime import datetime, timedelta


def write_span(span: timedelta) -> str:
    """Write a span with its two largest units: `3d04h`, `2h05m`, `4m10s`, `12s`."""
    seconds = max(int(span.total_seconds()), 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days:
        return f"{days}d{hours % 24:02}h"
    if hours:
        return f"{hours}h{minutes % 60:02}m"
    if minutes:
        return f"{minutes}m{seconds % 60:02}s"
    return f"{seconds}s"


def write_time(at: datetime, now: datetime) -> str:
    """Write a time in UTC, with its day when that is another one than now's."""
    return f"{at:%H:%M:%S}" if at.date() == now.date() else f"{at:%m-%d %H:%M}"


def write_moment(at: datetime, now: datetime) -> str:
    """Write a time in UTC and how far away it is: `09:31:53 UTC (in 5m00s)`."""
    away = f"in {write_span(at - now)}" if at > now else f"{write_span(now - at)} ago"
    return f"{write_time(at, now)} UTC ({away})"


def write_cost(usd: float) -> str:
    """Write an amount of money; nothing spent is a dash."""
    if usd <= 0:
        return "-"
    return f"${usd:.2f}" if usd < 1000 else f"${usd:,.0f}"


def write_price(usd_per_hour: object) -> str:
    """Write a price per hour, `?` when it is not known."""
    return f"{usd_per_hour:.4f}" if isinstance(usd_per_hour, int | float) else "?"


def write_share(share: object) -> str:
    """Write a share in per cent, empty when it is not known."""
    return f"{share:.0%}" if isinstance(share, int | float) else ""
