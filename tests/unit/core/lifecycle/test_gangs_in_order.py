"""Several ranks of one job, whose ends, machines and answers come in one order or another."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, task_id
from relaunch.core.jobs.attempt import IntentKind, StopKind
from relaunch.core.jobs.effects import ReleaseMachine
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import PlacementFailed, Shortage, TaskObservation, TaskPlaced
from relaunch.core.lifecycle.events import CancelAsked, HostEnded, PlacementExpired, TaskSeen, TimePassed
from relaunch.core.lifecycle.gangs import MET_WITHIN, miss_ranks, observe_gang
from unit.core.lifecycle.gang_ranks import BY_RELAUNCH, EVERY, ended, gang, pending, rank, stopped_tasks, tell
from unit.core.lifecycle.steps import SOON, chosen, decided
from unit.core.lifecycle.table_matrix import answered

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


def look(job: Job, *ranks: TaskObservation | None, now=SOON) -> Job:
    """Return the job after DescribeTasks of all ranks, and what it had to do done."""
    known = dict(zip(job.current_attempt.task_ids, ranks, strict=True))
    seen = observe_gang(job, known, now)
    event = TaskSeen(seen) if seen is not None else miss_ranks(job, known, now)
    return replace(decided(job, event, now).job, pending=())


def stop_of(job: Job):
    attempt = job.current_attempt
    return attempt.stop or (attempt.held.stop if attempt.held is not None else None)


def test_ranks_that_never_met_are_no_failure_though_all_of_them_were_seen_to_run_in_the_end():
    """RunTask was throttled before the last one, which started once the first had given up."""
    job = decided(pending(), answered(TaskPlaced(task_id(1), (task_id(2), task_id(3)))), NOW + MET_WITHIN).job
    late = NOW + MET_WITHIN + 8 * SECOND
    first = ended(0, 1, NOW + MET_WITHIN)
    job = look(replace(job, pending=()), first, rank(1), rank(2, started_at=late), now=late + 2 * SECOND)
    at = late + 20 * SECOND

    job = look(job, first, ended(1, 143, at, **BY_RELAUNCH), ended(2, 143, at, started_at=late, **BY_RELAUNCH), now=at)

    assert stop_of(job).kind is StopKind.NOT_STARTED
    assert (job.totals.failures, job.totals.run_seconds) == (0, 0)


@pytest.mark.parametrize("is_host_first", [True, False])
def test_a_rank_that_went_with_its_machine_is_no_failure_of_its_peers_whichever_comes_first(is_host_first):
    job = tell(gang("ro"), rank(0), rank(1), rank(2))
    first = ended(0, 1, SOON)
    last = ended(2, 1, SOON + SECOND)
    if not is_host_first:
        job = look(job, first, rank(1), rank(2), now=SOON + 2 * SECOND)
    job = replace(
        decided(job, HostEnded("i-1", "shutting-down", SOON + 95 * SECOND), SOON + 97 * SECOND).job, pending=()
    )
    gone = ended(1, None, SOON + 200 * SECOND, **BY_RELAUNCH, execution_stopped_at=None)

    job = look(job, first, gone, last, now=SOON + 205 * SECOND)

    assert stop_of(job).kind in (StopKind.HOST_LOST, StopKind.INTERRUPTION)
    assert job.totals.failures == 0


def test_ranks_that_live_are_asked_to_stop_again_once_the_machine_of_another_has_ended():
    job = tell(gang(), rank(0), rank(1), rank(2))
    job = replace(decided(job, HostEnded("i-1", "shutting-down", SOON), SOON).job, pending=())
    stopping = look(job, rank(0), ended(1, None, SOON, **BY_RELAUNCH), rank(2), now=SOON + MINUTE)
    assert (stopping.state, stopping.current_attempt.live_ranks) == (JobState.STOPPING, (0, 2))

    again = decided(stopping, TimePassed(is_described=True), SOON + 3 * MINUTE).job
    both_gone = replace(stopping.current_attempt, live_ranks=(1,))
    over = decided(replace(stopping, attempt=both_gone), TimePassed(is_described=True), SOON + 3 * MINUTE).job

    assert stopped_tasks(again) == EVERY
    assert stopped_tasks(over) == set()


@pytest.mark.parametrize("version", [3, 9])
def test_a_rank_that_was_taken_for_lost_is_stopped_when_it_is_seen_to_run(version):
    """Its version is its own, and that of the job is of all ranks."""
    job = tell(gang("pl"), rank(0), rank(1), rank(2))
    job = replace(decided(job, CancelAsked("enough"), SOON).job, pending=())
    over = (ended(number, 143, SOON + MINUTE, **BY_RELAUNCH) for number in (0, 1))
    first, second = over
    at = SOON + MINUTE
    while not job.state.is_final:
        job = look(job, first, second, None, now=at)
        at += MINUTE
        assert at < SOON + timedelta(hours=1)

    seen = decided(job, TaskSeen(rank(2, version=version)), at)

    assert (job.state, stopped_tasks(seen.job)) == (JobState.CANCELLED, {task_id(3)})


def test_a_task_that_is_placed_after_the_job_is_over_is_stopped():
    job = decided(pending(), CancelAsked("enough"), SOON).job
    while not job.state.is_final:
        job = replace(decided(job, PlacementExpired(1, 1), SOON + 11 * MINUTE).job, pending=())

    seen = decided(job, TaskSeen(rank(0)), SOON + 20 * MINUTE)

    assert stopped_tasks(seen.job) == {task_id(1)}


def test_a_rank_that_nobody_saw_end_before_all_had_started_may_run_beside_the_next_attempt_and_is_stopped():
    job = look(gang("pl", node=None, started_at=None), rank(0), ended(1, 7, SOON), None)
    assert job.current_attempt.intent.kind is IntentKind.RANK_ENDED
    at = SOON + MINUTE
    while job.state is not JobState.WAITING:
        job = look(job, ended(0, 143, SOON + 30 * SECOND, **BY_RELAUNCH), ended(1, 7, SOON), None, now=at)
        at += MINUTE
        assert at < SOON + timedelta(hours=1)

    again = replace(decided(job, chosen(), at).job, pending=())
    seen = decided(again, TaskSeen(rank(2)), at + 10 * MINUTE)

    assert again.current_attempt.number == job.current_attempt.number + 1
    assert stopped_tasks(seen.job) == {task_id(3)}


def test_the_machine_that_the_cluster_places_no_rank_on_is_not_used_again_and_the_others_are():
    refused = PlacementFailed(("RESOURCE:GPU",), shortages=frozenset({Shortage.GPU}), placed=(task_id(1),))
    job = decided(pending(), answered(refused), SOON).job
    dropped = [each for each in job.pending if isinstance(each, ReleaseMachine)]

    part = TaskSeen(ended(0, 143, SOON + MINUTE, started_at=None, **BY_RELAUNCH))
    over = decided(replace(job, pending=()), part, SOON + 2 * MINUTE).job
    kept = [each for each in over.pending if isinstance(each, ReleaseMachine)]

    assert [(each.machine_id, each.is_unusable) for each in (*dropped, *kept)] == [
        ("m-0-n1", True),
        ("m-0-n2", False),
        ("m-0", False),
    ]
