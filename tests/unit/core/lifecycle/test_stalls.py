"""A training that saves nothing is said to do so once, and again only after it has saved."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_running_job
from relaunch.core.jobs.changes import ChangedPart
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState, NotedProgress
from relaunch.core.lifecycle.change_events import event_of
from relaunch.core.lifecycle.decision import Decision, move
from relaunch.core.lifecycle.events import ProgressNoted
from relaunch.core.lifecycle.explanation import explain
from relaunch.core.lifecycle.job_changes import with_change
from relaunch.core.lifecycle.metrics import Metric, MetricDatum, decision_metrics
from relaunch.core.lifecycle.stalls import RECOVERED, STALLED, describe_stall
from relaunch.core.lifecycle.table import decide

LATER = NOW + timedelta(hours=2)
MOVING = NotedProgress(120, NOW, 1, total_steps=200, loss=0.5, interval_seconds=600)
HANGING = replace(MOVING, stalled_since=NOW)
SAVED = replace(MOVING, step=130, at=LATER)


def noted(job: Job, progress: NotedProgress) -> Decision:
    decision: Decision = decide(job, ProgressNoted(progress), LATER, StackLimits())
    return decision


def test_what_a_look_finds_is_kept_quietly_and_only_once() -> None:
    job = make_running_job()

    first = noted(job, MOVING)

    assert (first.job.noted, first.timeline, first.job.wake_at) == (MOVING, (), job.wake_at)
    assert decision_metrics(job, first, LATER) == ()
    assert noted(first.job, MOVING).is_ignored


def test_a_stall_is_said_once_and_its_end_too() -> None:
    job = make_running_job(noted_progress=MOVING)

    stalled = noted(job, HANGING)
    still = noted(stalled.job, replace(HANGING, loss=0.25))
    again = noted(still.job, SAVED)

    assert [[each.event for each in found.timeline] for found in (stalled, still, again)] == [
        [STALLED],
        [],
        [RECOVERED],
    ]
    assert "nothing newer than step 120 was saved since 2026-03-14 09:26 UTC" in stalled.timeline[0].detail
    assert [decision_metrics(job, found, LATER) for found in (stalled, still, again)] == [
        (MetricDatum(Metric.TRAININGS_STALLED),),
        (),
        (),
    ]
    assert {found.job.state for found in (stalled, still, again)} == {JobState.RUNNING}
    assert stalled.job.wake_at == job.wake_at


def test_whoever_watches_the_job_hears_of_both() -> None:
    stalled = noted(make_running_job(noted_progress=MOVING), HANGING).job
    (first, second) = noted(stalled, SAVED).job.outbox.unsent

    progress = event_of(stalled, first).progress

    assert (first.changed, second.changed) == ((ChangedPart.PROGRESS,), (ChangedPart.PROGRESS,))
    assert progress is not None
    assert (progress.step, progress.saved_step, progress.total_steps, progress.loss) == (0, 120, 200, 0.5)
    assert (progress.saved_at, progress.stalled_since) == (NOW, NOW)
    assert event_of(stalled, second).progress.stalled_since is None  # type: ignore[union-attr]


def test_a_job_that_has_stopped_neither_hangs_nor_is_done_at_any_time() -> None:
    job = make_running_job(noted_progress=replace(HANGING, finishes_at=LATER))
    stopping = move(job, JobState.STOPPING, LATER, event="cancelling")

    change = with_change(job, None, stopping, LATER).job.outbox.unsent[0]
    progress = event_of(job, change).progress

    assert progress is not None
    assert (progress.saved_step, progress.finishes_at, progress.stalled_since) == (120, None, None)


@pytest.mark.parametrize("state", [JobState.STOPPING, JobState.SUCCEEDED])
def test_what_does_not_run_has_not_stalled(state: JobState) -> None:
    assert describe_stall(make_running_job(noted_progress=HANGING, state=state)) == ""


def test_an_explanation_says_what_hangs_and_what_to_do() -> None:
    said = " ".join(explain(make_running_job(noted_progress=HANGING), LATER).advice)

    assert "nothing newer than step 120 was saved since" in said
    assert "usually saves every 10 min: `relaunch logs resnet-1f2e3d4c` shows what it does" in said
    assert "nothing newer" not in " ".join(explain(make_running_job(noted_progress=MOVING), LATER).advice)
