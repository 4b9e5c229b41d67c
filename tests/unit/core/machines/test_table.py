"""The transition table of machines against the matrix of what must happen, cell by cell."""

from dataclasses import replace
from datetime import timedelta
from typing import get_args

import pytest

from fakes.builders import NOW
from fakes.machines import INSTANCE, NODE, claim, machine, offering
from relaunch.core.machines.events import (
    AgentSeen,
    AgentState,
    ClaimAsked,
    ClaimReleased,
    FleetAnswered,
    FleetAsked,
    FleetDeferred,
    FleetRefused,
    FleetUncertain,
    InstanceLaunched,
    InstanceMissing,
    InstanceObservation,
    InstanceSeen,
    InstanceState,
    MachineAbandoned,
    MachineDue,
    MachineEvent,
    MachineWarned,
    NodeSeen,
    Refusal,
    RefusalKind,
    RequestExpired,
)
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import (
    AskFleet,
    DeregisterNode,
    Machine,
    MachineState,
    Resources,
    TellJobs,
    TerminateInstance,
)
from relaunch.core.machines.table import TABLE, decide

LIMITS = MachineLimits()
STATES = {"Q": MachineState.REQUESTED, "S": MachineState.STARTING, "R": MachineState.READY}
STATES |= {"E": MachineState.ENDING, "G": MachineState.GONE}
GPU = Resources(4096, 15_000, 1.0)
LATER = NOW + timedelta(minutes=6)


def seen(state: InstanceState, instance_id: str = INSTANCE) -> InstanceSeen:
    return InstanceSeen(InstanceObservation(instance_id, state, "m-1"), NOW)


EVENTS: dict[str, MachineEvent] = {
    "asked": FleetAsked(),
    "launched": FleetAnswered(InstanceLaunched(INSTANCE, offering())),
    "refused": FleetAnswered(FleetRefused((Refusal(RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity"),))),
    "deferred": FleetAnswered(FleetDeferred("RequestLimitExceeded")),
    "uncertain": FleetAnswered(FleetUncertain("time-out")),
    "expired": RequestExpired("no instance has its tag"),
    "pending": seen(InstanceState.PENDING),
    "running": seen(InstanceState.RUNNING),
    "shutting-down": seen(InstanceState.SHUTTING_DOWN),
    "stopping": seen(InstanceState.STOPPING),
    "stopped": seen(InstanceState.STOPPED),
    "terminated": seen(InstanceState.TERMINATED),
    "other instance": seen(InstanceState.TERMINATED, "i-0ffff"),
    "missing": InstanceMissing(),
    "registered": NodeSeen(NODE, GPU, is_active=True, at=NOW),
    "registered without GPUs": NodeSeen(NODE, Resources(4096, 15_000), is_active=True, at=NOW),
    "draining": NodeSeen(NODE, GPU, is_active=False, at=NOW),
    "agent away": AgentSeen(AgentState.AWAY),
    "agent connected": AgentSeen(AgentState.CONNECTED),
    "agents away": AgentSeen(AgentState.OUTAGE),
    "warned": MachineWarned(NOW),
    "claimed": ClaimAsked(claim("bert-1", Resources(1024, 1_000))),
    "claimed again": ClaimAsked(claim()),
    "claimed too much": ClaimAsked(claim("bert-1")),
    "released": ClaimReleased("resnet-1"),
    "released by another": ClaimReleased("bert-1"),
    "abandoned": MachineAbandoned("resnet-1", "it does not confirm a stop"),
    "abandoned by another": MachineAbandoned("bert-1", "it does not confirm a stop"),
    "due": MachineDue(),
}
# The next state of a machine that is REQUESTED, STARTING, READY, ENDING, GONE; a dot: the event means nothing.
MATRIX = """
asked                   Q . . . .
launched                S . . . E
refused                 G . . . .
deferred                Q . . . .
uncertain               Q . . . .
expired                 G . . . .
pending                 . . . E .
running                 . . . E .
shutting-down           . E E E .
stopping                . E E E .
stopped                 . E E E .
terminated              . E G G .
other instance          . . . . .
missing                 . S R E .
registered              . R . . .
registered without GPUs . S . . .
draining                . . . . .
agent away              . . R . .
agent connected         . . . . .
agents away             . . . . .
warned                  . E R E .
claimed                 Q S R . .
claimed again           . . . . .
claimed too much        . . . . .
released                G E E . .
released by another     . . . . .
abandoned               . . E . .
abandoned by another    . . . . .
due                     Q E R E .
"""
CELLS = [
    (name, state, next_code)
    for name, codes in ((line[:23].strip(), line[23:].split()) for line in MATRIX.strip().splitlines())
    for state, next_code in zip("QSREG", codes, strict=True)
]


def test_every_event_has_a_line_and_every_type_of_event_an_event():
    assert {name for name, _, _ in CELLS} == set(EVENTS)
    assert {type(event) for event in EVENTS.values()} == set(get_args(MachineEvent))


@pytest.mark.parametrize(("name", "state", "next_code"), CELLS)
def test_what_an_event_does_in_a_state(name: str, state: str, next_code: str):
    before = machine(STATES[state])

    decision = decide(before, EVENTS[name], LATER if name == "due" else NOW, LIMITS)

    if next_code == ".":
        assert decision.is_ignored
        assert decision.machine is before
        assert decision.note
        assert not decision.action
    else:
        assert not decision.is_ignored
        assert decision.machine.state is STATES[next_code]
        assert decision.action


@pytest.mark.parametrize(("name", "state", "next_code"), [cell for cell in CELLS if cell[2] != "."])
def test_where_an_event_leads_is_what_its_row_says(name: str, state: str, next_code: str):
    before = machine(STATES[state])
    decision = decide(before, EVENTS[name], LATER if name == "due" else NOW, LIMITS)
    rows = [row for row in TABLE if row.action.__name__ == decision.action and before.state in row.states]

    assert len(rows) == 1
    assert decision.machine.state in (rows[0].targets or {before.state})


@pytest.mark.parametrize(("name", "state", "next_code"), [cell for cell in CELLS if cell[2] != "."])
def test_counters_change_exactly_where_a_machine_comes_or_goes(name: str, state: str, next_code: str):
    before = machine(STATES[state])
    decision = decide(before, EVENTS[name], LATER if name == "due" else NOW, LIMITS)

    lives, lived = next_code != "G", state != "G"

    assert decision.added.machines == lives - lived
    counted = decision.machine.usd_per_hour * lives - before.usd_per_hour * lived
    assert decision.added.micro_usd_per_hour == round(counted * 1_000_000)


@pytest.mark.parametrize(("name", "state", "next_code"), [cell for cell in CELLS if cell[2] in "QSRE"])
def test_a_machine_that_is_not_gone_wakes_up(name: str, state: str, next_code: str):
    now = LATER if name == "due" else NOW

    after = decide(machine(STATES[state]), EVENTS[name], now, LIMITS).machine

    assert after.wake_at is not None
    # These keep the time of the next look, which may be over.
    if name not in ("claimed", "missing", "agent away"):
        assert after.wake_at > now


@pytest.mark.parametrize(("name", "state", "next_code"), [cell for cell in CELLS if cell[2] in "EG"])
def test_a_machine_that_ends_tells_the_jobs_that_claim_it(name: str, state: str, next_code: str):
    before = machine(STATES[state])

    after = decide(before, EVENTS[name], LATER if name == "due" else NOW, LIMITS).machine

    told = [effect for effect in after.pending if isinstance(effect, TellJobs)]
    assert after.claims == ()
    assert told == ([TellJobs(("resnet-1",))] if before.claims and name not in ("released", "abandoned") else [])


@pytest.mark.parametrize(
    ("effect", "state", "event", "is_kept"),
    [
        (AskFleet(), "Q", "claimed", True),
        (AskFleet(30), "Q", "asked", False),
        (AskFleet(30), "Q", "launched", False),
        (TerminateInstance(INSTANCE), "E", "due", True),
        (TerminateInstance(INSTANCE), "E", "shutting-down", True),
        (TerminateInstance(INSTANCE), "E", "terminated", False),
        (DeregisterNode(NODE), "G", "launched", True),
    ],
)
def test_calls_of_ec2_stay_pending_until_they_were_made(effect, state: str, event: str, *, is_kept: bool):
    before = machine(STATES[state], pending=(effect,))

    after = decide(before, EVENTS[event], NOW, LIMITS).machine

    assert (effect in after.pending) is is_kept


def test_the_timeline_keeps_the_newest_entries():
    before: Machine = machine()
    for number in range(30):
        before = decide(before, FleetAnswered(FleetDeferred(f"throttled {number}")), NOW, LIMITS).machine

    assert [entry.detail for entry in before.timeline] == [f"throttled {number}" for number in range(10, 30)]


def test_state_since_is_when_the_state_began():
    before = replace(machine(), state_since=NOW - timedelta(hours=1))

    assert decide(before, EVENTS["deferred"], NOW, LIMITS).machine.state_since == NOW - timedelta(hours=1)
    assert decide(before, EVENTS["launched"], NOW, LIMITS).machine.state_since == NOW
