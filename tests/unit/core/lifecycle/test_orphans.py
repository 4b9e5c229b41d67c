from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_placement, make_running_attempt, task_id
from relaunch.core.jobs.attempt import PlacementState, Stop, StopKind
from relaunch.core.jobs.effects import StopTask
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import LaunchConflict, TaskPlaced
from relaunch.core.lifecycle.events import JobEvent
from unit.core.lifecycle.steps import after, decided
from unit.core.lifecycle.table_matrix import EVENTS, ORPHANED, SITUATIONS, answered, seen, with_attempt


def stopped_by(job: Job, event: JobEvent) -> list[str]:
    decision = decided(job, event)
    assert decision.job.state is job.state
    assert decision.job.attempt == job.attempt
    return [effect.task_id for effect in decision.job.pending if isinstance(effect, StopTask)]


@pytest.mark.parametrize("situation", ["wr", "fz", "pl", "ru", "si", "ca"])
def test_a_live_task_beside_the_current_one_is_stopped(situation):
    assert stopped_by(SITUATIONS[situation], EVENTS["orphan"]) == [ORPHANED]


@pytest.mark.parametrize("situation", ["w0", "wr", "fz", "pl", "ru", "si", "ok"])
def test_a_task_of_an_attempt_that_the_job_has_not_begun_is_left_as_the_table_was_restored_from_a_backup(situation):
    later = seen("RUNNING", task_id=ORPHANED, started_by="resnet-1f2e3d4c/2")

    assert after(SITUATIONS[situation], later).pending == SITUATIONS[situation].pending


@pytest.mark.parametrize(("seconds", "is_taken"), [(-11, False), (-10, True), (0, True)])
def test_a_late_event_of_a_placement_that_is_kept_no_more_is_not_taken_for_that_of_the_pending_one(seconds, is_taken):
    task = seen("PENDING", task_id=task_id(77), created_at=NOW + timedelta(seconds=seconds))

    job = after(with_attempt("fz", placement=make_placement(2, requested_at=NOW)), task)

    assert (job.current_attempt.task_id == task_id(77)) is is_taken


def test_the_job_of_a_gang_is_neither_taken_nor_stopped_before_its_launch_is_answered_as_its_pods_may_not_meet_yet():
    one = with_attempt("fz", placement=make_placement(2, requested_at=NOW))
    launching = replace(one, definition=replace(one.definition, nodes=2))

    job = after(launching, seen("RUNNING", task_id=task_id(77), created_at=NOW))

    assert (job.current_attempt.task_id, job.pending) == (None, launching.pending)


def test_a_task_that_a_late_answer_tells_of_is_stopped():
    assert stopped_by(SITUATIONS["ca"], answered(TaskPlaced(ORPHANED))) == [ORPHANED]


def test_of_a_late_conflict_only_the_unknown_tasks_are_stopped():
    assert stopped_by(SITUATIONS["ru"], answered(LaunchConflict((task_id(), ORPHANED)))) == [ORPHANED]


def test_all_tasks_of_a_late_conflict_are_told():
    conflict = answered(LaunchConflict((ORPHANED, task_id(98))), placement_number=9)

    entry = decided(SITUATIONS["ru"], conflict).timeline[0]

    assert (entry.event, entry.detail) == ("orphaned task", f"{ORPHANED}, {task_id(98)}")


def test_a_job_that_is_over_is_due_until_the_orphan_is_stopped():
    job = after(SITUATIONS["ok"], EVENTS["orphan-sibling"])

    assert job.state is JobState.SUCCEEDED
    assert job.wake_at is not None


def test_what_the_job_has_still_to_do_is_kept():
    waiting = after(SITUATIONS["fz"], answered(LaunchConflict((task_id(), task_id(2)))))

    job = after(waiting, EVENTS["orphan"])

    assert [(effect.task_id, effect.reason) for effect in job.pending] == [
        (task_id(2), "Relaunch: one launch made more than one task"),
        (ORPHANED, "Relaunch: it is not the current task of its job"),
    ]


def test_a_task_that_was_taken_for_lost_and_lives_is_stopped():
    lost = replace(make_running_attempt(), stop=Stop(StopKind.HOST_LOST, NOW), missing=(NOW, NOW))
    job = replace(SITUATIONS["wr"], attempt=lost)

    assert stopped_by(job, seen("RUNNING")) == [task_id()]


def test_a_task_that_was_taken_for_lost_is_stopped_when_it_comes_back_as_it_was():
    running = make_running_attempt()
    lost = replace(
        running,
        stop=Stop(StopKind.HOST_LOST, NOW),
        placement=replace(running.placement, state=PlacementState.CLOSED, is_lost=True),
    )

    for situation in ("wr", "ok", "to"):
        job = replace(SITUATIONS[situation], attempt=lost)
        assert stopped_by(job, seen("RUNNING", version=running.task_version)) == [task_id()]
        assert stopped_by(job, seen("RUNNING", version=running.task_version - 1)) == []


def test_an_old_observation_of_a_stopped_task_is_no_orphan():
    assert decided(SITUATIONS["wr"], seen("RUNNING", version=4)).is_ignored


def test_an_old_observation_of_an_earlier_placement_is_no_orphan():
    closed = make_placement(state=PlacementState.CLOSED, task_id=ORPHANED)
    job = with_attempt("fz", closed_placements=(closed,))

    assert decided(job, seen("PROVISIONING", task_id=ORPHANED)).is_ignored
