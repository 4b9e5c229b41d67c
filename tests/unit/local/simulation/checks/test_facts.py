"""What the simulated account knows of stops that hosts do not confirm, and of agents that were away."""

from datetime import timedelta
from typing import Any

import pytest

from relaunch_local.ecs import Clock
from relaunch_local.simulation.checks.facts import TASK_STATE_CHANGE, AccountFacts

TASK, HOST, MINUTE = "arn:task", "i-1", timedelta(minutes=1)


def event(kind: str, **detail: Any) -> dict[str, Any]:
    return {"detail-type": kind, "detail": detail}


@pytest.mark.parametrize(
    ("desired", "minutes", "is_long"), [("STOPPED", 10, True), ("STOPPED", 9, False), ("RUNNING", 60, False)]
)
def test_a_task_stops_for_long_once_ecs_has_said_so_for_ten_minutes(
    desired: str, minutes: int, *, is_long: bool
) -> None:
    clock = Clock()
    facts = AccountFacts(clock, lambda _arn: HOST)
    facts.observe(event(TASK_STATE_CHANGE, taskArn=TASK, lastStatus="RUNNING", desiredStatus=desired))

    clock.advance_to(clock.now() + minutes * MINUTE)

    assert facts.stops_for_long(TASK) is is_long


def test_the_time_for_which_an_agent_was_away_is_added_up_between_two_times() -> None:
    clock = Clock()
    began_at = clock.now()
    facts = AccountFacts(clock, lambda _arn: HOST)
    for minute, is_connected in ((10, False), (20, True), (30, False)):
        clock.advance_to(began_at + minute * MINUTE)
        facts.observe(event("ECS Container Instance State Change", ec2InstanceId=HOST, agentConnected=is_connected))

    assert facts.away_time(HOST, began_at, began_at + 5 * MINUTE) == timedelta(0)
    assert facts.away_time(HOST, began_at + 15 * MINUTE, began_at + 40 * MINUTE) == 15 * MINUTE
    assert facts.away_time("i-2", began_at, began_at + 40 * MINUTE) == timedelta(0)


def test_a_task_that_runtask_never_named_is_unplaced_once_ecs_has_forgotten_it() -> None:
    facts = AccountFacts(Clock(), lambda _arn: HOST)
    facts.forgotten = {"named", "unanswered"}

    facts.message_handled("launch_attempt", "{}", {"named"}, has_failed=False)

    assert [each for each in ("named", "unanswered", "described") if facts.is_unplaced(each)] == ["unanswered"]


@pytest.mark.parametrize(
    ("is_forgotten", "minutes", "is_unknown"), [(False, 50, False), (False, 70, True), (True, 50, True)]
)
def test_a_task_is_unknown_that_was_named_only_when_ecs_did_not_describe_it_any_more(
    is_forgotten: bool, minutes: int, *, is_unknown: bool
) -> None:
    clock = Clock()
    facts = AccountFacts(clock, lambda _arn: HOST)
    facts.forgotten = {TASK} if is_forgotten else set()
    stopped_at = clock.now()
    clock.advance_to(stopped_at + minutes * MINUTE)

    facts.message_handled("launch_attempt", "{}", {TASK}, has_failed=False)

    assert facts.is_unknown(TASK, stopped_at) is is_unknown
