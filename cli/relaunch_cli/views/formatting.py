"""Formatting of times, durations, money and counts."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from relaunch.core.jobs.changes import cut
from relaunch.core.jobs.state import CostBasis
from relaunch_cli.terminal import one_line

if TYPE_CHECKING:
    from relaunch.core.offerings.offering_key import OfferingKey

_MAX_REASON = 100
_TASK_ARN = re.compile(r"arn:aws[a-z-]*:ecs:[^\s:]*:\d*:task/[^\s:]*?([0-9a-f]{32})")


def format_machine(offering: "OfferingKey") -> str:
    """Format the machine of a job: its type, and how it is bought where that can be chosen."""
    return str(replace(offering, zone=None))


def format_duration(duration: timedelta) -> str:
    """Format a duration with its two largest units: `3d04h`, `2h05m`, `4m10s`, `12s`."""
    seconds = max(int(duration.total_seconds()), 0)
    minutes = seconds // 60
    hours = seconds // 3600
    days = seconds // 86400
    if days:
        return f"{days}d{hours % 24:02}h"
    if hours:
        return f"{hours}h{minutes % 60:02}m"
    if minutes:
        return f"{minutes}m{seconds % 60:02}s"
    return f"{seconds}s"


def format_time(at: datetime, now: datetime) -> str:
    """Format a time in UTC, with its date unless that is today's."""
    return f"{at:%H:%M:%S}" if at.date() == now.date() else f"{at:%m-%d %H:%M}"


def format_timestamp(at: datetime, now: datetime) -> str:
    """Format a time in UTC with its distance from now: `09:31:53 UTC (in 5m00s)`."""
    distance = f"in {format_duration(at - now)}" if at > now else f"{format_duration(now - at)} ago"
    return f"{format_time(at, now)} UTC ({distance})"


_CENT = 0.01


def format_cost(usd: float, basis: CostBasis = CostBasis.PRICE) -> str:
    """Format an amount of money: `<=` before an upper limit, `<$0.01` below a cent, `?` if unknown; a dash for none."""
    if basis is CostBasis.UNKNOWN:
        return "?"
    if usd <= 0:
        return "-"
    limit = "<=" if basis is CostBasis.LIMIT else ""
    if usd < _CENT:
        return f"{limit or '<'}$0.01"
    return f"{limit}${usd:.2f}" if usd < 1000 else f"{limit}${usd:,.0f}"


def format_price(usd_per_hour: object) -> str:
    """Format a price per hour; `?` if it is not known."""
    return f"{usd_per_hour:.4f}" if isinstance(usd_per_hour, int | float) else "?"


def format_rate(steps_per_second: float) -> str:
    """Format how fast a training is: `12 steps a second`, `2.5 seconds a step`."""
    if steps_per_second >= 1:
        return f"{steps_per_second:.3g} steps a second"
    return f"{1 / steps_per_second:.3g} seconds a step"


def format_percentage(fraction: object) -> str:
    """Format a fraction as a percentage; empty if it is not known."""
    return f"{fraction:.0%}" if isinstance(fraction, int | float) else ""


def shorten_reason(reason: str) -> str:
    """Return a reason for a table, which has one in a line: its beginning, as long as 100 characters."""
    return cut(one_line(reason), _MAX_REASON)


def format_count(count: int, noun: str) -> str:
    """Format a count: `1 failure`, `2 failures`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def shorten_task_arns(text: str) -> str:
    """Replace the ARNs of tasks by their IDs, which fit on a terminal."""
    return _TASK_ARN.sub(r"\1", text)


def join_zones(zones: Sequence[str]) -> str:
    """Join zones of one region: `us-east-1a b c`."""
    region = zones[0][:-1]
    if not all(zone[:-1] == region for zone in zones):
        return ", ".join(zones)
    return region + " ".join(sorted({zone[-1] for zone in zones}))
