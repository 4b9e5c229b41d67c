"""Schedule expressions that people write, and those that they get wrong.

What Scheduler takes, and when it sends, is in "Schedule types in EventBridge Scheduler" (its User Guide); each is found
apart from the application, day by day.
"""

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from relaunch.core.definitions.schedule_expression import find_schedule_problem, next_time
from relaunch_local.simulation.checks.record import Check

_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_FARTHEST = 800
_MOST = 6
# With what makes Scheduler refuse it: both days, none, five fields, a value that a field does not have, a step of none.
_REFUSED = (
    "cron(0 6 * * * *)",
    "cron(0 6 ? * ? *)",
    "cron(0 6 * * ?)",
    "cron(60 6 * * ? *)",
    "cron(0 24 * * ? *)",
    "cron(0 6 32 * ? *)",
    "cron(0 6 0 * ? *)",
    "cron(0 6 * 13 ? *)",
    "cron(0 6 ? * MOON *)",
    "cron(0 6 ? * MON#6 *)",
    "cron(0 6 ? * 8 *)",
    "cron(0 6 40W * ? *)",
    "cron(0/0 6 * * ? *)",
    "cron(0 6 * * ? 1969)",
    "cron(5- 6 * * ? *)",
    "rate(1 hours)",
    "rate(2 hour)",
    "rate(0 minutes)",
    "rate(5 seconds)",
    "rate(hour)",
    "every day at six",
)
_DayRule = Callable[[datetime], bool]


def ask_for_schedules(check: Check, dice: random.Random, now: datetime) -> None:
    """Check which expressions are taken, and the times that are shown for them."""
    for expression in dice.sample(_REFUSED, 5):
        is_told = bool(_problem_of(expression))
        check("a schedule that Scheduler refuses is refused before", is_told, f"{expression} is taken")
    count = dice.randint(1, 90)
    unit = dice.choice(("minute", "hour", "day"))
    taken = [f"rate({count} {unit}{'' if count == 1 else 's'})", f"rate(1 {unit})"]
    for _ in range(_MOST):
        minutes, hours = _draw_times(dice)
        days, of_month, of_week = _draw_days(dice)
        month = dice.choice(("*", "*", "1-12", dice.choice(_MONTHS), "JAN-JUN,12"))
        expression = f"cron({minutes} {hours} {of_month} {month} {of_week} *)"
        taken.append(expression)
        zone = ZoneInfo(dice.choice(_ZONES))
        expected = _next(minutes, hours, month, days, zone, now)
        shown = _shown(expression, zone, now)
        message = f"{expression} in {zone} after {now}: {shown}, not {expected}"
        check("the time that is shown of a schedule is when Scheduler sends next", shown == expected, message)
    for expression in taken:
        problem = _problem_of(expression)
        check("a schedule that Scheduler takes is taken", not problem, f"{expression}: {problem}")


def _problem_of(expression: str) -> str | None:
    """Return what is said to be wrong; None if nothing is said at all."""
    try:
        return find_schedule_problem(expression)
    except Exception:  # noqa: BLE001 - whatever it is, who asks gets no answer
        return None


def _shown(expression: str, zone: ZoneInfo, now: datetime) -> datetime | str | None:
    try:
        return next_time(expression, zone, now)
    except Exception as error:  # noqa: BLE001 - whatever it is, who asks gets no time
        return repr(error)


def _draw_times(dice: random.Random) -> tuple[str, str]:
    minutes = dice.choice(("0", "30", "5,50", "10-20", "0/20", "*/15", "7-50/10"))
    hours = dice.choice(("6", "0", "*", "8-18", "22-2", "0/6", "9,21"))
    return minutes, hours


def _draw_days(dice: random.Random) -> tuple[_DayRule, str, str]:
    """Return whether a day is one, and the fields of the day of the month and of the week that say so."""
    number = dice.randint(1, 28)
    weekday = dice.randint(1, 7)
    name = _DAYS[weekday - 1]
    nth = dice.randint(1, 4)
    return dice.choice(
        (
            (lambda _day: True, "*", "?"),
            (lambda day: day.day == number, str(number), "?"),
            (lambda day: day.day in (number, 31), f"{number},31", "?"),
            (lambda day: (day + timedelta(days=1)).day == 1, "L", "?"),
            (lambda day: _is_nearest_working_day(day, number), f"{number}W", "?"),
            (lambda day: _weekday(day) == weekday, "?", dice.choice((str(weekday), name))),
            (lambda day: 2 <= _weekday(day) <= 6, "?", dice.choice(("MON-FRI", "2-6"))),
            (lambda day: _weekday(day) == 7, "?", "L"),
            (lambda day: _weekday(day) == weekday and (day + timedelta(days=7)).month != day.month, "?", f"{name}L"),
            (lambda day: _weekday(day) == weekday and 7 * (nth - 1) < day.day <= 7 * nth, "?", f"{weekday}#{nth}"),
        )
    )


def _weekday(day: datetime) -> int:
    """Return the number of a day of the week: 1 is Sunday."""
    return day.isoweekday() % 7 + 1


def _is_nearest_working_day(day: datetime, number: int) -> bool:
    """Return whether no day from Monday to Friday of this month is nearer to the `number`th."""
    wanted = day.replace(day=number)
    near = (wanted + timedelta(days=each) for each in (0, -1, 1, -2, 2))
    nearest = next(each for each in near if each.month == day.month and 2 <= _weekday(each) <= 6)
    return nearest.date() == day.date()


def _next(minutes: str, hours: str, month: str, is_day: _DayRule, zone: ZoneInfo, now: datetime) -> datetime | None:
    first = datetime.combine(now.astimezone(zone).date(), time(12))
    months = set(_numbers(month, 1, 12))
    for day in (first + timedelta(days=number) for number in range(_FARTHEST)):
        if day.month in months and is_day(day):
            for moment in _moments(day, minutes, hours, zone):
                if moment > now:
                    return moment
    return None


def _moments(day: datetime, minutes: str, hours: str, zone: ZoneInfo) -> Iterator[datetime]:
    """Yield the times of a day that the clocks of a zone show, for the first time, in their order."""
    for hour in sorted(set(_numbers(hours, 0, 23))):
        for minute in sorted(set(_numbers(minutes, 0, 59))):
            local = day.replace(hour=hour, minute=minute)
            moment = local.replace(tzinfo=zone).astimezone(UTC)
            if moment.astimezone(zone).replace(tzinfo=None) == local:
                yield moment


def _numbers(text: str, lowest: int, highest: int) -> Iterator[int]:
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        begin = lowest if first == "*" else _number(first)
        is_open = bool(step) or first == "*"
        end = highest if is_open else begin
        if dash:
            end = _number(last)
        every = list(range(begin, end + 1)) if begin <= end else [*range(begin, highest + 1), *range(lowest, end + 1)]
        yield from every[:: int(step or 1)]


def _number(text: str) -> int:
    return _MONTHS.index(text) + 1 if text in _MONTHS else int(text)
