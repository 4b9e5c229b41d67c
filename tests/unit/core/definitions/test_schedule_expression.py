from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from relaunch.core.definitions.schedule_expression import find_schedule_problem, next_time


@pytest.mark.parametrize(
    "expression",
    [
        "rate(1 minute)",
        "rate(36 hours)",
        "rate(1 day)",
        "cron(0 6 ? * MON-FRI *)",
        "cron(0/15 8-18 1,15 JAN,jul ? 2026-2028)",
        "cron(30 2 L * ? *)",
        "cron(30 2 LW * ? *)",
        "cron(30 2 15W * ? *)",
        "cron(30 2 ? * 6L *)",
        "cron(30 2 ? * FRI#2 *)",
        "cron(*/5 * * * ? *)",
    ],
)
def test_what_scheduler_takes_is_taken(expression: str) -> None:
    assert find_schedule_problem(expression) == ""


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("0 6 * * *", "`0 6 * * *` is no schedule: write it like cron(0 6 ? * MON-FRI *) or rate(1 hour)"),
        ("at(2026-11-20T13:00:00)", "`at(2026-11-20T13:00:00)` is no schedule"),
        ("rate(0 hours)", "a rate is of 1 or more"),
        ("rate(2 weeks)", "`weeks` is no unit"),
        ("cron(0 6 * * *)", "cron has 5 fields, and needs six"),
        ("cron(60 6 ? * MON *)", "`60` is no minutes: 0 to 59, `*`"),
        ("cron(0 24 ? * MON *)", "`24` is no hours"),
        ("cron(0 6 ? 13 MON *)", "`13` is no month: 1 to 12 or JAN to DEC"),
        ("cron(0 6 ? * 0 *)", "`0` is no day of the week: 1 to 7 or SUN to SAT"),
        ("cron(0 6 ? * MON#6 *)", "`MON#6` is no day of the week"),
        ("cron(0 6 32W * ? *)", "`32W` is no day of the month"),
        ("cron(0/0 6 ? * MON *)", "`0/0` is no minutes"),
        ("cron(0 6 ? * MON 1969)", "`1969` is no year"),
        ("cron(0 6 * * MON *)", "one of day of the month and day of the week must be `?`"),
        ("cron(0 6 ? * ? *)", "one of day of the month and day of the week must be `?`"),
        (f"cron({'0' * 300})", "it has 306 characters, 256 are allowed"),
    ],
)
def test_what_scheduler_would_refuse_is_told(expression: str, problem: str) -> None:
    assert find_schedule_problem(expression).startswith(problem)


@pytest.mark.parametrize(("number", "unit"), [(1, "hour"), (2, "hours")])
def test_a_unit_is_written_for_its_number(number: int, unit: str) -> None:
    wrong = "hours" if number == 1 else "hour"

    assert find_schedule_problem(f"rate({number} {wrong})") == f"write {number} {unit}"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("expression", "zone", "after", "expected"),
    [
        ("cron(0 6 ? * MON-FRI *)", "Europe/Berlin", "2026-11-27T05:00:00+00:00", "2026-11-30T05:00:00+00:00"),
        ("cron(0 6 ? * MON-FRI *)", "Europe/Berlin", "2026-11-27T04:59:00+00:00", "2026-11-27T05:00:00+00:00"),
        ("cron(0/20 8-9 * * ? *)", "UTC", "2026-01-01T08:40:00+00:00", "2026-01-01T09:00:00+00:00"),
        ("cron(5 0 ? * FRI-SUN *)", "UTC", "2026-01-03T12:00:00+00:00", "2026-01-04T00:05:00+00:00"),
        ("cron(0 0 L FEB ? *)", "UTC", "2026-12-01T00:00:00+00:00", "2027-02-28T00:00:00+00:00"),
        ("cron(0 0 LW * ? *)", "UTC", "2026-01-15T00:00:00+00:00", "2026-01-30T00:00:00+00:00"),
        ("cron(0 0 1W * ? *)", "UTC", "2026-07-15T00:00:00+00:00", "2026-08-03T00:00:00+00:00"),
        ("cron(0 0 15W * ? *)", "UTC", "2026-08-01T00:00:00+00:00", "2026-08-14T00:00:00+00:00"),
        ("cron(0 0 31W MAY ? *)", "UTC", "2026-05-01T00:00:00+00:00", "2026-05-29T00:00:00+00:00"),
        ("cron(0 0 30W AUG ? *)", "UTC", "2026-08-01T00:00:00+00:00", "2026-08-31T00:00:00+00:00"),
        ("cron(0 0 ? * 6L *)", "UTC", "2026-01-01T00:00:00+00:00", "2026-01-30T00:00:00+00:00"),
        ("cron(0 0 ? * MON#2 *)", "UTC", "2026-01-01T00:00:00+00:00", "2026-01-12T00:00:00+00:00"),
        ("cron(0 0 ? * FRI#1 *)", "UTC", "2026-08-01T00:00:00+00:00", "2026-08-07T00:00:00+00:00"),
        ("cron(0 0 ? * SAT#2 *)", "UTC", "2026-08-01T00:00:00+00:00", "2026-08-08T00:00:00+00:00"),
        ("cron(0 0 ? * SAT#5 *)", "UTC", "2026-08-01T00:00:00+00:00", "2026-08-29T00:00:00+00:00"),
        ("cron(0 0 ? * 2L *)", "UTC", "2026-08-01T00:00:00+00:00", "2026-08-31T00:00:00+00:00"),
        ("cron(0 0 2W MAY ? *)", "UTC", "2026-04-15T00:00:00+00:00", "2026-05-01T00:00:00+00:00"),
        ("cron(0 0 ? * L *)", "UTC", "2026-01-01T00:00:00+00:00", "2026-01-03T00:00:00+00:00"),
        ("cron(0 0 29 2 ? *)", "UTC", "2026-01-01T00:00:00+00:00", "2028-02-29T00:00:00+00:00"),
        ("cron(0 0 1 1 ? 2030-2031)", "UTC", "2028-01-02T00:00:00+00:00", "2030-01-01T00:00:00+00:00"),
        ("cron(0 0 1 1 ? 2025)", "UTC", "2026-01-01T00:00:00+00:00", None),
        ("rate(1 hour)", "UTC", "2026-01-01T00:00:00+00:00", None),
        ("nonsense", "UTC", "2026-01-01T00:00:00+00:00", None),
    ],
)
def test_the_next_time_of_an_expression(expression: str, zone: str, after: str, expected: str | None) -> None:
    assert next_time(expression, ZoneInfo(zone), at(after)) == (at(expected) if expected else None)


@pytest.mark.parametrize(
    ("zone", "hour", "left_out"),
    [
        ("Europe/Berlin", 2, {date(2027, 3, 28)}),
        ("Europe/Berlin", 6, set()),
        ("America/New_York", 2, {date(2027, 3, 14)}),
        ("America/New_York", 1, set()),  # twice on 7 November
    ],
)
def test_over_a_year_each_day_has_its_time_once_but_for_the_one_that_the_clocks_leave_out(
    zone: str, hour: int, left_out: set[date]
) -> None:
    place = ZoneInfo(zone)
    moment = datetime(2027, 1, 1, tzinfo=place).astimezone(UTC) - timedelta(minutes=1)
    days: list[date] = []
    while (following := next_time(f"cron(30 {hour} * * ? *)", place, moment)) and following.astimezone(
        place
    ).year == 2027:
        assert (following.astimezone(place).hour, following.astimezone(place).minute) == (hour, 30)
        days.append(following.astimezone(place).date())
        moment = following

    every_day = {date(2027, 1, 1) + timedelta(days=number) for number in range(365)}
    assert len(days) == len(set(days))
    assert every_day - set(days) == left_out
