"""Filters and pages of EC2's describe actions."""

import fnmatch
from collections.abc import Iterable
from typing import Any

from relaunch_local.ecs.engine.model import JsonObject


def filters_of(request: JsonObject) -> dict[str, list[str]]:
    """Return the values of each filter of a request."""
    return {each["Name"]: each["Values"] for each in request.get("Filters", ())}


def admits(wanted: Iterable[str] | None, value: str) -> bool:
    """Return whether there is no filter, or it has the value."""
    return wanted is None or value in wanted


def matches(patterns: Iterable[str], values: Iterable[str]) -> bool:
    """Return whether one of the values matches a pattern with `*` and `?`, which heeds the case."""
    # fnmatch also knows `[`, which EC2's filters do not.
    literal = [pattern.replace("[", "[[]") for pattern in patterns]
    return any(fnmatch.fnmatchcase(value, pattern) for value in values for pattern in literal)


def page_of(name: str, rows: list[Any], request: JsonObject) -> JsonObject:
    """Return a page of the rows as the member `name`, with `NextToken` if more follow."""
    start = int(request.get("NextToken") or 0)
    size = int(request.get("MaxResults") or 1_000)
    page: JsonObject = {name: rows[start : start + size]}
    return {**page, "NextToken": str(start + size)} if start + size < len(rows) else page
