"""Schedules: against moto, which keeps them, and against scripted answers, which fail."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from botocore.stub import Stubber

from fakes.aws import Faults, aws_in_process, make_client
from relaunch.adapters.aws.schedules import SchedulerGroup
from relaunch.core.triggers.schedules import FoundSchedule, Schedule, schedule_input
from relaunch.ports import PermanentError, TransientError

GROUP = "relaunch-Schedules-Z1Y2"
ARNS = (
    "arn:aws:iam::123456789012:role/relaunch-SchedulesRole-1",
    "arn:aws:sqs:us-east-1:123456789012:uploads",
    "arn:aws:sqs:us-east-1:123456789012:intake-dead",
)
SCHEDULE = Schedule("abcdefghijkl", "cron(0 6 ? * MON-FRI *)", "Europe/Berlin", timedelta(hours=1))


@pytest.fixture
def client() -> Iterator[Any]:
    with aws_in_process():
        made = make_client("scheduler")
        made.create_schedule_group(Name=GROUP)
        yield made


@pytest.fixture
def schedules(client: Any) -> SchedulerGroup:
    return SchedulerGroup(client, GROUP, *ARNS)


def test_a_schedule_is_found_as_it_was_put(schedules: SchedulerGroup, client: Any) -> None:
    schedules.put_schedule(SCHEDULE)
    schedules.put_schedule(SCHEDULE)

    assert schedules.list_schedules() == [FoundSchedule(SCHEDULE, is_complete=True)]
    found = client.get_schedule(Name=SCHEDULE.name, GroupName=GROUP)
    assert found["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert found["Target"] == {
        "RoleArn": ARNS[0],
        "Arn": ARNS[1],
        "DeadLetterConfig": {"Arn": ARNS[2]},
        "Input": schedule_input(SCHEDULE.name),
        "RetryPolicy": {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 185},
    }


def test_a_schedule_is_removed_and_removing_it_again_changes_nothing(schedules: SchedulerGroup, client: Any) -> None:
    schedules.put_schedule(SCHEDULE)
    client.create_schedule(
        Name="somebodys",
        ScheduleExpression="rate(1 day)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": ARNS[1], "RoleArn": ARNS[0]},
    )

    schedules.remove_schedule(SCHEDULE.name)
    schedules.remove_schedule(SCHEDULE.name)

    assert schedules.list_schedules() == []
    assert len(client.list_schedules()["Schedules"]) == 1


def test_a_schedule_that_somebody_changed_is_put_right(schedules: SchedulerGroup, client: Any) -> None:
    schedules.put_schedule(SCHEDULE)
    client.update_schedule(
        Name=SCHEDULE.name,
        GroupName=GROUP,
        State="DISABLED",
        ScheduleExpression=SCHEDULE.expression,
        ScheduleExpressionTimezone=SCHEDULE.time_zone,
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": ARNS[1], "RoleArn": ARNS[0]},
    )
    assert [each.is_complete for each in schedules.list_schedules()] == [False]

    schedules.put_schedule(SCHEDULE)

    assert schedules.list_schedules() == [FoundSchedule(SCHEDULE, is_complete=True)]


def test_a_stack_without_a_group_has_none() -> None:
    schedules = SchedulerGroup(None, "", "", "", "")

    assert not schedules.takes_schedules
    assert schedules.list_schedules() == []


@pytest.mark.parametrize(
    ("code", "error", "hint"),
    [
        ("ThrottlingException", TransientError, ""),
        ("InternalServerException", TransientError, ""),
        ("ResourceNotFoundException", TransientError, ""),
        ("ServiceQuotaExceededException", PermanentError, "as many schedules as it may"),
        ("ValidationException", PermanentError, "EventBridge Scheduler refuses the schedule"),
        ("AccessDeniedException", PermanentError, "AccessDenied"),
    ],
)
def test_a_refusal_says_what_to_do(
    schedules: SchedulerGroup, client: Any, code: str, error: type[Exception], hint: str
) -> None:
    status = 500 if code == "InternalServerException" else 400
    with Stubber(client) as stub:
        stub.add_client_error("create_schedule", code, http_status_code=status)
        with pytest.raises(error, match=rf"putting the schedule cron\(0 6 .* Europe/Berlin.*{hint}"):
            schedules.put_schedule(SCHEDULE)


def test_a_schedule_that_was_created_although_the_call_failed_is_put_again(
    schedules: SchedulerGroup, client: Any
) -> None:
    Faults(client, "scheduler", "CreateSchedule").after = 1

    with pytest.raises(TransientError):
        schedules.put_schedule(SCHEDULE)
    schedules.put_schedule(SCHEDULE)

    assert schedules.list_schedules() == [FoundSchedule(SCHEDULE, is_complete=True)]


def test_a_schedule_that_somebody_removes_meanwhile_is_not_found(schedules: SchedulerGroup, client: Any) -> None:
    schedules.put_schedule(SCHEDULE)
    reading = Faults(client, "scheduler", "GetSchedule")
    reading.on_send = lambda: schedules.remove_schedule(SCHEDULE.name)

    assert schedules.list_schedules() == []
