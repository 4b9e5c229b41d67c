"""Event patterns of EventBridge: literals, prefix, suffix, wildcard, numeric, exists, $or.

Source: "Comparison operators for use in event patterns" (EventBridge User Guide).

An array in an event matches if one of its members does ("Arrays in event patterns"), also if they are objects.
"""

import operator as op
import re
from collections.abc import Callable, Mapping
from typing import Any

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {">": op.gt, ">=": op.ge, "<": op.lt, "<=": op.le, "=": op.eq}


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
    if operator == "numeric":
        return _matches_numbers(operand, found)
    return isinstance(found, str) and _matches_text(operator, operand, found)


def _matches_text(operator: str, operand: str, found: str) -> bool:
    if operator == "prefix":
        return found.startswith(operand)
    if operator == "suffix":
        return found.endswith(operand)
    if operator == "wildcard":
        return _compile_wildcard(operand).fullmatch(found) is not None
    raise ValueError(f"unknown operator {operator!r}")


def _matches_numbers(operand: list[Any], found: Any) -> bool:
    """Return whether a number is within bounds, as in `[">", 0, "<=", 5]`."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False
    return all(_COMPARISONS[sign](found, bound) for sign, bound in zip(operand[::2], operand[1::2], strict=True))


def _compile_wildcard(text: str) -> re.Pattern[str]:
    """Compile a wildcard: `*` is any text, a backslash escapes `*` and itself."""
    parts = re.findall(r"\\[*\\]|.", text, re.DOTALL)
    return re.compile("".join(".*" if part == "*" else re.escape(part[-1]) for part in parts), re.DOTALL)
