"""Machines whose agent stays away are ended, and those whose agent may come back are not."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import NOW
from fakes.machines import CAPACITY, INSTANCE, NODE, claim, machine
from relaunch.core.machines.absent_agents import (
    AWAY_LIMIT,
    DOUBT_LIMIT,
    IMPAIRED_LIMIT,
    is_away,
    is_doubtful,
    is_outage,
)
from relaunch.core.machines.events import AgentSeen, AgentState, MachineDue, NodeSeen
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.living import HEARTBEAT
from relaunch.core.machines.machine import Machine, MachineState, TellJobs, TerminateInstance
from relaunch.core.machines.requesting import NEXT_LOOK
from relaunch.core.machines.table import decide

LIMITS = MachineLimits()
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
AWAY = AgentSeen(AgentState.AWAY)


def make_away(**fields: object) -> Machine:
    """Return a machine whose agent is away since NOW."""
    return machine(MachineState.READY, away_since=NOW, **fields)


def saved(at: datetime, *, is_impaired: bool = False) -> AgentSeen:
    return AgentSeen(AgentState.AWAY, saved_at=at, is_impaired=is_impaired)


def test_an_agent_that_is_away_is_looked_at_every_minute():
    before = machine(MachineState.READY, wake_at=NOW + HEARTBEAT)

    noted = decide(before, AWAY, NOW, LIMITS).machine
    due = decide(noted, MachineDue(), NOW + NEXT_LOOK, LIMITS).machine

    assert (noted.state, noted.away_since, noted.wake_at) == (MachineState.READY, NOW, NOW + NEXT_LOOK)
    assert (due.away_since, due.wake_at) == (NOW, NOW + 2 * NEXT_LOOK)
    assert due.timeline == before.timeline


def test_noting_that_an_agent_is_away_does_not_put_off_an_earlier_look():
    before = machine(MachineState.READY, wake_at=NOW + SECOND)

    assert decide(before, AWAY, NOW, LIMITS).machine.wake_at == NOW + SECOND


@pytest.mark.parametrize(
    "event",
    [
        AgentSeen(AgentState.CONNECTED),
        AgentSeen(AgentState.OUTAGE),
        NodeSeen(NODE, CAPACITY, is_active=True, at=NOW),
    ],
)
def test_the_clock_starts_anew_when_the_agent_is_back_or_most_agents_are_away(event: AgentSeen | NodeSeen):
    after = decide(make_away(), event, NOW + 2 * AWAY_LIMIT, LIMITS).machine
    again = decide(after, AWAY, NOW + 2 * AWAY_LIMIT + MINUTE, LIMITS).machine

    assert (after.state, after.away_since, after.wake_at) == (MachineState.READY, None, NOW)
    assert again.away_since == NOW + 2 * AWAY_LIMIT + MINUTE


def test_an_event_that_says_that_an_agent_is_away_changes_nothing():
    unheard = NodeSeen(NODE, CAPACITY, is_active=True, at=NOW, is_connected=False)

    assert decide(make_away(), unheard, NOW, LIMITS).is_ignored
    assert decide(machine(MachineState.READY), unheard, NOW, LIMITS).is_ignored


@pytest.mark.parametrize(("is_impaired", "limit"), [(False, AWAY_LIMIT), (True, IMPAIRED_LIMIT)])
def test_a_machine_whose_agent_stays_away_is_terminated_and_gets_no_more_jobs(is_impaired: bool, limit: timedelta):
    event = replace(AWAY, is_impaired=is_impaired)

    early = decide(make_away(), event, NOW + limit - SECOND, LIMITS)
    late = decide(make_away(), event, NOW + limit, LIMITS).machine

    assert early.is_ignored
    assert early.machine.away_since == NOW
    assert (late.state, late.is_unusable, late.claims) == (MachineState.ENDING, True, ())
    assert late.pending == (TerminateInstance(INSTANCE), TellJobs(("resnet-1",)))
    assert f"its agent is away since {NOW:%H:%M:%S} UTC, no checkpoint came since" in late.reason
    assert ("status checks" in late.reason) is is_impaired
    assert late.leave_by == NOW + limit


def test_all_jobs_of_a_machine_whose_agent_stays_away_are_told():
    shared = make_away(claims=(claim(), claim("bert-1")))

    after = decide(shared, AWAY, NOW + AWAY_LIMIT, LIMITS).machine

    assert TellJobs(("resnet-1", "bert-1")) in after.pending


@pytest.mark.parametrize("is_impaired", [False, True])
def test_a_training_whose_checkpoints_arrive_is_not_lost(is_impaired: bool):
    newest = NOW + MINUTE + SECOND
    event = saved(newest, is_impaired=is_impaired)

    kept = decide(make_away(), event, newest + AWAY_LIMIT - SECOND, LIMITS)
    lost = decide(make_away(), event, newest + AWAY_LIMIT, LIMITS).machine

    assert kept.is_ignored
    assert lost.state is MachineState.ENDING
    assert f"the newest checkpoint is of {newest:%H:%M:%S} UTC" in lost.reason


@pytest.mark.parametrize("age", [-MINUTE, timedelta(0), MINUTE])
def test_a_checkpoint_that_may_be_older_than_the_disconnection_says_nothing(age: timedelta):
    after = decide(make_away(), saved(NOW + age), NOW + AWAY_LIMIT, LIMITS).machine

    assert after.state is MachineState.ENDING


def test_a_machine_that_its_jobs_leave_already_keeps_its_time():
    leaving = make_away(leave_by=NOW + MINUTE)

    assert decide(leaving, AWAY, NOW + AWAY_LIMIT, LIMITS).machine.leave_by == NOW + MINUTE


@pytest.mark.parametrize(
    ("agents", "away", "expected"),
    [(1, 1, False), (2, 1, False), (2, 2, True), (3, 2, True), (4, 2, False), (5, 3, True)],
)
def test_most_agents_of_a_cluster_are_away_only_in_an_outage(agents: int, away: int, expected: bool):
    assert is_outage(agents, [str(number) for number in range(away)]) is expected


@pytest.mark.parametrize(("away", "expected"), [(2, True), (3, False)])
def test_two_agents_at_once_may_be_hosts_that_hang(away: int, expected: bool):
    assert is_doubtful([str(number) for number in range(away)]) is expected


@pytest.mark.parametrize(("is_impaired", "limit"), [(False, DOUBT_LIMIT), (True, AWAY_LIMIT)])
def test_of_two_agents_at_once_each_has_more_time(is_impaired: bool, limit: timedelta):
    event = AgentSeen(AgentState.AWAY_WITH_MOST, is_impaired=is_impaired)

    away = make_away(is_away_with_most=True)

    kept = decide(away, event, NOW + limit - SECOND, LIMITS)
    lost = decide(away, event, NOW + limit, LIMITS).machine

    assert kept.is_ignored
    assert lost.state is MachineState.ENDING
    assert "and so are most agents of the cluster" in lost.reason


@pytest.mark.parametrize(("over", "ends"), [(HOUR, HOUR + AWAY_LIMIT), (3 * HOUR, DOUBT_LIMIT + AWAY_LIMIT)])
def test_once_another_agent_is_back_an_agent_has_its_time_again_but_not_for_ever(over: timedelta, ends: timedelta):
    with_most = decide(make_away(), AgentSeen(AgentState.AWAY_WITH_MOST), NOW + MINUTE, LIMITS).machine
    alone = decide(with_most, AWAY, NOW + over, LIMITS).machine

    assert with_most.is_away_with_most
    assert (alone.state, alone.is_away_with_most) == (MachineState.READY, False)
    if over < DOUBT_LIMIT:
        assert decide(alone, AWAY, NOW + ends - SECOND, LIMITS).is_ignored
    assert decide(alone, AWAY, NOW + ends, LIMITS).machine.state is MachineState.ENDING
    back = decide(alone, AgentSeen(AgentState.CONNECTED), NOW + over, LIMITS).machine
    assert (back.away_since, back.with_most_until) == (None, None)


def test_how_long_an_agent_is_away():
    assert not is_away(machine(MachineState.READY), MINUTE, NOW)
    assert not is_away(make_away(), MINUTE, NOW + MINUTE - SECOND)
    assert is_away(make_away(), MINUTE, NOW + MINUTE)
