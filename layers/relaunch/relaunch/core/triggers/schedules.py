"""The schedules of EventBridge Scheduler that definitions need, and how they differ from those there are.

A schedule is named by the key of what it says, as its messages are, and lies in the stack's group. Definitions that say
the same share it. Source: CreateSchedule in the API reference of EventBridge Scheduler, and "Context attributes" in its
User Guide.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from relaunch.core.definitions.definition import JobDefinition, ScheduleTrigger, schedule_key
from relaunch.core.records import dataclass
from relaunch.core.triggers.upload_rules import RuleChange

SCHEDULE_MESSAGE = "scheduler"
"""The `source` of a message that has a time of a schedule, and the schedule's key."""
SCHEDULE_MESSAGE_FORMAT = 1
SKIPPED_AFTER = timedelta(hours=1)
"""How late a time is that a trigger with `missed: skip` skips."""
CAUGHT_UP_FOR = timedelta(days=1)
"""For how long Scheduler tries to send a time that is caught up: its longest."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule, `name` follows from the others; the times that it missed are sent for as long as `sent_for`."""

    name: str
    expression: str
    time_zone: str
    sent_for: timedelta

    def __str__(self) -> str:
        """Return what it says."""
        return f"{self.expression} {self.time_zone}"


@dataclass(frozen=True, slots=True)
class FoundSchedule:
    """A schedule of the stack's group; `is_complete`: it is enabled and is as `apply` makes it."""

    schedule: Schedule
    is_complete: bool


@dataclass(frozen=True, slots=True)
class ChangedSchedule:
    """A schedule to be created, replaced or removed."""

    change: RuleChange
    schedule: Schedule


def has_schedules(definitions: Iterable[JobDefinition]) -> bool:
    """Return whether a definition has a schedule: without one nothing is asked of Scheduler."""
    return any(isinstance(trigger, ScheduleTrigger) for each in definitions for trigger in each.triggers)


def wanted_schedules(definitions: Iterable[JobDefinition]) -> tuple[Schedule, ...]:
    """Return the schedules that definitions need."""
    found = {trigger for each in definitions for trigger in each.triggers if isinstance(trigger, ScheduleTrigger)}
    return tuple(
        sorted(
            (
                Schedule(
                    schedule_key(each),
                    each.expression,
                    each.time_zone,
                    CAUGHT_UP_FOR if each.catches_up else SKIPPED_AFTER,
                )
                for each in found
            ),
            key=lambda schedule: schedule.name,
        )
    )


def compare_schedules(wanted: Sequence[Schedule], found: Iterable[FoundSchedule]) -> tuple[ChangedSchedule, ...]:
    """Return the changes that make the group's schedules those that are wanted; removals are last."""
    known = {each.schedule.name: each for each in found}
    names = {each.name for each in wanted}
    changes = [
        ChangedSchedule(RuleChange.REPLACED if each.name in known else RuleChange.CREATED, each)
        for each in wanted
        if (there := known.get(each.name)) is None or there != FoundSchedule(each, is_complete=True)
    ]
    removed = [ChangedSchedule(RuleChange.REMOVED, each.schedule) for name, each in known.items() if name not in names]
    return (*changes, *removed)


def schedule_input(name: str) -> str:
    """Return what the queue gets at each time, in which Scheduler puts the time for its context attribute."""
    return (
        f'{{"source":"{SCHEDULE_MESSAGE}","format":{SCHEDULE_MESSAGE_FORMAT},"key":"{name}",'
        '"scheduled_time":"<aws.scheduler.scheduled-time>"}'
    )
