"""Reads what a person gives for a budget: its scope and its limits; and what the jobs of a scope have cost."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from relaunch.core.jobs.budgets import KINDS, STACK
from relaunch.core.jobs.cost import CostEntry
from relaunch_cli.errors import CommandError, did_you_mean
from relaunch_cli.terminal import one_line

NONE = "none"
"""Takes a limit away."""
FORMS = f"{STACK}, definition/NAME, repository/OWNER/NAME or caller/NAME"
_NAMES = {"definition": re.compile(r"[^/]+"), "repository": re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)}
_MOST_CHARACTERS = 500
# A number of DynamoDB has 38 digits, nine of which are those after the point.
_MOST_USD = 1e12


def read_scope(text: str) -> str:
    """Return the scope of a budget.

    Raises:
        CommandError: it is none.
    """
    if text == STACK:
        return text
    kind, _, name = text.partition("/")
    if kind not in KINDS or not name:
        near = f"write {kind}/NAME" if kind in KINDS else did_you_mean(kind, (STACK, *KINDS))
        raise CommandError(f"{text!r} is no scope of a budget", near or f"write {FORMS}")
    if len(text) > _MOST_CHARACTERS or one_line(text) != text or text != text.strip():
        raise CommandError(
            f"{text!r} is no scope of a budget",
            f"a name is a text of one line without blanks around it, with {_MOST_CHARACTERS} characters at most",
        )
    if kind in _NAMES and not _NAMES[kind].fullmatch(name):
        form = "a definition has a name without /" if kind == "definition" else "write repository/OWNER/NAME"
        raise CommandError(f"{text!r} is no scope of a budget", form)
    return text


def read_limit(option: str, text: str) -> float | None:
    """Return a limit in USD, None for no limit.

    Raises:
        CommandError: it is none.
    """
    if text == NONE:
        return None
    try:
        usd = float(text)
    except ValueError:
        usd = math.nan
    if not 0 <= usd <= _MOST_USD:
        hint = f"write a number from 0 to {_MOST_USD:,.0f} like 250 or 99.50, or {NONE} for no limit"
        raise CommandError(f"{option}: {text!r} is no amount of USD", hint)
    return abs(usd)  # -0 is 0


def sum_spent(scope: str, costs: Iterable[CostEntry]) -> Mapping[str, float]:
    """Return what the jobs of a scope have cost, by month (UTC) as `2026-11`."""
    kind, _, name = scope.partition("/")
    spent = defaultdict[str, float](float)
    for entry in costs:
        if scope == STACK or getattr(entry.key, kind) == name:
            for day in entry.days:
                spent[f"{day.day:%Y-%m}"] += day.usd
    return dict(spent)


def nearest_scopes(scope: str, costs: Iterable[CostEntry]) -> str:
    """Return a hint with the nearest scopes of the same kind whose jobs have cost something; empty if none is near."""
    kind = scope.partition("/")[0]
    return did_you_mean(scope, {f"{kind}/{getattr(entry.key, kind)}" for entry in costs})
