"""A time of a schedule: one job of a definition, however often and by whichever schedule it comes."""

from datetime import UTC, timedelta

import pytest

from fakes.builders import make_definition
from fakes.story import Story
from relaunch.core.definitions.definition import ScheduleTrigger, schedule_key
from relaunch.core.triggers.events import ScheduledTime
from relaunch.usecases.submit_job import submit_event

SKIPS = ScheduleTrigger("rate(1 hour)")
CATCHES_UP = ScheduleTrigger("cron(0 * * * ? *)", catches_up=True)


def time_of(story: Story, trigger: ScheduleTrigger, late: timedelta = timedelta(minutes=1)) -> ScheduledTime:
    at = (story.now - late).astimezone(UTC)
    return ScheduledTime(f"schedule:{at:%Y-%m-%dT%H:%M:%SZ}", schedule_key(trigger), at)


def test_a_time_that_comes_twice_or_of_two_schedules_is_one_job() -> None:
    story = Story(make_definition(triggers=(SKIPS, CATCHES_UP)))

    submissions = [
        each for trigger in (SKIPS, SKIPS, CATCHES_UP) for each in submit_event(time_of(story, trigger), story.deps)
    ]

    assert [each.is_new for each in submissions] == [True, False, False]


@pytest.mark.parametrize(("trigger", "count"), [(SKIPS, 0), (CATCHES_UP, 1)])
def test_a_time_that_is_hours_late_starts_its_job_where_it_is_caught_up(trigger: ScheduleTrigger, count: int) -> None:
    story = Story(make_definition(triggers=(trigger,)))

    submissions = submit_event(time_of(story, trigger, timedelta(hours=5)), story.deps)

    assert sum(each.is_new for each in submissions) == count
