"""A simulated year of schedules in time zones whose clocks change: every time is one job, none is missed or doubled.

What is expected is written down here from "Daylight savings time" (EventBridge Scheduler User Guide), and from the days
on which clocks change in 2026 (IANA time zones). Scheduler sends some times twice, late and out of order, and `apply`
runs every week.
"""

from collections import Counter
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from fakes.builders import make_definition
from fakes.story import Story
from relaunch.core.definitions.definition import ScheduleTrigger
from relaunch.core.definitions.schedule_expression import next_time
from relaunch.core.jobs.limits import StackLimits
from relaunch.entrypoints.intake import handle_message
from relaunch.usecases.arrange_schedules import add_schedules, settle_schedules
from relaunch_local.ecs import Clock
from relaunch_local.ecs.clock import EPOCH
from relaunch_local.simulation.aws.calls import Calls
from relaunch_local.simulation.aws.outages import Outages
from relaunch_local.simulation.aws.runtime import Runtime
from relaunch_local.simulation.aws.scheduler import GroupOfStack, ModelScheduler
from relaunch_local.simulation.chance import Chance

DAY = timedelta(days=1)
WEEK = timedelta(days=7)
LAST_DAY = timedelta(hours=26)
"""For so long after the year what is late still comes."""
MANY = 100_000
EVERY_DAY = {date(2026, 1, 2) + number * DAY for number in range(364)}
"""The days of 2026 that are within the simulated year in every time zone."""


class Year:
    """The year 2026 with one definition that has one schedule; `jobs` are the times for which it accepted jobs."""

    def __init__(self, expression: str, time_zone: str) -> None:
        trigger = ScheduleTrigger(expression, time_zone, catches_up=True)
        self.clock = Clock()
        self.story = Story(
            make_definition(triggers=(trigger,), max_waiting_jobs=MANY), limits=StackLimits(max_waiting_jobs=MANY)
        )
        chance = Chance(7, self.clock.now)
        outages = Outages(self.clock, chance)
        self.scheduler = ModelScheduler(self.clock, chance, self, outages)  # type: ignore[arg-type]
        self.group = GroupOfStack(self.scheduler, Calls(Runtime(self.clock, chance, lambda _line: None), chance))
        self.messages = Counter[str]()
        for number in range(53):
            self.clock.call_later((number * WEEK).total_seconds(), self._apply)
        self.clock.advance_to(EPOCH + 365 * DAY + LAST_DAY)
        job_ids = self.story.jobs.load_open(MANY)
        named = [self.story.job(job_id).trigger.environment["RELAUNCH_SCHEDULED_TIME"] for job_id in job_ids]
        found = sorted(datetime.fromisoformat(each).astimezone(ZoneInfo(time_zone)) for each in named)
        self.jobs = [each for each in found if each.date() in EVERY_DAY]

    def _apply(self) -> None:
        definitions = self.story.deps.definitions
        add_schedules(definitions.list_definitions(), self.group.adapter, no_pause)
        settle_schedules(definitions, self.group.adapter, no_pause)

    def send(self, queue: str, body: str) -> None:
        """Handle a message that Scheduler sends."""
        assert queue == "UploadsQueue"
        self.messages[body] += 1
        self.story.clock.set(self.clock.now())
        handle_message(body, self.story.deps)


def no_pause(_seconds: float) -> None:
    raise AssertionError("nothing failed")


year_of = cache(Year)


def days_of(jobs: list[datetime], at: time) -> Counter[date]:
    """Return how many jobs each day has, all of them at this time of the day."""
    assert {each.time() for each in jobs} == {at}
    return Counter(each.date() for each in jobs)


@pytest.mark.parametrize(
    ("time_zone", "at", "left_out"),
    [
        # Clocks go from 2:00 to 3:00 on the last Sunday of March, and back at 3:00 on the last one of October.
        ("Europe/Berlin", time(2, 30), {date(2026, 3, 29)}),
        # From 2:00 to 3:00 on the second Sunday of March, and back at 2:00 on the first one of November: 1:30 twice.
        ("America/New_York", time(2, 30), {date(2026, 3, 8)}),
        ("America/New_York", time(1, 30), set()),
        # South of the equator: from 2:00 to 3:00 on the first Sunday of October, back at 3:00 on that of April.
        ("Australia/Sydney", time(2, 30), {date(2026, 10, 4)}),
        # By half an hour, from 2:00 to 2:30, and back at 2:00: 1:45 twice.
        ("Australia/Lord_Howe", time(2, 15), {date(2026, 10, 4)}),
        ("Australia/Lord_Howe", time(1, 45), set()),
        # At midnight: from 0:00 to 1:00 on the first Sunday of September, back at 24:00 of 4 April: 23:30 twice.
        ("America/Santiago", time(0, 30), {date(2026, 9, 6)}),
        ("America/Santiago", time(23, 30), set()),
        ("Asia/Kolkata", time(2, 30), set()),
    ],
)
def test_every_day_of_a_year_has_one_job_but_for_the_one_whose_time_clocks_leave_out(
    time_zone: str, at: time, left_out: set[date]
) -> None:
    year = year_of(f"cron({at.minute} {at.hour} * * ? *)", time_zone)

    assert days_of(year.jobs, at) == dict.fromkeys(EVERY_DAY - left_out, 1)
    # What is shown of a schedule are the same times.
    shown = list_shown(f"cron({at.minute} {at.hour} * * ? *)", time_zone)
    assert [each.astimezone(UTC) for each in year.jobs] == shown
    assert max(year.messages.values()) > 1


def list_shown(expression: str, time_zone: str) -> list[datetime]:
    """Return the times of the year that `apply` would show, one after the other."""
    zone = ZoneInfo(time_zone)
    times = [datetime(2026, 1, 1, 23, 59, 59, tzinfo=zone).astimezone(UTC)]
    while (following := next_time(expression, zone, times[-1])) and following.astimezone(zone).year == 2026:
        times.append(following)
    return times[1:]


@pytest.mark.parametrize(("expression", "interval"), [("rate(9 hours)", timedelta(hours=9)), ("rate(1 day)", DAY)])
def test_a_rate_counts_on_whatever_clocks_do(expression: str, interval: timedelta) -> None:
    year = year_of(expression, "Europe/Berlin")

    times = [each.astimezone(UTC) for each in year.jobs]
    assert {later - sooner for sooner, later in pairwise(times)} == {interval}
    assert (times[0] - EPOCH) % interval == timedelta(0)
    assert times[-1] - times[0] > 363 * DAY - interval


def test_hours_that_clocks_show_twice_have_one_job_and_those_that_they_leave_out_none() -> None:
    year = year_of("cron(30 0-5 ? * SUN *)", "Europe/Berlin")

    hours = Counter(each.date() for each in year.jobs)
    assert [each.hour for each in year.jobs if each.date() == date(2026, 3, 29)] == [0, 1, 3, 4, 5]
    assert [each.hour for each in year.jobs if each.date() == date(2026, 10, 25)] == [0, 1, 2, 3, 4, 5]
    assert sum(hours.values()) == 52 * 6 - 1
