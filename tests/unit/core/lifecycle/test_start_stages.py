"""The stages of a start: what each kind of machine shows, and what it does not."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import NOW, make_attempt, make_job, make_placement, make_timeline_entry
from fakes.stored_machines import make_claim, make_machine
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import Attempt, Placement, PlacementState, Rank, Stop, StopKind
from relaunch.core.jobs.job import Job, MachineUse, TimelineEntry
from relaunch.core.lifecycle.start_stages import (
    Part,
    Start,
    StartRecord,
    StartState,
    find_start,
    machine_of_start,
    read_boot,
)
from relaunch.core.machines.machine import Machine, MachineState, MachineTimelineEntry, machine_id_of

JOB = make_job(machines=MachineUse(requested=2))
OWN = machine_id_of(JOB.job_id, 1, 2)
KERNEL = NOW.timestamp() + 20
BOOT = f"{KERNEL:.0f}:9:12.5:15"
CANNOT_BE = "what the machine reported of its boot cannot be: {}"
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

    assert found == Start(StartRecord(1, RUNNING, make_ready()), StartState.STARTED, found.stages, after(87))
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
    assert [each.ended_by for each in found.stages] == [
        "EC2's answer to CreateFleet",
        "its kernel starts, by the machine",
        "user data begins, by the machine",
        "user data ends, by the machine",
        "the agent may start, by the machine",
        "it registers, by the cluster",
        "Relaunch sees all accelerators, and the agent connected",
        "the answer to its launch",
        "the pull begins, by the cluster",
        "the pull ends, by the cluster",
        "its program starts, by the cluster",
    ]
    assert found.began_at == NOW


@pytest.mark.parametrize(
    ("boot", "stages", "note"),
    [
        pytest.param(
            *("", {"launch+boot+user data+driver+agent": 42}),
            "the machine reported nothing of its boot, as user data of earlier versions does not",
            id="nothing",
        ),
        pytest.param(f"{KERNEL:.0f}:-:-:-", {"launch": 12, "boot+user data+driver+agent": 30}, "", id="kernel"),
        pytest.param(f"{KERNEL:.0f}:9:-:15", {"boot": 9, "user data+driver": 6, "agent": 15}, "", id="no end"),
        pytest.param("soon:1:2:3", {"launch+boot+user data+driver+agent": 42}, CANNOT_BE, id="text"),
        pytest.param(f"{KERNEL:.0f}:9:8:15", {"launch+boot+user data+driver+agent": 42}, CANNOT_BE, id="backwards"),
        pytest.param(f"{KERNEL - 25:.0f}:9:12:15", {"launch": 0}, "", id="5 s before its request"),
        pytest.param(f"{KERNEL - 26:.0f}:9:12:15", {}, CANNOT_BE, id="before its request"),
        pytest.param(f"{KERNEL:.0f}:9:12:35", {"agent": 0}, "", id="5 s after it registered"),
        pytest.param(f"{KERNEL:.0f}:9:12:36", {}, CANNOT_BE, id="later"),
    ],
)
def test_what_a_machine_does_not_report_of_its_boot_is_one_stage(
    boot: str, stages: dict[str, float], note: str
) -> None:
    found = start(make_ready(boot=boot), RUNNING)

    assert stages.items() <= seconds(found).items()
    assert found.notes == ((note.format(boot),) if note else ())


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
                boot=BOOT,
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

    assert found == Start(found.record, StartState.STARTING, found.stages, after(300))
    assert (found.stages[-1].parts, found.stages[-1].ended_at) == (parts, None)


def test_without_the_word_of_the_cluster_a_machine_has_registered_when_relaunch_saw_it() -> None:
    seen = make_ready(registered_at=None, timeline=(entry(50, MachineState.STARTING, "registered"),))

    (agent,) = [each for each in start(seen, RUNNING).stages if Part.AGENT in each.parts]

    assert (agent.ended_at, agent.ended_by) == (after(50), "Relaunch sees it registered")


def test_a_task_on_a_machine_that_ends_goes_on_until_its_stop_is_known() -> None:
    ending = make_ready(state=MachineState.ENDING)

    assert start(ending, make_attempt(placement=placed())).state is StartState.STARTING
    assert start(ending, make_attempt(placement=placed(state=PlacementState.PENDING))).state is StartState.STOPPED


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
        pytest.param(
            make_attempt(placement=placed(state=PlacementState.CLOSED, placed_at=None, outcome="AGENT")),
            *((), 300, "AGENT"),
            id="refused long ago",
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


WARM = "the machine was there already, ready since 2026-03-14 09:27:45 UTC"
JOINED = "another attempt had requested the machine; this one joined it at {:%H:%M:%S}"
CLAIMED = entry(30, MachineState.STARTING, "claimed", JOB.job_id)


@pytest.mark.parametrize(
    ("machine", "attempt", "began", "first", "note"),
    [
        pytest.param(make_ready("m-1"), RUNNING, 53, Part.PLACEMENT, WARM, id="warm"),
        pytest.param(
            make_ready("m-1", claims=(replace(make_claim(JOB.job_id), since=after(52)),)),
            *(None, 52, Part.PLACEMENT, WARM),
            id="just ready",
        ),
        pytest.param(
            make_ready("m-1", timeline=(CLAIMED,), state=MachineState.GONE),
            *(RUNNING, 0, Part.REQUEST, JOINED.format(after(30))),
            id="joined while it started",
        ),
        pytest.param(
            make_ready(
                *("m-1",),
                claims=(
                    replace(make_claim(JOB.job_id), since=after(40)),
                    replace(make_claim("bert-1"), since=after(45)),
                ),
                timeline=(CLAIMED, entry(52, MachineState.READY, "ready")),
            ),
            *(None, 0, Part.REQUEST, JOINED.format(after(40))),
            id="claimed while it started",
        ),
        pytest.param(
            make_ready("m-1", claims=(replace(make_claim("bert-1"), since=after(45)),)),
            *(None, 0, Part.REQUEST, JOINED.format(NOW)),
            id="unknown",
        ),
    ],
)
def test_a_machine_of_another_attempt_is_said_to_be_one(
    machine: Machine, attempt: Attempt | None, began: float, first: Part, note: str
) -> None:
    found = start(machine, attempt)

    assert (found.began_at, found.stages[0].parts[0]) == (after(began), first)
    assert found.notes == (note,)


@pytest.mark.parametrize(("request_number", "is_own"), [(0, False), (1, True), (2, True), (3, False)])
def test_a_machine_that_was_requested_for_the_attempt_is_its_own(request_number: int, *, is_own: bool) -> None:
    found = start(make_ready(machine_id_of(JOB.job_id, 1, request_number)), RUNNING)

    assert (found.notes == ()) is is_own


@pytest.mark.parametrize(
    ("seen_at", "expected"),
    [
        (50, {"provider": 49, "hand-over": 5}),
        (0, {"provider": 0, "hand-over": 54}),
        (None, {"provider+hand-over": 54}),
    ],
)
def test_a_capacity_provider_says_when_it_had_a_machine_and_nothing_of_its_boot(
    seen_at: float | None, expected: dict[str, float]
) -> None:
    chosen = placed(machine_id="", requested_at=NOW, placed_at=after(1))
    pending = [make_timeline_entry("task PENDING", at=after(at), attempt_number=1) for at in (-9, seen_at or 0)]
    timeline = (*pending[: 1 if seen_at is None else 2], make_timeline_entry(at=after(60), attempt_number=1))

    found = start(None, replace(RUNNING, placement=chosen), *timeline)

    assert seconds(found) == {"placement": 1, **expected, "pull": 30, "start": 2}
    assert found.notes == (
        "how a machine of a capacity provider boots is not known: its group launches it, and it reports nothing",
    )
    if seen_at is not None:
        assert found.stages[1].ended_by == "the task has an instance, by the cluster"


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
    assert [each.ended_by for each in found.stages] == [
        "the answer to its launch",
        "its program starts, by the cluster" if started_at else "",
    ]
    assert found.notes == ("its cluster says neither when the node was there nor when the image was pulled",)


def test_a_start_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=f"attempt 3 of {JOB.job_id} has neither a task nor a machine"):
        start(number=3)


def test_a_start_on_machines_that_were_kept_is_that_of_the_one_that_was_requested():
    kept = placed(machine_id="m-0", followers=(Rank("m-0-n1", "i-1"), Rank(OWN, "i-2"), Rank(f"{OWN}-n1", "i-3")))

    assert machine_of_start(make_attempt(placement=kept), JOB) == OWN
    assert machine_of_start(RUNNING, JOB) == OWN
    assert machine_of_start(make_attempt(placement=placed(machine_id="m-0")), JOB) == "m-0"
    assert machine_of_start(make_attempt(placement=placed(machine_id="")), JOB) == ""
