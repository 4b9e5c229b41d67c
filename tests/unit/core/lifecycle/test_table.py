"""The transition table against the matrix of what must happen, cell by cell."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import get_args

import pytest

from fakes.builders import INSTANCE_ID, NOW, make_definition, make_node, task_id
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import HeldStop, IntentKind, PlacementState, Rank, Stop, StopKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import FINAL_STATES, REFUSED_WAITS, JobState, Refusal, RefusedCall, WaitReason
from relaunch.core.lifecycle.events import JobEvent, MachineLost, TaskMissing, TimePassed
from relaunch.core.lifecycle.running import MISSING_GRACE
from relaunch.core.lifecycle.table import TABLE, decide, is_news
from relaunch.core.machines.machine import Consequence
from relaunch.core.transitions.table import Row
from unit.core.lifecycle.table_matrix import (
    EVENTS,
    HOST_LOST,
    LIMITS,
    NO_CAPACITY,
    PAST_DEADLINE,
    SITUATIONS,
    SOON,
    by_event,
    intent,
    read_cells,
    seen,
    seen_stopped,
    with_attempt,
)

CELLS = read_cells()
HAPPENING = [cell for cell in CELLS if cell.expected is not None]
MEANT = by_event(HAPPENING)
IGNORED = by_event(cell for cell in CELLS if cell.expected is None)


def row_of(job: Job, event: JobEvent) -> Row[JobState] | None:
    rows = (row for row in TABLE if job.state in row.states and isinstance(event, row.event))
    return next((row for row in rows if row.guard(job, event)), None)


@pytest.mark.parametrize("event_name", IGNORED)
def test_an_event_that_means_nothing_changes_nothing_and_says_so(event_name):
    for cell in IGNORED[event_name]:
        decision = cell.decision

        assert decision.is_ignored, cell
        assert decision.job is cell.job, cell
        assert decision.timeline == (), cell
        assert (decision.take_slot_limits, decision.release_slot, decision.link_instance) == (None, False, False), cell
        assert type(cell.event).__name__ in decision.note, cell
        assert cell.job.state in decision.note, cell


@pytest.mark.parametrize("event_name", MEANT)
def test_an_event_that_means_something_leads_where_it_must(event_name):
    for cell in MEANT[event_name]:
        decision = cell.decision

        assert not decision.is_ignored, cell
        assert decision.job.state is cell.expected, cell


@pytest.mark.parametrize("event_name", MEANT)
def test_where_an_event_leads_is_what_its_row_says(event_name):
    for cell in MEANT[event_name]:
        row = row_of(cell.job, cell.event)

        assert row is not None, cell
        assert cell.decision.action == row.action.__name__, cell
        assert cell.expected in (row.targets or {cell.job.state}), cell


@pytest.mark.parametrize("event_name", MEANT)
def test_an_open_job_always_has_something_that_wakes_it(event_name):
    for cell in MEANT[event_name]:
        job = cell.decision.job

        if job.state.is_final:
            assert (job.wake_at is not None) is bool(job.pending), cell
        else:
            assert job.wake_at is not None, cell
            assert job.wake_at > NOW, cell


@pytest.mark.parametrize("event_name", MEANT)
def test_a_job_has_a_slot_from_its_first_launch_or_machine_to_its_end_but_not_while_it_is_refused_without_one(
    event_name,
):
    for cell in MEANT[event_name]:
        before = cell.job
        decision = cell.decision
        after = decision.job

        is_launched = before.state is JobState.WAITING and after.state is JobState.LAUNCHING
        # A machine is requested for a job that has a slot, and for no other.
        is_launched |= before.state is after.state is JobState.WAITING and bool(decision.machines)
        limits = (before.definition.max_running_jobs, LIMITS.max_running_jobs)
        assert decision.take_slot_limits == (limits if is_launched and not before.has_slot else None), cell
        assert decision.release_slot is (before.has_slot and not after.has_slot), cell
        # Refused just now: a machine that is up is kept for some minutes, and the slot with it.
        left_to_others = {*REFUSED_WAITS, WaitReason.BUDGET}
        is_refused = after.waiting is not None and after.waiting.reason in left_to_others and not after.machine_id
        has_none = after.state.is_final or is_refused
        assert after.has_slot is ((before.has_slot or is_launched) and not has_none), cell


@pytest.mark.parametrize("event_name", MEANT)
def test_what_is_said_of_a_wait_and_of_an_end_is_there_while_it_lasts(event_name):
    for cell in MEANT[event_name]:
        job = cell.decision.job

        assert (job.waiting is not None) is (job.state is JobState.WAITING), cell
        assert (job.ended_at is not None) is job.state.is_final, cell
        if job.state in {JobState.WAITING, *FINAL_STATES} and job.state is not cell.job.state:
            assert job.reason, cell


@pytest.mark.parametrize("event_name", MEANT)
def test_the_timeline_tells_every_change_of_state(event_name):
    for cell in MEANT[event_name]:
        before = cell.job
        decision = cell.decision

        if decision.job.state is not before.state:
            assert [entry.state for entry in decision.timeline] == [decision.job.state], cell
            assert decision.job.state_since == cell.now, cell
        else:
            assert decision.job.state_since == before.state_since, cell


def test_the_matrix_has_every_state_and_every_event():
    pairs = {(cell.job.state, type(cell.event)) for cell in CELLS}

    assert pairs == {(state, event) for state in JobState for event in get_args(JobEvent)}
    assert {cell.situation for cell in CELLS} == set(SITUATIONS)
    assert {cell.event_name for cell in CELLS} == set(EVENTS)


GONE = {"missing": (NOW, NOW + MISSING_GRACE)}
GONE_TOO_LATE = {"missing": (NOW, PAST_DEADLINE)}
OUT_OF_TIME = {"intent": intent(IntentKind.TIME_OUT)}
NO_CAPACITY_TOO_LATE = seen_stopped(None, PAST_DEADLINE, **NO_CAPACITY)
NO_IMAGE = {**NO_CAPACITY, "stopped_reason": "CannotPullContainerError: manifest unknown"}
LOST_TOO_LATE = seen_stopped(None, PAST_DEADLINE, **HOST_LOST)
BY_SOMEBODY = {"stop_code": "UserInitiated", "stopped_reason": "not needed"}
AGAIN = NOW + MISSING_GRACE
ELSEWHERE = {"instance_id": None, "task_version": 9}
TOLD_LATE = replace(seen("RUNNING"), node=make_node())
MISSING = TaskMissing(task_id())
GONE_ELSEWHERE = {**GONE, "cluster": "a/training"}
MISSING_HERE = TaskMissing(task_id(), "b/training")


def last_chance(job: Job) -> Job:
    """Return a job that one more failure ends."""
    return replace(job, totals=replace(job.totals, failures=job.definition.max_failures))


def tireless(job: Job) -> Job:
    """Return a job with time left for days."""
    return replace(job, definition=make_definition(max_runtime=timedelta(days=9)))


def worn_out(job: Job) -> Job:
    """Return a job whose interruptions have cost it all its time, but that has no deadline."""
    began_at = NOW - timedelta(hours=30)
    return replace(
        job, totals=replace(job.totals, first_started_at=began_at, interruptions=1), definition=make_definition()
    )


def on_ack(situation: str, change: Callable[[Job], Job] = lambda job: job) -> Job:
    """Return the job of a situation, changed, with a pod on ACK."""
    job = change(SITUATIONS[situation])
    workload = KubernetesWorkload("image:v1")
    return replace(job, definition=replace(job.definition, target=Target.ACK, kubernetes=workload))


GIVEN_UP = EVENTS["given-up"]
DESCRIBED = TimePassed(is_described=True)
ENDED = {"host_ended_at": SOON - timedelta(minutes=10)}
TWO_HOURS_LATER = NOW + timedelta(hours=2)
TWO_DAYS_LATER = NOW + timedelta(days=2)
SUCCESS = HeldStop(Stop(StopKind.SUCCESS, NOW), NOW, StopKind.HOST_LOST, StopKind.INTERRUPTION)
HELD = {"held_since": NOW, "held": SUCCESS}


def refused_for_a_day(job: Job) -> Job:
    """Return a job that never trained, and whose calls have been refused for a day."""
    refusal = Refusal(SOON - timedelta(days=1), NOW)
    return replace(job, refusals=dict.fromkeys(RefusedCall, refusal))


MACHINE_REFUSED = MachineLost("m-1", Consequence.PAUSE, "a permission is missing")
GANG = replace(SITUATIONS["fz"].current_attempt.placement, instance_id=INSTANCE_ID, followers=(Rank("m-2", "i-2"),))
# EC2 takes one of its machines.
WARNED_GANG = with_attempt(
    "so", placement=replace(GANG, machine_id="m-0", state=PlacementState.PLACED, task_id=task_id())
)


# What needs more than the situation and the event: the state it leads to from there.
def several(situation: str) -> Job:
    """Return a job of two nodes."""
    placement = SITUATIONS[situation].current_attempt.placement
    followers = (Rank("m-2", "i-2", task_id(2)),)
    return with_attempt(situation, placement=replace(placement, instance_id=INSTANCE_ID, followers=followers))


RARE = {
    "launching-one-of-several-ended": (several("pl"), EVENTS["host-ended"], SOON, "STOPPING"),
    "running-one-of-several-ended": (several("ru"), EVENTS["host-ended"], SOON, "STOPPING"),
    "launching-cannot-pull-again": (last_chance(SITUATIONS["pl"]), seen_stopped(None, **NO_IMAGE), SOON, "FAILED"),
    "launching-no-capacity-too-late": (SITUATIONS["pl"], NO_CAPACITY_TOO_LATE, PAST_DEADLINE, "TIMED_OUT"),
    "launching-no-capacity": (SITUATIONS["pl"], seen_stopped(None, **NO_CAPACITY), SOON, "WAITING"),
    "running-last-failure": (last_chance(SITUATIONS["ru"]), seen_stopped(1), SOON, "FAILED"),
    "running-stopped-by-somebody": (SITUATIONS["ru"], seen_stopped(143, **BY_SOMEBODY), SOON, "CANCELLED"),
    "running-lost-too-late": (SITUATIONS["ru"], LOST_TOO_LATE, PAST_DEADLINE, "TIMED_OUT"),
    "stopping-last-failure": (last_chance(SITUATIONS["sn"]), seen_stopped(1), SOON, "FAILED"),
    "stopping-timed-out": (with_attempt("sn", **OUT_OF_TIME), seen_stopped(143), SOON, "TIMED_OUT"),
    "launching-gone": (with_attempt("pl", **GONE), MISSING, AGAIN, "WAITING"),
    "launching-gone-elsewhere": (with_attempt("pl", **GONE_ELSEWHERE), MISSING_HERE, AGAIN, "STOPPING"),
    "running-gone-elsewhere": (with_attempt("ru", **GONE_ELSEWHERE), MISSING_HERE, AGAIN, "STOPPING"),
    "launching-gone-too-late": (with_attempt("pl", **GONE_TOO_LATE), MISSING, PAST_DEADLINE, "TIMED_OUT"),
    "launching-gone-worn-out": (worn_out(with_attempt("pl", **GONE)), MISSING, AGAIN, "FAILED"),
    "launching-gang-warned": (with_attempt("fz", placement=GANG), EVENTS["warned"], SOON, "LAUNCHING"),
    "stopping-gang-replaced": (WARNED_GANG, EVENTS["machine-claimed"], SOON, "STOPPING"),
    "stopping-gang-left": (WARNED_GANG, EVENTS["survivors-left"], SOON, "STOPPING"),
    "launching-told": (with_attempt("pl", **ELSEWHERE), TOLD_LATE, SOON, "LAUNCHING"),
    "running-told": (with_attempt("ru", **ELSEWHERE), TOLD_LATE, SOON, "RUNNING"),
    "stopping-told": (with_attempt("si", **ELSEWHERE), TOLD_LATE, SOON, "STOPPING"),
    "running-gone": (with_attempt("ru", **GONE), MISSING, AGAIN, "WAITING"),
    "running-gone-too-late": (with_attempt("ru", **GONE_TOO_LATE), MISSING, PAST_DEADLINE, "TIMED_OUT"),
    "running-gone-worn-out": (worn_out(with_attempt("ru", **GONE)), MISSING, AGAIN, "FAILED"),
    "stopping-part-lives": (with_attempt("si", **GONE), replace(MISSING, is_part_live=True), AGAIN, "STOPPING"),
    "stopping-gone": (with_attempt("si", **GONE), MISSING, AGAIN, "WAITING"),
    "stopping-gone-worn-out": (worn_out(with_attempt("sn", **GONE)), MISSING, AGAIN, "FAILED"),
    "stopping-gone-cancelled": (with_attempt("sc", **GONE), MISSING, AGAIN, "CANCELLED"),
    "stopping-gone-timed-out": (with_attempt("sn", **OUT_OF_TIME, **GONE), MISSING, AGAIN, "TIMED_OUT"),
    "launching-host-gone": (with_attempt("pl", **ENDED), DESCRIBED, SOON, "WAITING"),
    "launching-host-gone-too-late": (with_attempt("pl", **ENDED), DESCRIBED, PAST_DEADLINE, "TIMED_OUT"),
    "launching-host-gone-worn-out": (worn_out(with_attempt("pl", **ENDED)), DESCRIBED, SOON, "FAILED"),
    "running-host-gone": (with_attempt("ru", **ENDED), DESCRIBED, SOON, "WAITING"),
    "running-host-gone-too-late": (with_attempt("ru", **ENDED), DESCRIBED, PAST_DEADLINE, "TIMED_OUT"),
    "running-host-gone-worn-out": (worn_out(with_attempt("ru", **ENDED)), DESCRIBED, SOON, "FAILED"),
    "stopping-host-gone": (with_attempt("so", **ENDED), DESCRIBED, SOON, "WAITING"),
    "stopping-unconfirmed": (SITUATIONS["so"], TimePassed(), TWO_HOURS_LATER, "STOPPING"),
    "stopping-given-up": (tireless(SITUATIONS["so"]), TimePassed(), TWO_DAYS_LATER, "FAILED"),
    "stopping-held": (with_attempt("sn", **HELD), TimePassed(), TWO_HOURS_LATER, "SUCCEEDED"),
    "stopping-held-and-gone": (with_attempt("sn", **HELD, **GONE), MISSING, AGAIN, "SUCCEEDED"),
    "given-up-too-soon": (on_ack("sn"), GIVEN_UP, SOON, "STOPPING"),
    "given-up": (on_ack("sn"), GIVEN_UP, TWO_HOURS_LATER, "WAITING"),
    "given-up-cancelled": (on_ack("sc"), GIVEN_UP, TWO_HOURS_LATER, "CANCELLED"),
    "given-up-too-late": (on_ack("sn"), GIVEN_UP, PAST_DEADLINE, "TIMED_OUT"),
    "given-up-worn-out": (on_ack("sn", worn_out), GIVEN_UP, TWO_HOURS_LATER, "FAILED"),
    "waiting-worn-out": (worn_out(SITUATIONS["wr"]), TimePassed(), SOON, "FAILED"),
    "claimed-worn-out": (worn_out(SITUATIONS["wr"]), EVENTS["machine-claimed"], SOON, "FAILED"),
    "chosen-worn-out": (worn_out(SITUATIONS["wr"]), EVENTS["chosen"], SOON, "FAILED"),
    "no-progress": (
        replace(SITUATIONS["wr"], progress=replace(SITUATIONS["wr"].progress, attempts_without_progress=2)),
        EVENTS["read"],
        SOON,
        "FAILED",
    ),
    "unreadable-for-too-long": (refused_for_a_day(SITUATIONS["w0"]), EVENTS["unreadable"], SOON, "FAILED"),
    "not-granted-for-too-long": (refused_for_a_day(SITUATIONS["w0"]), EVENTS["not-granted"], SOON, "FAILED"),
    "machine-refused-for-too-long": (refused_for_a_day(SITUATIONS["wm"]), MACHINE_REFUSED, SOON, "FAILED"),
}


@pytest.mark.parametrize("name", RARE)
def test_rare_ends_are_where_they_must_be(name):
    job, event, now, state = RARE[name]

    assert decide(job, event, now, LIMITS).job.state == state


def test_an_old_observation_is_news_only_if_it_tells_where_the_task_runs():
    assert is_news(with_attempt("ru", **ELSEWHERE), TOLD_LATE)
    assert not is_news(with_attempt("ru", task_version=9), TOLD_LATE)
    assert not is_news(with_attempt("ru", **ELSEWHERE), replace(TOLD_LATE, node=None))


def transition(job: Job, event: JobEvent, now: datetime) -> tuple[int, JobState, JobState]:
    """Return (row, from, to)."""
    return TABLE.index(row_of(job, event)), job.state, decide(job, event, now, LIMITS).job.state


def test_every_transition_the_table_names_happens_and_no_other():
    happened = {transition(cell.job, cell.event, cell.now) for cell in HAPPENING}
    happened |= {transition(job, event, now) for job, event, now, _ in RARE.values()}

    assert happened == {
        (number, state, target)
        for number, row in enumerate(TABLE)
        for state in row.states
        for target in (row.targets or {state})
    }


def test_final_states_lead_nowhere():
    for row in TABLE:
        if row.states & FINAL_STATES:
            assert row.targets == frozenset()
