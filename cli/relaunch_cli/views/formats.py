"""Times, spans and money as people read them."""

import re
from datetime import datetime, timedelta

from relaunch.core.jobs.job import Job

_TASK_ARN = re.compile(r"arn:aws[a-z-]*:ecs:[^\s:]*:\d*:task/\S*?([0-9a-f]{32})")


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


def present_cost_usd(job: Job, now: datetime) -> float:
    """Return what the job's tasks have cost so far, at the prices they were placed at, the present one included."""
    attempt = job.attempt
    if attempt is None or attempt.started_at is None or attempt.stop is not None:
        return job.cost_usd
    hours = (now - attempt.started_at).total_seconds() / 3600
    return job.cost_usd + hours * attempt.placement.price_usd_per_hour


def write_count(count: int, thing: str) -> str:
    """Write a number of things: `1 failure`, `2 failures`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def shorten_arns(text: str) -> str:
    """Write tasks by their id alone: their ARN is wider than a terminal."""
    return _TASK_ARN.sub(r"\1", text)
