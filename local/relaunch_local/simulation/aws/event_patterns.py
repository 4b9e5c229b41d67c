"""Event patterns of EventBridge: literals, prefix, suffix, wildcard, exists, $or ("Comparison operators", user guide).

An array in an event matches if one of its members does ("Arrays in event patterns"), also if they are objects.
"""

import re
from collections.abc import Mapping
from typing import Any


def matches(pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Return whether an event matches: every key of the pattern has one of its values."""
    for key, wanted in pattern.items():
        if key == "$or":
            if not any(matches(each, event) for each in wanted):
                return False
            continue
        found = event.get(key)
        if not any(_matches_member(wanted, each) for each in (found if isinstance(found, list) else [found])):
            return False
    return True


def _matches_member(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and matches(wanted, found)
    return any(_matches_value(each, found) for each in wanted)


def _matches_value(wanted: Any, found: Any) -> bool:
    if not isinstance(wanted, Mapping):
        return bool(wanted == found)
    ((operator, operand),) = wanted.items()
    if operator == "exists":
        return (found is not None) is operand
    if not isinstance(found, str):
        return False
    if operator == "prefix":
        return found.startswith(operand)
    if operator == "suffix":
        return found.endswith(operand)
    if operator == "wildcard":
        return _compile_wildcard(operand).fullmatch(found) is not None
    raise ValueError(f"unknown operator {operator!r}")


def _compile_wildcard(text: str) -> re.Pattern[str]:
    """Compile a wildcard: `*` is any text, a backslash escapes `*` and itself."""
    parts = re.findall(r"\\[*\\]|.", text, re.DOTALL)
    return re.compile("".join(".*" if part == "*" else re.escape(part[-1]) for part in parts), re.DOTALL)
