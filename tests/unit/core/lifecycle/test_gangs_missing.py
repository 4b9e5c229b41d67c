"""Ranks of which nobody sees how they end, beside others that are seen."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import task_id
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import TaskObservation
from relaunch.core.lifecycle.events import TaskMissing, TimePassed
from relaunch.core.lifecycle.gangs import decided_by_part, miss_ranks
from relaunch.core.lifecycle.running import MISSING_GRACE
from unit.core.lifecycle.gang_ranks import BY_RELAUNCH, ended, gang, rank, tell
from unit.core.lifecycle.steps import SOON, decided

HOST_TERMINATED = {"stop_code": "TerminationNotice", "stopped_reason": "Host EC2 (instance i-2) terminated."}


def part(job: Job, *ranks: TaskObservation | None) -> TaskObservation | None:
    known = dict(zip((task_id(1), task_id(2), task_id(3)), ranks, strict=True))
    return decided_by_part(job, known, SOON)


def miss(job: Job, others: TaskObservation | None, since: datetime = SOON) -> Job:
    """Return the job after a rank was unknown throughout the grace period."""
    at = since
    while at <= since + MISSING_GRACE:
        job = decided(job, TaskMissing(task_id(1), others=others), at).job
        at += timedelta(minutes=1)
    return job


@pytest.mark.parametrize(
    "ranks",
    [
        (None, None, None),
        (None, ended(1, 7), rank(2)),
        (None, ended(1, 0), ended(2, 0)),
        (None, ended(1, 143, **BY_RELAUNCH), ended(2, 143, **BY_RELAUNCH)),
    ],
    ids=["nothing is known", "one lives", "they finished", "they were stopped for it"],
)
def test_the_others_do_not_tell_how_all_ended_unless_one_failed_by_itself(ranks):
    assert part(gang(), *ranks) is None


@pytest.mark.parametrize(
    ("others", "kind", "code"),
    [
        ((ended(1, 7), ended(2, 143, **BY_RELAUNCH)), StopKind.USER_ERROR, 7),
        ((ended(1, 1), ended(2, None, **HOST_TERMINATED)), StopKind.HOST_LOST, None),
        ((ended(1, 0), ended(2, 0)), StopKind.HOST_LOST, None),
        ((None, None), StopKind.HOST_LOST, None),
    ],
    ids=["failed", "lost", "finished", "unknown"],
)
def test_a_rank_that_nobody_saw_end_is_no_failure_and_hides_none(others, kind, code):
    job = tell(gang(), rank(0), ended(1, 7), rank(2))

    found = part(job, None, *others)
    over = miss(job, found)
    held = over.current_attempt.held
    stop = over.current_attempt.stop or (held.stop if held is not None else None)

    assert stop is not None
    assert (stop.kind, stop.exit_code) == (kind, code)
    assert found is None or found.task_id == task_id(1)


@pytest.mark.parametrize(
    ("host_ended", "seconds"),
    [({}, 300), ({"lost_instances": ("i-1",)}, 300), ({"lost_instances": ("i-2",)}, 200), ({"at": 400}, 300)],
    ids=["it is alive", "another one ended", "it ended", "it ended after the rank was missing"],
)
def test_a_rank_that_nobody_saw_end_ran_until_its_host_ended_or_else_until_it_was_missing(host_ended, seconds):
    """The first rank to fail decides how the attempt ended; what it ran, and costs, is until the last has ended."""
    missing_since = SOON + timedelta(seconds=300)
    lost = host_ended.get("lost_instances", ("i-2",) if host_ended else ())
    host_ended_at = SOON + timedelta(seconds=host_ended.get("at", 200))
    job = tell(gang(), ended(0, 7), rank(1), rank(2))
    attempt = replace(job.current_attempt, lost_instances=lost, last_host_ended_at=host_ended_at if lost else None)
    others = part(job, ended(0, 7), ended(1, 143, at=SOON + timedelta(seconds=9), **BY_RELAUNCH), None)

    over = miss(replace(job, attempt=attempt), others, missing_since)
    held = over.current_attempt.held
    stop = over.current_attempt.stop or (held.stop if held is not None else None)

    assert stop is not None
    assert (stop.kind, stop.exit_code) == (StopKind.USER_ERROR, 7)
    assert stop.at == SOON + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("lost", "live", "kind"),
    [
        (("i-2",), (2,), StopKind.HOST_LOST),
        # Its stop was seen, and forgotten since.
        (("i-2",), (), StopKind.USER_ERROR),
        ((), (2,), StopKind.USER_ERROR),
    ],
)
def test_a_rank_that_nobody_saw_end_and_whose_host_is_gone_was_lost_before_its_peer_failed(lost, live, kind):
    job = tell(gang(), ended(0, 1), rank(1), rank(2))
    job = replace(job, attempt=replace(job.current_attempt, lost_instances=lost, live_ranks=live))
    others = part(job, ended(0, 1), ended(1, 143, at=SOON + timedelta(seconds=9), **BY_RELAUNCH), None)

    over = miss(job, others)
    held = over.current_attempt.held
    stop = over.current_attempt.stop or (held.stop if held is not None else None)

    assert stop is not None
    assert stop.kind is kind


def test_a_gang_is_lost_only_if_one_rank_was_missing_all_the_time():
    """ECS may be behind for one rank after the other, for minutes each."""
    job = tell(gang(), rank(0), ended(1, 7), rank(2))
    minutes = int(MISSING_GRACE.total_seconds()) // 60
    first = (1, 2)
    second = (2,)

    def look(job: Job, minute: int, ranks: tuple[int, ...]) -> Job:
        return decided(job, TaskMissing(task_id(1), ranks=ranks), SOON + timedelta(minutes=minute)).job

    for minute in range(minutes):
        job = look(job, minute, first)
    other = look(job, minutes, (0,))
    narrowed = look(job, minutes - 1, second)
    over = look(narrowed, minutes, second)

    assert (other.state, other.current_attempt.missing_ranks) == (JobState.STOPPING, (0,))
    assert other.current_attempt.missing == (SOON + MISSING_GRACE, SOON + MISSING_GRACE)
    assert narrowed.current_attempt.missing_ranks == second
    assert over.current_attempt.stop is not None
    assert tell(other, rank(0), ended(1, 7), rank(2, version=4)).current_attempt.missing_ranks == ()


@pytest.mark.parametrize(
    ("ranks", "is_part_live"),
    [((None, rank(1), None), True), ((None, ended(1, 7), rank(2)), True), ((None, ended(1, 7), None), False)],
    ids=["one runs", "another one ends", "it has stopped"],
)
def test_it_is_known_whether_others_live_than_those_that_are_missing(ranks, is_part_live):
    job = gang()
    missing = miss_ranks(job, dict(zip(job.current_attempt.task_ids, ranks, strict=True)), SOON)
    unknown = tuple(number for number, each in enumerate(ranks) if each is None)

    assert (missing.task_id, missing.ranks, missing.is_part_live) == (task_id(1), unknown, is_part_live)


def test_an_attempt_that_stops_is_not_lost_while_a_rank_of_it_lives():
    """Its stop may have had no effect, and the job would end, or go on, beside it."""
    lives = TaskMissing(task_id(1), ranks=(0,), is_part_live=True)
    all_missing = TaskMissing(task_id(1), ranks=(0, 1, 2))
    late = SOON + MISSING_GRACE
    job = decided(gang("so"), all_missing, SOON).job

    found = decided(job, lives, late)
    again = decided(found.job, lives, late)
    gone = decided(again.job, all_missing, late).job
    over = miss(gone, None, late)

    assert (found.job.state, found.job.current_attempt.missing, found.job.wake_at) == (job.state, None, job.wake_at)
    assert again.is_ignored
    assert gone.current_attempt.missing == (late, late)
    assert over.current_attempt.stop is not None


def test_a_task_that_is_described_again_is_not_missing_though_nothing_of_it_is_new():
    job = decided(gang(), TaskMissing(task_id(1), ranks=(0,)), SOON).job
    late = SOON + MISSING_GRACE

    unheard = decided(job, TimePassed(), late).job
    found = decided(job, TimePassed(is_described=True), late).job
    again = decided(found, TaskMissing(task_id(1), ranks=(0,)), late).job

    assert unheard.current_attempt.missing_ranks == job.current_attempt.missing_ranks != ()
    assert (found.current_attempt.missing, found.current_attempt.missing_ranks) == (None, ())
    assert (again.state, again.current_attempt.missing) == (JobState.RUNNING, (late, late))
