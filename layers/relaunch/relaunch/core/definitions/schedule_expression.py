"""Schedule expressions of EventBridge Scheduler: what is wrong with one, before Scheduler is asked.

Source: "Schedule types in EventBridge Scheduler" in its User Guide, with the fields, values and wildcards of `cron` and
the units of `rate`. The times of an expression are Scheduler's alone.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

MAX_LENGTH = 256
MAX_ZONE_LENGTH = 50
TIME_ZONE_PATTERN = r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}"

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_UNITS = ("minute", "hour", "day")
_FORMS = "write it like cron(0 6 ? * MON-FRI *) or rate(1 hour)"


class _Field(NamedTuple):
    """A field of cron: its name, its lowest and highest number, the names of numbers, and what else it may be."""

    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()
    other: str = ""


_FIELDS = (
    _Field("minutes", 0, 59),
    _Field("hours", 0, 23),
    _Field("day of the month", 1, 31, other=r"\?|L|LW|([1-9]|[12][0-9]|3[01])W"),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 1, 7, _DAYS, other=r"\?|L|([1-7]|SUN|MON|TUE|WED|THU|FRI|SAT)(L|#[1-5])"),
    _Field("year", 1970, 2199),
)


def find_schedule_problem(expression: str) -> str:
    """Return what is wrong with an expression, and what to do; empty if nothing is."""
    if len(expression) > MAX_LENGTH:
        return f"it has {len(expression)} characters, {MAX_LENGTH} are allowed"
    if match := re.fullmatch(r"rate\((\d{1,9}) ([a-z]+)\)", expression):
        return _find_rate_problem(int(match[1]), match[2])
    if match := re.fullmatch(r"cron\(([^()]*)\)", expression):
        return next(_list_cron_problems(match[1]), "")
    return f"`{expression}` is no schedule: {_FORMS}"


def _find_rate_problem(number: int, unit: str) -> str:
    if unit.removesuffix("s") not in _UNITS:
        return f"`{unit}` is no unit: minutes, hours and days are"
    if number < 1:
        return "a rate is of 1 or more"
    if (number == 1) == unit.endswith("s"):
        return f"write {number} {unit.removesuffix('s')}{'' if number == 1 else 's'}"
    return ""


def _list_cron_problems(text: str) -> Iterator[str]:
    values = text.split()
    if len(values) != len(_FIELDS):
        names = ", ".join(field.name for field in _FIELDS)
        yield f"cron has {len(values)} fields, and needs six: {names}"
        return
    for field, value in zip(_FIELDS, values, strict=True):
        if not _is_valid(field, value.upper()):
            yield f"`{value}` is no {field.name}: {_describe(field)}"
    if [values[2], values[4]].count("?") != 1:
        yield "one of day of the month and day of the week must be `?`, the other one says the days"


def _is_valid(field: _Field, value: str) -> bool:
    if field.other and re.fullmatch(field.other, value):
        return True
    return all(_is_valid_part(field, part) for part in value.split(","))


def _is_valid_part(field: _Field, part: str) -> bool:
    span, slash, step = part.partition("/")
    if slash and not (re.fullmatch(r"\d{1,4}", step) and 1 <= int(step) <= field.highest):
        return False
    if span == "*":
        return True
    first, dash, last = span.partition("-")
    numbers = [_number(field, each) for each in ((first, last) if dash else (first,))]
    known = [each for each in numbers if each is not None]
    return len(known) == len(numbers) and all(field.lowest <= each <= field.highest for each in known)


def _number(field: _Field, text: str) -> int | None:
    names: Mapping[str, int] = {name: number for number, name in enumerate(field.names, field.lowest)}
    if text in names:
        return names[text]
    return int(text) if re.fullmatch(r"\d{1,4}", text) else None


def _describe(field: _Field) -> str:
    names = f" or {field.names[0]} to {field.names[-1]}" if field.names else ""
    return f"{field.lowest} to {field.highest}{names}, `*`, lists, ranges and steps"
