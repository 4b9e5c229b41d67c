"""Which costs are asked for: their groups and their days, of `relaunch costs` and of the page of costs."""

import calendar
from collections.abc import Sequence
from datetime import date

from relaunch.core.jobs.cost_report import GROUPS, KEPT
from relaunch_cli.errors import CommandError, did_you_mean


def parse_groups(names: Sequence[str]) -> tuple[str, ...]:
    """Return what costs are grouped by, each once.

    Raises:
        CommandError: one of the names is none of GROUPS.
    """
    for name in names:
        if name not in GROUPS:
            hint = did_you_mean(name, GROUPS) or f"costs are grouped by {', '.join(GROUPS)}"
            raise CommandError(f"--by: {name!r} is none of the groups of costs", hint)
    return tuple(dict.fromkeys(names))


def parse_period(since: str, until: str, today: date) -> tuple[date, date]:
    """Return the first and the last day; there are no costs after today, and none from before they are kept.

    Raises:
        CommandError: there are no such days, or no costs of them. Each month is a query: they are not any number.
    """
    first = _parse_day("--since", since, is_last=False) if since else today.replace(day=1)
    kept_since = today - KEPT
    if first < kept_since:
        raise CommandError(f"--since: costs of {first} are not kept", f"give a day from {kept_since} on")
    newest = max(today, first)
    last = min(_parse_day("--until", until, is_last=True), newest) if until else newest
    if last < first:
        raise CommandError(f"--until: {last} is before {first}", "give a day that is not before --since")
    return first, last


def _parse_day(option: str, text: str, *, is_last: bool) -> date:
    """Return a day, or the first or last one of a month.

    Raises:
        CommandError: it is neither.
    """
    try:
        if len(text) > len("2026-11"):
            return date.fromisoformat(text)
        first = date.fromisoformat(f"{text}-01")
    except ValueError as error:
        example = "give one like 2026-11-29 or 2026-11"
        raise CommandError(f"{option}: {text!r} is neither a day nor a month", example) from error
    return first.replace(day=calendar.monthrange(first.year, first.month)[1]) if is_last else first
