"""The stages of a start: what each kind of machine shows, and what it does not."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import NOW, make_attempt, make_job, make_placement, make_timeline_entry
from fakes.stored_machines import make_claim, make_machine
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import Attempt, Placement, PlacementState, Stop, StopKind
from relaunch.core.jobs.job import Job, MachineUse, TimelineEntry
from relaunch.core.lifecycle.start_stages import Part, Start, StartRecord, StartState, find_start, read_boot
from relaunch.core.machines.machine import Machine, MachineState, MachineTimelineEntry, machine_id_of

JOB = make_job(machines=MachineUse(requested=2))
OWN = machine_id_of(JOB.job_id, 1, 2)
KERNEL = NOW.timestamp() + 20
BOOT = f"{KERNEL:.0f}:9:12.5:15"
MACHINE_PARTS = (Part.LAUNCH, Part.BOOT, Part.USER_DATA, Part.DRIVER, Part.AGENT)


def after(seconds: float) -> Any:
    return NOW + timedelta(seconds=seconds)


def entry(seconds: float, state: MachineState, event: str, detail: str = "") -> MachineTimelineEntry:
    return MachineTimelineEntry(after(seconds), state, event, detail)


def make_ready(machine_id: str = OWN, **fields: Any) -> Machine:
    """Build a machine: launched after 8 s, registered after 50 s, ready after 52 s."""
    ready: dict[str, Any] = {
        "state": MachineState.READY,
        "state_since": after(52),
        "launched_at": after(8),
        "registered_at": after(50),
        "boot": BOOT,
        "timeline": (entry(52, MachineState.READY, "ready"),),
    }
    return make_machine(machine_id, **(ready | fields))


def placed(**fields: Any) -> Placement:
    chosen = {"machine_id": OWN, "requested_at": after(53), "placed_at": after(54), "state": PlacementState.PLACED}
    return make_placement(**(chosen | fields))


RUNNING = make_attempt(placement=placed(), pulled=(after(55), after(85)), started_at=after(87))


def start(
    machine: Machine | None = None,
    attempt: Attempt | None = None,
    *timeline: TimelineEntry,
    job: Job = JOB,
    now: float = 300,
    number: int = 1,
) -> Start:
    return find_start(StartRecord(number, attempt, machine), job, timeline, after(now))


def seconds(found: Start) -> dict[str, float]:
    return {"+".join(each.parts): found.duration(each).total_seconds() for each in found.stages}


def test_every_stage_of_a_machine_of_our_own_and_its_task_is_known() -> None:
    found = start(make_ready(), RUNNING)

    assert (found.state, found.until, found.notes) == (StartState.STARTED, after(87), ())
    assert seconds(found) == {
        "request": 8,
        "launch": 12,
        "boot": 9,
        "user data": 3.5,
        "driver": 2.5,
        "agent": 15,
        "ready": 2,
        "placement": 2,
        "hand-over": 1,
        "pull": 30,
        "start": 2,
    }
    assert all(each.ended_by for each in found.stages)
    assert found.began_at == NOW


@pytest.mark.parametrize(
    ("boot", "stages", "note"),
    [
        pytest.param("", {"launch+boot+user data+driver+agent": 42}, "reported nothing", id="nothing"),
        pytest.param(f"{KERNEL:.0f}:-:-:-", {"launch": 12, "boot+user data+driver+agent": 30}, "", id="kernel"),
        pytest.param(f"{KERNEL:.0f}:9:-:15", {"boot": 9, "user data+driver": 6, "agent": 15}, "", id="no end"),
        pytest.param("soon:1:2:3", {"launch+boot+user data+driver+agent": 42}, "cannot be: soon:1:2:3", id="text"),
        pytest.param(f"{KERNEL:.0f}:9:8:15", {"launch+boot+user data+driver+agent": 42}, "cannot be", id="backwards"),
        pytest.param("12:9:12:15", {"launch+boot+user data+driver+agent": 42}, "cannot be", id="before its request"),
        pytest.param(f"{KERNEL:.0f}:9:12:99", {"launch+boot+user data+driver+agent": 42}, "cannot be", id="later"),
    ],
)
def test_what_a_machine_does_not_report_of_its_boot_is_one_stage(
    boot: str, stages: dict[str, float], note: str
) -> None:
    found = start(make_ready(boot=boot), RUNNING)

    assert stages.items() <= seconds(found).items()
    assert note in "".join(found.notes)
    assert bool(note) is bool(found.notes)


def test_a_boot_is_read_to_parts_of_a_second() -> None:
    assert read_boot("100.5:1:-:2.25")[0].timestamp() == 100.5  # type: ignore[union-attr]
    assert read_boot("100.5:1:-:2.25")[3].timestamp() == 102.75  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("machine", "parts"),
    [
        pytest.param(make_machine(OWN), (Part.REQUEST,), id="asked for"),
        pytest.param(
            make_machine(OWN, state=MachineState.STARTING, launched_at=after(8)), MACHINE_PARTS, id="launched"
        ),
        pytest.param(
            make_machine(
                OWN,
                state=MachineState.STARTING,
                launched_at=after(8),
                timeline=(entry(50, MachineState.STARTING, "registered"),),
            ),
            (Part.READY,),
            id="without its GPUs",
        ),
        pytest.param(make_ready(), (Part.PLACEMENT,), id="ready"),
        pytest.param(make_ready(timeline=()), (Part.PLACEMENT,), id="ready for long"),
    ],
)
def test_a_start_that_goes_on_ends_with_what_may_be_going_on(machine: Machine, parts: tuple[Part, ...]) -> None:
    found = start(machine)

    assert (found.state, found.until) == (StartState.STARTING, after(300))
    assert (found.stages[-1].parts, found.stages[-1].ended_at) == (parts, None)


def test_a_task_that_is_handed_over_may_be_pulling_its_image() -> None:
    found = start(make_ready(), make_attempt(placement=placed()))

    assert found.stages[-1].parts == (Part.HAND_OVER, Part.PULL, Part.START)
    assert found.duration(found.stages[-1]) == timedelta(seconds=300 - 54)


@pytest.mark.parametrize("has_timeline", [True, False])
def test_a_machine_that_never_registered_shows_where_it_stopped_and_since_when(*, has_timeline: bool) -> None:
    timeline = (
        entry(308, MachineState.ENDING, "start deadline", "it never registered"),
        entry(400, MachineState.GONE, "terminated", "i-1 is terminated"),
    )
    machine = make_machine(
        OWN,
        state=MachineState.GONE,
        state_since=after(400),
        launched_at=after(8),
        reason="i-1 is terminated",
        timeline=timeline if has_timeline else (),
    )

    found = start(machine, now=900)

    assert found.state is StartState.STOPPED
    assert found.reason == ("it never registered" if has_timeline else "i-1 is terminated")
    assert found.until == after(308 if has_timeline else 400)
    assert (found.stages[-1].parts, found.stages[-1].began_at) == (MACHINE_PARTS, after(8))


STOPPED = make_attempt(placement=placed(), stop=Stop(StopKind.IMAGE, after(70), stopped_reason="CannotPull"))


@pytest.mark.parametrize(
    ("attempt", "timeline", "until", "reason"),
    [
        pytest.param(STOPPED, (), 70, "image; CannotPull", id="stopped"),
        pytest.param(
            make_attempt(placement=placed(state=PlacementState.CLOSED, placed_at=None, outcome="AGENT")),
            (make_timeline_entry(at=after(60), attempt_number=1), make_timeline_entry(at=after(99), attempt_number=2)),
            60,
            "AGENT",
            id="refused",
        ),
    ],
)
def test_a_task_that_never_started_says_when_it_stopped_and_why(
    attempt: Attempt, timeline: tuple[TimelineEntry, ...], until: float, reason: str
) -> None:
    found = start(make_ready(), attempt, *timeline)

    assert (found.state, found.until, found.reason) == (StartState.STOPPED, after(until), reason)


def test_moments_that_clocks_show_in_another_order_count_as_the_same() -> None:
    found = start(make_ready(), replace(RUNNING, placement=placed(placed_at=after(57)), started_at=after(86)), now=80)

    assert seconds(found)["hand-over"] == 0
    assert seconds(found)["pull"] == 28
    assert found.until == after(86)


CLAIMED = entry(30, MachineState.STARTING, "claimed", JOB.job_id)


@pytest.mark.parametrize(
    ("machine", "attempt", "began", "first", "note"),
    [
        pytest.param(make_ready("m-1"), RUNNING, 53, Part.PLACEMENT, "ready since 2026", id="warm"),
        pytest.param(
            make_ready("m-1", timeline=(CLAIMED,), state=MachineState.GONE),
            *(RUNNING, 0, Part.REQUEST, "joined it at"),
            id="joined while it started",
        ),
        pytest.param(
            make_ready("m-1", claims=(make_claim(JOB.job_id),)),
            *(None, 0, Part.REQUEST, "joined it at"),
            id="claimed while it started",
        ),
        pytest.param(make_ready("m-1", timeline=(), registered_at=None), None, 0, Part.REQUEST, "joined", id="unknown"),
    ],
)
def test_a_machine_of_another_attempt_is_said_to_be_one(
    machine: Machine, attempt: Attempt | None, began: float, first: Part, note: str
) -> None:
    found = start(machine, attempt)

    assert (found.began_at, found.stages[0].parts[0]) == (after(began), first)
    assert note in found.notes[0]


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_capacity_provider_says_when_it_had_a_machine_and_nothing_of_its_boot(*, is_seen: bool) -> None:
    chosen = placed(machine_id="", requested_at=NOW, placed_at=after(1))
    earlier, other = (make_timeline_entry("task PENDING", at=after(at), attempt_number=1) for at in (-9, 50))
    timeline = (earlier, make_timeline_entry("running", at=after(60), attempt_number=1), *((other,) if is_seen else ()))

    found = start(None, replace(RUNNING, placement=chosen), *timeline)

    expected = {"provider": 49, "hand-over": 5} if is_seen else {"provider+hand-over": 54}
    assert seconds(found) == {"placement": 1, **expected, "pull": 30, "start": 2}
    assert "capacity provider" in found.notes[0]


def test_the_stages_of_a_machine_whose_record_is_gone_begin_with_its_task() -> None:
    found = start(None, RUNNING)

    assert seconds(found) == {"placement": 1, "hand-over": 1, "pull": 30, "start": 2}
    assert OWN in found.notes[0]


@pytest.mark.parametrize("started_at", [None, after(90)])
def test_kubernetes_says_when_there_was_a_job_and_when_its_container_started(started_at: Any) -> None:
    job = replace(JOB, definition=replace(JOB.definition, target=Target.ACK))
    chosen = placed(machine_id="", requested_at=NOW, placed_at=after(2))

    found = start(None, make_attempt(placement=chosen, started_at=started_at), job=job)

    assert seconds(found) == {"placement": 2, "node+pull+start": 88 if started_at else 298}
    assert "its cluster says neither" in found.notes[0]


def test_a_start_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=f"attempt 3 of {JOB.job_id} has neither a task nor a machine"):
        start(number=3)
