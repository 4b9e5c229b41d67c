"""A program that had ended by itself before Relaunch stopped its task is judged by its own end."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_running_attempt, make_running_job
from relaunch.core.jobs.attempt import IntentKind, StopIntent, StopKind
from relaunch.core.lifecycle.stop_reason import CLOCK_SKEW
from relaunch.core.lifecycle.verdicts import judge
from unit.core.lifecycle.gang_ranks import BY_RELAUNCH, ended, gang, together

STOPPED_AT = NOW + timedelta(minutes=5)
LATE = timedelta(minutes=1)


def meant(kind: IntentKind) -> StopIntent:
    return StopIntent(kind, STOPPED_AT, "rank 1 ended")


def stop_of(kind: IntentKind, code: int | None, before: timedelta, **words: object):
    """Return the stop of a task whose program had ended for so long as Relaunch meant to stop it."""
    job = make_running_job(attempt=make_running_attempt(intent=meant(kind), started_at=NOW))
    at = STOPPED_AT - before
    seen = ended(0, code, at, **{**BY_RELAUNCH, "stopped_at": STOPPED_AT + LATE, **words})
    return judge(job, replace(seen, started_at=NOW), STOPPED_AT + LATE)


@pytest.mark.parametrize(
    ("kind", "code", "expected"),
    [
        (IntentKind.INTERRUPTION, 0, StopKind.SUCCESS),
        (IntentKind.MOVE, 1, StopKind.USER_ERROR),
        (IntentKind.CANCEL, 0, StopKind.SUCCESS),
        (IntentKind.CANCEL, 1, StopKind.CANCELLED),
        (IntentKind.TIME_OUT, 1, StopKind.TIME_OUT),
    ],
)
def test_its_own_end_counts_though_the_target_names_the_stop(kind, code, expected):
    assert stop_of(kind, code, LATE).kind is expected


def test_the_stop_says_that_it_had_ended():
    stop = stop_of(IntentKind.INTERRUPTION, 0, LATE)

    assert (stop.stopped_reason, stop.exit_code) == ("it had ended before it was stopped", 0)


def test_one_that_ended_about_then_was_stopped():
    assert stop_of(IntentKind.MOVE, 0, CLOCK_SKEW).kind is StopKind.MOVED


def test_a_target_that_tells_only_of_the_task_tells_enough():
    words = {"execution_stopped_at": None, "stopped_at": STOPPED_AT - LATE}

    assert stop_of(IntentKind.MOVE, 0, LATE, **words).kind is StopKind.SUCCESS


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("not today", StopKind.CANCELLED),
        # It may have been asked for before the intent could be saved.
        ("Relaunch: spot interruption warning for i-1", StopKind.INTERRUPTION),
    ],
)
def test_a_stop_that_may_have_come_before_the_intent_ended_it(reason, expected):
    assert stop_of(IntentKind.INTERRUPTION, 0, LATE, stopped_reason=reason).kind is expected


@pytest.mark.parametrize("kind", [IntentKind.INTERRUPTION, IntentKind.RANK_ENDED])
def test_of_several_ranks_those_that_had_finished_do_not_decide(kind):
    job = gang(intent=meant(kind), started_at=NOW)
    now = STOPPED_AT + LATE
    finished = ended(0, 0, STOPPED_AT - LATE, **BY_RELAUNCH)
    by_itself = ended(1, 0, STOPPED_AT - LATE)
    stopped = ended(2, 1, now, **BY_RELAUNCH)

    assert together(job, finished, by_itself, stopped, now=now).report.text == "rank 2: Relaunch: rank 1 ended"
    done = together(job, finished, by_itself, ended(2, 0, STOPPED_AT - LATE, **BY_RELAUNCH), now=now)
    assert judge(job, done, now).kind is StopKind.SUCCESS


def test_ranks_that_end_together_some_time_after_somebody_stopped_one_were_all_stopped():
    """All save together, so that any may be the first to end, by milliseconds."""
    job = gang(intent=meant(IntentKind.RANK_ENDED), started_at=NOW)
    now = STOPPED_AT + LATE
    stopped = ended(0, 1, now, stop_code="UserInitiated", stopped_reason="not today")
    first = ended(1, 1, now - timedelta(milliseconds=1), **BY_RELAUNCH)

    found = together(job, stopped, first, ended(2, 0, now), now=now)

    assert found.report.text == "rank 0: not today"
    assert judge(job, found, now).kind is StopKind.CANCELLED


def test_a_part_of_the_ranks_that_had_ended_before_it_was_withdrawn_was_stopped_by_nobody():
    """Only one of three was placed, which is one task then."""
    job = gang(intent=meant(IntentKind.START_WITHDRAWN), started_at=NOW)
    placement = job.current_attempt.placement
    job = replace(job, attempt=replace(job.current_attempt, placement=replace(placement, followers=())))
    ended_before = ended(0, 1, STOPPED_AT - LATE, **{**BY_RELAUNCH, "stopped_at": STOPPED_AT + LATE})

    assert judge(job, ended_before, STOPPED_AT + LATE).kind is StopKind.NOT_STARTED
