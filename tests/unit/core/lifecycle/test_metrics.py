"""What decisions add to the metrics."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import INSTANCE_ID, NOW, make_attempt, make_job, make_placement, make_running_job, task_id
from relaunch.core.jobs.attempt import Handover, IntentKind, PlacementState, Stop, StopKind
from relaunch.core.jobs.effects import Effect, StopTask
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import TaskPlaced
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.events import (
    CancelAsked,
    CheckpointsUnreadable,
    HostEnded,
    HostWarned,
    JobEvent,
    TimePassed,
)
from relaunch.core.lifecycle.metrics import (
    METRICS,
    Metric,
    MetricDatum,
    Unit,
    acceptance_metrics,
    decision_metrics,
    stop_metrics,
)
from unit.core.lifecycle.steps import decided
from unit.core.lifecycle.table_matrix import EVENTS, SOON, answered, intent, seen, seen_stopped

MINUTE = timedelta(minutes=1)


def measured(job: Job, event: JobEvent, now: Any = NOW) -> dict[Metric, MetricDatum]:
    """Return what the event adds, by metric."""
    found = decision_metrics(job, decided(job, event, now), now)
    assert len({each.metric for each in found}) == len(found)
    return {each.metric: each for each in found}


def pending(**fields: Any) -> Job:
    attempt = make_attempt(placement=make_placement(state=PlacementState.PENDING, task_id=None), **fields)
    return make_job(state=JobState.LAUNCHING, attempt=attempt, waiting=None, accepted_at=NOW - 2 * MINUTE)


def test_every_metric_has_a_unit_and_at_most_one_dimension() -> None:
    assert set(METRICS) == set(Metric)
    assert all(isinstance(kind.unit, Unit) for kind in METRICS.values())
    assert MetricDatum(Metric.STOPS, label="unknown").dimensions == {"kind": "unknown"}
    assert MetricDatum(Metric.JOBS_ACCEPTED).dimensions == {}
    assert MetricDatum(Metric.WARNING_TO_STOP).unit is Unit.SECONDS


def test_an_accepted_job_counts_and_one_that_is_refused_at_once_has_ended_too() -> None:
    refused = make_job(state=JobState.FAILED, attempt=None)

    assert acceptance_metrics(make_job()) == (MetricDatum(Metric.JOBS_ACCEPTED),)
    assert acceptance_metrics(refused)[1:] == (MetricDatum(Metric.JOBS_ENDED, label="FAILED"),)


def test_the_first_task_of_a_job_is_timed_from_its_acceptance() -> None:
    found = measured(pending(), answered(TaskPlaced(task_id())))

    assert found[Metric.EVENT_TO_RUN_TASK].value == 120
    assert Metric.TASKS_LAUNCHED in found


def test_a_task_that_is_seen_before_its_answer_is_a_launch_too() -> None:
    found = measured(pending(), seen("PROVISIONING"))

    assert {Metric.TASKS_LAUNCHED, Metric.EVENT_TO_RUN_TASK} <= set(found)


@pytest.mark.parametrize(
    "fields",
    [{"number": 2}, {"closed_placements": (make_placement(state=PlacementState.CLOSED, task_id=task_id(9)),)}],
    ids=["another attempt", "another try that had a task"],
)
def test_later_tasks_of_a_job_are_launched_but_not_timed(fields: dict[str, Any]) -> None:
    job = pending(**fields)

    found = measured(job, answered(TaskPlaced(task_id()), attempt_number=job.current_attempt.number))

    assert Metric.TASKS_LAUNCHED in found
    assert Metric.EVENT_TO_RUN_TASK not in found


def test_an_observation_of_a_known_task_is_no_launch() -> None:
    assert measured(make_running_job(), HostWarned(INSTANCE_ID, NOW)) == {}


def test_an_attempt_that_has_no_task_yet_is_no_launch() -> None:
    chosen = Decision(make_job(state=JobState.LAUNCHING, attempt=make_attempt()))

    assert decision_metrics(make_job(attempt=None), chosen, NOW) == ()


def test_a_stop_counts_by_its_kind_and_an_end_by_its_state() -> None:
    found = measured(make_running_job(), seen_stopped(0), SOON)

    assert found[Metric.STOPS].label == "success"
    assert found[Metric.JOBS_ENDED].label == "SUCCEEDED"


@pytest.mark.parametrize(
    ("kind", "label"), [(StopKind.STARTS_NOWHERE, "not-started"), (StopKind.SIDECAR, "user-error")]
)
def test_some_kinds_of_stops_are_counted_with_another(kind: StopKind, label: str) -> None:
    attempt = make_attempt(stop=Stop(kind, NOW))
    stopped = Decision(make_job(state=JobState.WAITING, attempt=attempt))

    (datum,) = decision_metrics(make_running_job(), stopped, NOW)

    assert (datum.metric, datum.label) == (Metric.STOPS, label)


def test_a_move_counts_as_no_stop() -> None:
    moved = Decision(make_job(state=JobState.WAITING, attempt=make_attempt(stop=Stop(StopKind.MOVED, NOW))))

    assert decision_metrics(make_running_job(), moved, NOW) == ()


def test_a_job_that_ends_without_a_task_counts_no_stop() -> None:
    job = make_job(state=JobState.WAITING, attempt=make_attempt(3, stop=Stop(StopKind.NO_CAPACITY, NOW)))

    found = measured(job, CancelAsked("a typo"))

    assert found[Metric.JOBS_ENDED].label == "CANCELLED"
    assert Metric.STOPS not in found


def test_a_job_that_runs_again_is_timed_from_its_interruption() -> None:
    job = replace(pending(number=2), interrupted_at=NOW - 7 * MINUTE)
    running = seen("RUNNING", started_by=str(job.attempt_key), started_at=NOW - 2 * MINUTE)

    assert measured(job, running)[Metric.INTERRUPTION_TO_RUNNING].value == 300


def test_a_job_that_runs_for_the_first_time_is_not() -> None:
    assert Metric.INTERRUPTION_TO_RUNNING not in measured(pending(), seen("RUNNING", started_at=NOW))


def test_a_job_that_goes_on_running_is_not_timed_again() -> None:
    job = make_running_job(interrupted_at=NOW - 7 * MINUTE)

    assert measured(job, HostEnded(INSTANCE_ID, "shutting-down", NOW)) == {}


def test_an_event_without_a_row_adds_nothing() -> None:
    assert measured(make_job(state=JobState.SUCCEEDED, ended_at=NOW), TimePassed()) == {}


@pytest.mark.parametrize("fields", [{}, {"state": JobState.SUCCEEDED, "ended_at": NOW}], ids=["running", "over"])
def test_orphaned_tasks_count_and_end_no_job_again(fields: dict[str, Any]) -> None:
    job = make_running_job(**fields)

    assert measured(job, EVENTS["orphan-sibling"]) == {Metric.ORPHANED_TASKS: MetricDatum(Metric.ORPHANED_TASKS, 1)}


def warned(**fields: Any) -> tuple[Job, Effect]:
    job = make_running_job()
    warning = {"warned_at": NOW - timedelta(seconds=4), "intent": intent(IntentKind.INTERRUPTION)}
    attempt = replace(job.current_attempt, **{**warning, **fields})
    return replace(job, attempt=attempt), StopTask(attempt.task_id or "", "Relaunch: spot")


def test_the_stop_that_answers_a_warning_is_timed() -> None:
    (measure,) = stop_metrics(*warned(), NOW + timedelta(seconds=1))

    assert measure == MetricDatum(Metric.WARNING_TO_STOP, 5)


@pytest.mark.parametrize(("late", "seconds"), [(2, 22), (11, 31), (-60, 0)])
def test_the_stop_of_a_task_that_trained_on_is_timed_as_with_a_stop_time_out_of_90_s(late: int, seconds: int) -> None:
    stop_by = NOW - timedelta(seconds=late)
    trained_on = Handover(NOW - MINUTE, "spot interruption warning", stop_by)

    measured_at = stop_metrics(*warned(handover=trained_on), NOW)

    # Above 30, the threshold of the alarm, it has less than its stop time-out left.
    assert measured_at == (MetricDatum(Metric.WARNING_TO_STOP, seconds),)


@pytest.mark.parametrize(
    "fields",
    [{"warned_at": None}, {"intent": None}, {"intent": intent(IntentKind.CANCEL)}],
    ids=["no warning", "no intent", "another intent"],
)
def test_a_stop_for_another_reason_is_not_timed(fields: dict[str, Any]) -> None:
    assert stop_metrics(*warned(**fields), NOW) == ()


def test_the_stop_of_another_task_and_a_repeated_stop_are_not_timed() -> None:
    job, effect = warned()

    assert stop_metrics(job, replace(effect, task_id=task_id(77)), NOW) == ()
    assert stop_metrics(job, effect, NOW + 3 * MINUTE) == ()
    assert stop_metrics(make_job(attempt=None), effect, NOW) == ()


def test_clocks_that_differ_make_no_negative_times() -> None:
    assert stop_metrics(*warned(warned_at=NOW + MINUTE), NOW) == (MetricDatum(Metric.WARNING_TO_STOP, 0),)


def test_each_refusal_of_what_somebody_has_to_grant_is_counted_and_no_other_decision() -> None:
    job, unreadable = make_job(), CheckpointsUnreadable("AccessDenied")
    refused = decided(job, unreadable, NOW)
    later = NOW + timedelta(minutes=5)
    again = decided(refused.job, unreadable, later)
    woken = decided(again.job, TimePassed(), later)

    assert decision_metrics(job, refused, NOW) == (MetricDatum(Metric.JOBS_REFUSED),)
    assert decision_metrics(refused.job, again, later) == (MetricDatum(Metric.JOBS_REFUSED),)
    assert decision_metrics(again.job, woken, later) == ()
