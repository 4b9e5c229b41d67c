"""The transition table against the matrix of what must happen, cell by cell."""

from dataclasses import replace
from datetime import timedelta
from typing import get_args

import pytest

from fakes.builders import NOW, make_definition, make_running_attempt, task_arn
from relaunch.core.caps import StackLimits
from relaunch.core.job import FINAL_STATES, IntentKind, JobState
from relaunch.core.job_events import JobEvent, TaskMissing
from relaunch.core.lifecycle import TABLE, Row, decide
from relaunch.core.watching import MISSING_GRACE
from unit.core.lifecycle_matrix import EVENTS, SITUATIONS, Cell, intent, read_cells, seen_stopped

LIMITS = StackLimits()
CELLS = read_cells()
HAPPENING = [cell for cell in CELLS if cell.expected is not None]


def named(cells: list[Cell]) -> list:
    return [pytest.param(cell, id=f"{cell.event_name}-in-{cell.situation}") for cell in cells]


def row_of(cell: Cell) -> Row | None:
    job, event = cell.job, cell.event
    rows = (row for row in TABLE if job.state in row.states and isinstance(event, row.event))
    return next((row for row in rows if row.guard(job, event)), None)


@pytest.mark.parametrize("cell", named([cell for cell in CELLS if cell.expected is None]))
def test_an_event_that_means_nothing_changes_nothing_and_says_so(cell):
    decision = decide(cell.job, cell.event, cell.now, LIMITS)

    assert decision.is_ignored
    assert decision.job is cell.job
    assert decision.timeline == ()
    assert (decision.take_slot, decision.release_slot, decision.link_instance) == (False, False, False)
    assert type(cell.event).__name__ in decision.note
    assert cell.job.state in decision.note


@pytest.mark.parametrize("cell", named(HAPPENING))
def test_an_event_that_means_something_leads_where_it_must(cell):
    decision = decide(cell.job, cell.event, cell.now, LIMITS)

    assert not decision.is_ignored
    assert decision.job.state is cell.expected


@pytest.mark.parametrize("cell", named(HAPPENING))
def test_where_an_event_leads_is_what_its_row_says(cell):
    row = row_of(cell)

    assert row is not None
    assert cell.expected in (row.targets or {cell.job.state})


@pytest.mark.parametrize("cell", named(HAPPENING))
def test_an_open_job_always_has_something_that_wakes_it(cell):
    job = decide(cell.job, cell.event, cell.now, LIMITS).job

    if job.state.is_final:
        assert (job.wake_at is not None) is bool(job.pending)
    else:
        assert job.wake_at is not None
        assert job.wake_at > NOW


@pytest.mark.parametrize("cell", named(HAPPENING))
def test_a_job_has_a_slot_from_its_first_launch_to_its_end(cell):
    before = cell.job
    decision = decide(before, cell.event, cell.now, LIMITS)
    after = decision.job

    assert decision.take_slot is (before.state is JobState.WAITING and after.state is JobState.LAUNCHING)
    assert decision.release_slot is (before.has_slot and not after.has_slot)
    assert after.has_slot is ((before.has_slot or decision.take_slot) and not after.state.is_final)


@pytest.mark.parametrize("cell", named(HAPPENING))
def test_what_is_said_of_a_wait_and_of_an_end_is_there_while_it_lasts(cell):
    job = decide(cell.job, cell.event, cell.now, LIMITS).job

    assert (job.waiting is not None) is (job.state is JobState.WAITING)
    assert (job.ended_at is not None) is job.state.is_final
    if job.state in {JobState.WAITING, *FINAL_STATES} and job.state is not cell.job.state:
        assert job.reason


@pytest.mark.parametrize("cell", named(HAPPENING))
def test_the_timeline_tells_every_change_of_state(cell):
    before = cell.job
    decision = decide(before, cell.event, cell.now, LIMITS)

    if decision.job.state is not before.state:
        assert [entry.state for entry in decision.timeline] == [decision.job.state]
        assert decision.job.state_since == cell.now
    else:
        assert decision.job.state_since == before.state_since


def test_the_matrix_has_every_state_and_every_event():
    pairs = {(cell.job.state, type(cell.event)) for cell in CELLS}

    assert pairs == {(state, event) for state in JobState for event in get_args(JobEvent)}
    assert {cell.situation for cell in CELLS} == set(SITUATIONS)
    assert {cell.event_name for cell in CELLS} == set(EVENTS)


def reached_by(job, event, now=None):
    cell_now = now or NOW + timedelta(minutes=1)
    decision = decide(job, event, cell_now, LIMITS)
    rows = [row for row in TABLE if job.state in row.states and isinstance(event, row.event)]
    row = next(row for row in rows if row.guard(job, event))
    return TABLE.index(row), decision.job.state


def rare_transitions() -> set[tuple[int, JobState]]:
    """Return (row, state) of ends that need more than one fact beside the event."""
    running, placed, stopping = SITUATIONS["ru"], SITUATIONS["pl"], SITUATIONS["sn"]
    last_failure = replace(running, failures=2)
    timed_out = replace(stopping, attempt=make_running_attempt(intent=intent(IntentKind.TIME_OUT)))
    gone = {"missing_since": NOW}
    again = NOW + MISSING_GRACE
    worn_out = replace(
        running,
        first_started_at=NOW - timedelta(hours=30),
        definition=make_definition(),
        attempt=make_running_attempt(**gone),
    )
    return {
        reached_by(last_failure, seen_stopped(1)),
        reached_by(timed_out, seen_stopped(143)),
        reached_by(replace(running, attempt=make_running_attempt(**gone)), TaskMissing(task_arn()), again),
        reached_by(worn_out, TaskMissing(task_arn()), again),
        reached_by(
            replace(stopping, attempt=make_running_attempt(intent=intent(IntentKind.CANCEL), **gone)),
            TaskMissing(task_arn()),
            again,
        ),
        reached_by(
            replace(stopping, attempt=make_running_attempt(intent=intent(IntentKind.TIME_OUT), **gone)),
            TaskMissing(task_arn()),
            again,
        ),
        reached_by(placed, seen_stopped(None, stop_code="TaskFailedToStart", stopped_reason="RESOURCE:GPU")),
        reached_by(
            replace(SITUATIONS["w0"], interruptions=1, first_started_at=NOW - timedelta(hours=30)), EVENTS["time"]
        ),
        reached_by(
            replace(SITUATIONS["wr"], interruptions=1, first_started_at=NOW - timedelta(hours=30)), EVENTS["chosen"]
        ),
    }


def test_every_target_the_table_names_is_reached():
    reached = {(TABLE.index(row), decide(c.job, c.event, c.now, LIMITS).job.state) for c in CELLS if (row := row_of(c))}
    reached |= rare_transitions()

    named_targets = {(number, state) for number, row in enumerate(TABLE) for state in row.targets}
    stays = {(number, state) for number, row in enumerate(TABLE) if not row.targets for state in row.states}
    assert named_targets | stays == reached


def test_final_states_lead_nowhere():
    for row in TABLE:
        if row.states & FINAL_STATES:
            assert row.targets == frozenset()
