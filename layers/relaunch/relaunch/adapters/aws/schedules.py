"""The stack's group of schedules at EventBridge Scheduler; only `apply` uses it.

ListSchedules, GetSchedule, CreateSchedule, UpdateSchedule (which needs all members again), DeleteSchedule.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from relaunch.adapters.aws.errors import AwsError, error_code, to_port_error
from relaunch.core.triggers.schedules import FoundSchedule, Schedule, schedule_input
from relaunch.ports import TransientError

_NOT_FOUND = "ResourceNotFoundException"
_CONFLICT = "ConflictException"
_RETRIES = 185
_HINTS = {
    "ServiceQuotaExceededException": "the account has as many schedules as it may: remove some, or raise the quota",
    "ValidationException": "EventBridge Scheduler refuses the schedule",
}


class SchedulerGroup:
    """Implements Schedules; the name of the group is empty where the stack has none."""

    def __init__(self, client: Any, group: str, role_arn: str, queue_arn: str, dead_letter_queue_arn: str) -> None:
        self._client = client
        self._group = group
        self._role_arn = role_arn
        self._queue_arn = queue_arn
        self._dead_letter_queue_arn = dead_letter_queue_arn

    @property
    def takes_schedules(self) -> bool:
        return bool(self._group)

    def list_schedules(self) -> list[FoundSchedule]:
        if not self._group:
            return []
        with _errors("listing the schedules"):
            pages = self._client.get_paginator("list_schedules").paginate(GroupName=self._group)
            names = [each["Name"] for page in pages for each in page["Schedules"]]
        found = [self._found(name) for name in names]
        return [each for each in found if each is not None]

    def _found(self, name: str) -> FoundSchedule | None:
        """Return a schedule; None if somebody else has removed it meanwhile."""
        with _errors(f"reading the schedule {name}"):
            try:
                answer = self._client.get_schedule(Name=name, GroupName=self._group)
            except self._client.exceptions.ResourceNotFoundException:
                return None
        target = answer.get("Target", {})
        seconds = target.get("RetryPolicy", {}).get("MaximumEventAgeInSeconds", 0)
        schedule = Schedule(
            name,
            answer.get("ScheduleExpression", ""),
            answer.get("ScheduleExpressionTimezone", "UTC"),
            timedelta(seconds=seconds),
        )
        wanted = self._parameters(schedule)
        return FoundSchedule(schedule, is_complete=all(answer.get(key) == value for key, value in wanted.items()))

    def put_schedule(self, schedule: Schedule) -> None:
        parameters = self._parameters(schedule)
        with _errors(f"putting the schedule {schedule}"):
            try:
                self._client.create_schedule(**parameters)
            except self._client.exceptions.ConflictException:
                self._client.update_schedule(**parameters)

    def remove_schedule(self, name: str) -> None:
        with _errors(f"removing the schedule {name}"):
            try:
                self._client.delete_schedule(Name=name, GroupName=self._group)
            except self._client.exceptions.ResourceNotFoundException:
                return

    def _parameters(self, schedule: Schedule) -> dict[str, Any]:
        return {
            "Name": schedule.name,
            "GroupName": self._group,
            "State": "ENABLED",
            "ScheduleExpression": schedule.expression,
            "ScheduleExpressionTimezone": schedule.time_zone,
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "Target": {
                "Arn": self._queue_arn,
                "RoleArn": self._role_arn,
                "Input": schedule_input(schedule.name),
                "RetryPolicy": {
                    "MaximumEventAgeInSeconds": int(schedule.sent_for.total_seconds()),
                    "MaximumRetryAttempts": _RETRIES,
                },
                "DeadLetterConfig": {"Arn": self._dead_letter_queue_arn},
            },
        }


@contextmanager
def _errors(doing: str) -> Iterator[None]:
    try:
        yield
    except AwsError as error:
        code = error_code(error)
        if code in (_NOT_FOUND, _CONFLICT):  # others change it at the same time
            raise TransientError(f"{doing}: {error}") from error
        raise to_port_error(error, f"{doing}: {_HINTS[code]}" if code in _HINTS else doing) from error
