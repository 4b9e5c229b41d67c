"""Schedule expressions of EventBridge Scheduler: what is wrong with one, before Scheduler is asked.

Source: "Schedule types in EventBridge Scheduler" in its User Guide, with the fields, values and wildcards of `cron` and
the units of `rate`. The next time of an expression is for people alone: Scheduler decides.
"""

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

MAX_LENGTH = 256
MAX_ZONE_LENGTH = 50
TIME_ZONE_PATTERN = r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}"

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_SATURDAY = 5  # as datetime.weekday counts
_FARTHEST_DAYS = 4 * 366
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


def next_time(expression: str, zone: tzinfo, after: datetime) -> datetime | None:
    """Return the next time of a cron expression in a time zone after a moment, in UTC.

    None for a rate, which counts from when its schedule was made, and if there is none within four years. A time that a
    clock change leaves out is skipped, and one that it repeats is taken once ("Daylight savings time", Scheduler User
    Guide).
    """
    match = re.fullmatch(r"cron\(([^()]*)\)", expression)
    if match is None or find_schedule_problem(expression):
        return None
    values = dict(zip(_FIELDS, (value.upper() for value in match[1].split()), strict=True))
    minutes, hours, of_month, months, of_week, years = (_numbers(field, value) for field, value in values.items())
    _, _, day_text, _, weekday_text, _ = values.values()
    first = after.astimezone(zone).date()
    for day in (first + timedelta(days=number) for number in range(_FARTHEST_DAYS)):
        if day.month not in months or day.year not in years:
            continue
        if not (
            _is_day_of_month(day, day_text, of_month) if day_text != "?" else _is_weekday(day, weekday_text, of_week)
        ):
            continue
        for hour in sorted(hours):
            for minute in sorted(minutes):
                moment = _at(day, hour, minute, zone)
                if moment is not None and moment > after:
                    return moment
    return None


def _at(day: date, hour: int, minute: int, zone: tzinfo) -> datetime | None:
    """Return a local time in UTC, the first of two; None if a clock change leaves it out."""
    local = datetime.combine(day, time(hour, minute))
    moment = local.replace(tzinfo=zone).astimezone(UTC)
    return moment if moment.astimezone(zone).replace(tzinfo=None) == local else None


def _is_day_of_month(day: date, text: str, numbers: AbstractSet[int]) -> bool:
    last = monthrange(day.year, day.month)[1]
    if text == "L":
        return day.day == last
    if text.endswith("W"):
        wanted = last if text == "LW" else int(text[:-1])
        return wanted <= last and day.day == _nearest_working_day(day.replace(day=wanted), last)
    return day.day in numbers


def _nearest_working_day(day: date, last: int) -> int:
    """Return the day of the month from Monday to Friday that is nearest to a day, within its month."""
    if day.weekday() == _SATURDAY:
        return day.day - 1 if day.day > 1 else 3
    if day.weekday() == _SATURDAY + 1:
        return day.day + 1 if day.day < last else day.day - 2
    return day.day


def _is_weekday(day: date, text: str, numbers: AbstractSet[int]) -> bool:
    number = day.isoweekday() % 7 + 1  # 1 is Sunday
    name, hash_sign, count = text.partition("#")
    if hash_sign:
        return number == _number(_FIELDS[4], name) and (day.day - 1) // 7 + 1 == int(count)
    if text.endswith("L") and len(text) > 1:
        is_last = day.day + 7 > monthrange(day.year, day.month)[1]
        return is_last and number == _number(_FIELDS[4], text[:-1])
    return number in (numbers if text != "L" else {7})


def _numbers(field: _Field, value: str) -> frozenset[int]:
    """Return the numbers that a value of a field stands for; none for one of days with a letter of its own."""
    return frozenset(number for part in value.split(",") for number in _numbers_of_part(field, part))


def _numbers_of_part(field: _Field, part: str) -> Iterable[int]:
    span, slash, step = part.partition("/")
    first, dash, last = span.partition("-")
    start = field.lowest if span == "*" else _number(field, first)
    if start is None:
        return ()
    end = _number(field, last) if dash else None
    if end is None:
        end = field.highest if slash or span == "*" else start
    numbers = (
        range(start, end + 1) if start <= end else (*range(start, field.highest + 1), *range(field.lowest, end + 1))
    )
    return numbers[:: int(step)] if slash else numbers


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
    else:
        yield from _list_field_problems(values)


def _list_field_problems(values: Sequence[str]) -> Iterator[str]:
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
