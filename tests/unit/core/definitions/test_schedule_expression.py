import pytest

from relaunch.core.definitions.schedule_expression import find_schedule_problem


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
        ("rate(1 hours)", "write 1 hour"),
        ("rate(2 hour)", "write 2 hours"),
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
