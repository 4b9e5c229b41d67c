from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fakes.builders import make_definition
from relaunch.core.definitions.definition import ScheduleTrigger, schedule_key, trigger_origins
from relaunch.core.definitions.event_pattern import pattern_key
from relaunch.core.triggers.events import ScheduledTime, trigger_keys
from relaunch.core.triggers.schedules import (
    SKIPPED_AFTER,
    ChangedSchedule,
    FoundSchedule,
    Schedule,
    compare_schedules,
    has_schedules,
    schedule_input,
    wanted_schedules,
)
from relaunch.core.triggers.upload_rules import RuleChange
from unit.core.triggers.matched import UPLOAD, UPLOAD_TRIGGER, facts_of, matched, reason_against

SKIPS = ScheduleTrigger("cron(0 6 ? * MON-FRI *)", "Europe/Berlin")
CATCHES_UP = replace(SKIPS, catches_up=True)
AT = datetime(2026, 11, 3, 5, 0, tzinfo=UTC)


def time_of(trigger: ScheduleTrigger, late: timedelta = timedelta(0)) -> ScheduledTime:
    return ScheduledTime("schedule:2026-11-03T05:00:00Z", schedule_key(trigger), AT, handled_at=AT + late)


def test_a_schedule_has_the_same_key_in_every_release() -> None:
    assert schedule_key(SKIPS) == pattern_key("cron(0 6 ? * MON-FRI *) Europe/Berlin skip")
    assert schedule_key(CATCHES_UP) == pattern_key("cron(0 6 ? * MON-FRI *) Europe/Berlin catch_up")


def test_the_training_is_told_its_time() -> None:
    variables = {"RELAUNCH_SCHEDULED_TIME": "2026-11-03T05:00:00Z"}

    assert facts_of(time_of(SKIPS), SKIPS) == ("schedule at 2026-11-03T05:00:00Z", variables)


def test_a_time_is_found_under_the_origin_of_its_trigger() -> None:
    assert trigger_origins(make_definition(triggers=(SKIPS,))) == {trigger_keys(time_of(SKIPS))}


def test_another_schedule_or_another_event_does_not_match() -> None:
    other = replace(SKIPS, time_zone="UTC")

    for event, trigger in ((time_of(SKIPS), other), (time_of(SKIPS), UPLOAD_TRIGGER), (UPLOAD, SKIPS)):
        assert reason_against(event, trigger) == "no trigger of resnet watches where the event comes from"


def test_a_time_that_was_missed_starts_its_job_late_or_none() -> None:
    assert matched(time_of(SKIPS, SKIPPED_AFTER), SKIPS)
    assert matched(time_of(CATCHES_UP, timedelta(days=3)), CATCHES_UP)
    assert reason_against(time_of(SKIPS, timedelta(hours=900)), SKIPS) == (
        "the time was missed by 900.0 hours, and `missed` is skip: with catch_up it would start a job"
    )


def test_definitions_that_say_the_same_share_a_schedule() -> None:
    definitions = [make_definition(name=name, triggers=(SKIPS, CATCHES_UP)) for name in ("a", "b")]

    assert {(str(each), each.sent_for) for each in wanted_schedules(definitions)} == {
        ("cron(0 6 ? * MON-FRI *) Europe/Berlin", timedelta(hours=1)),
        ("cron(0 6 ? * MON-FRI *) Europe/Berlin", timedelta(days=1)),
    }
    assert has_schedules(definitions)
    assert not has_schedules([make_definition()])


SCHEDULE = Schedule("abc", "rate(1 hour)", "UTC", timedelta(hours=1))


@pytest.mark.parametrize(
    ("found", "changes"),
    [
        ([], [ChangedSchedule(RuleChange.CREATED, SCHEDULE)]),
        ([FoundSchedule(SCHEDULE, is_complete=True)], []),
        ([FoundSchedule(SCHEDULE, is_complete=False)], [ChangedSchedule(RuleChange.REPLACED, SCHEDULE)]),
        (
            [FoundSchedule(replace(SCHEDULE, time_zone="Asia/Tokyo"), is_complete=True)],
            [ChangedSchedule(RuleChange.REPLACED, SCHEDULE)],
        ),
    ],
)
def test_a_schedule_is_put_unless_it_is_as_it_should_be(
    found: list[FoundSchedule], changes: list[ChangedSchedule]
) -> None:
    assert list(compare_schedules([SCHEDULE], found)) == changes


def test_a_schedule_that_nobody_needs_is_removed() -> None:
    found = [FoundSchedule(SCHEDULE, is_complete=True)]

    assert compare_schedules([], found) == (ChangedSchedule(RuleChange.REMOVED, SCHEDULE),)


def test_the_time_is_put_in_by_scheduler() -> None:
    assert schedule_input("abc") == (
        '{"source":"scheduler","format":1,"key":"abc","scheduled_time":"<aws.scheduler.scheduled-time>"}'
    )
