"""Whether, and where to, a running task on on-demand may be moved."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_offering, make_placement, make_selection
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import Handover
from relaunch.core.jobs.effects import RequestLaunch
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import Progress, SavedCheckpoint
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import HEARTBEAT, POLL_INTERVAL
from relaunch.core.lifecycle.events import MachineLimitReached, MoveDeclined
from relaunch.core.lifecycle.machine_waits import describe_limit
from relaunch.core.lifecycle.moves import (
    decline_at_limit,
    decline_so_soon,
    may_move,
    next_move_at,
    pools_to_move_to,
    resumable_progress,
    why_it_stays,
    with_move,
)
from relaunch.core.lifecycle.table import decide
from relaunch.core.market.policies import PolicyName
from relaunch.core.market.situation import Pool
from unit.core.lifecycle.table_matrix import EVENTS, LIMITS, SITUATIONS, SOON, with_attempt

HOUR = timedelta(hours=1)
JOB = SITUATIONS["rd"]


def defined(**fields) -> Job:
    return replace(JOB, definition=replace(JOB.definition, **fields))


def on(purchase: PurchaseOption) -> Job:
    placement = JOB.current_attempt.placement
    return with_attempt("rd", placement=replace(placement, offering=replace(placement.offering, purchase=purchase)))


def test_a_task_on_on_demand_with_a_limit_and_checkpoints_may_be_moved():
    assert may_move(JOB)
    assert may_move(defined(deadline=None, patience=HOUR))
    assert may_move(defined(policy=PolicyName.UNIFORM_PROGRESS))


def test_one_without_a_limit_too():
    assert may_move(defined(deadline=None, estimated_duration=None))


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(on(PurchaseOption.SPOT), id="on-spot"),
        pytest.param(on(PurchaseOption.RESERVED), id="reserved"),
        pytest.param(defined(checkpoint_uri=None), id="without-checkpoints"),
        pytest.param(defined(policy=PolicyName.GREEDY), id="greedy"),
        pytest.param(defined(policy=PolicyName.ON_DEMAND_FIRST), id="on-demand-first"),
        pytest.param(defined(purchase=PurchasePolicy.ON_DEMAND), id="never-on-spot"),
        pytest.param(defined(target=Target.ACK), id="on-kubernetes"),
        pytest.param(replace(JOB, cancel_requested="enough"), id="cancelled"),
        pytest.param(replace(JOB, machine_id="m-1"), id="next-machine-claimed"),
        pytest.param(replace(JOB, state=JobState.STOPPING), id="stopping"),
        pytest.param(replace(JOB, attempt=None), id="never-launched"),
        pytest.param(with_attempt("rd", warned_at=NOW), id="warned"),
        pytest.param(with_attempt("rd", handover=Handover(NOW, "warning")), id="handed-over"),
    ],
)
def test_no_other_task_is_moved(job):
    assert not may_move(job)


def test_what_the_task_did_since_its_checkpoint_counts_as_lost():
    attempt = JOB.current_attempt
    saved = SavedCheckpoint("s3://b/c", 7, attempt.number, attempt.started_at + 3 * HOUR)

    progress = resumable_progress(defined(padding=0.0), saved, make_selection(), None)

    assert (progress.done, progress.left) == (3 * HOUR, 17 * HOUR)


@pytest.mark.parametrize("newest", [None, SavedCheckpoint("s3://b/c", 7, 0, NOW)])
def test_without_a_checkpoint_of_its_own_nothing_is_known_to_be_resumed(newest):
    assert resumable_progress(JOB, newest, make_selection(), None) is None


@pytest.mark.parametrize(
    ("job", "left", "stays"),
    [
        (defined(padding=0.2), timedelta(0), False),
        (defined(padding=0.0), HOUR, False),
        (defined(padding=0.0, deadline=None, patience=HOUR), timedelta(0), False),
        (defined(padding=0.0), timedelta(0), True),
    ],
)
def test_one_that_has_outlived_its_estimate_stays_if_it_has_a_deadline(job: Job, left: timedelta, *, stays: bool):
    newest = SavedCheckpoint("s3://b/c", 7, job.current_attempt.number, NOW)

    assert ("outlived its estimate" in why_it_stays(job, newest, Progress(HOUR, left))) is stays


def test_one_that_has_saved_nothing_stays():
    assert why_it_stays(JOB, None, None) == "it has saved no checkpoint since it was launched"


def test_pools_are_those_of_own_machines_that_cost_less():
    job = with_attempt("rd", placement=make_placement(price_usd_per_hour=0.5))
    own, dear = (make_offering(zone=zone, is_own_machine=True, capacity_provider=None) for zone in ("a", "b"))
    others = make_offering("g6.xlarge")
    selection = make_selection(kept=(own, dear, others))
    pools = (Pool(str(own.key), 0.4), Pool(str(dear.key), 0.5), Pool(str(others.key), 0.1))

    assert pools_to_move_to(job, selection, pools) == pools[:1]
    unknown = with_attempt("rd", placement=make_placement(price_usd_per_hour=0.0))
    assert pools_to_move_to(unknown, selection, pools) == pools[:2], "what has a price costs less"


@pytest.mark.parametrize(
    ("until", "look"),
    [
        (None, HEARTBEAT),
        (SOON + HEARTBEAT * 2, HEARTBEAT),
        (SOON + HEARTBEAT / 2, HEARTBEAT / 2),
        (SOON, POLL_INTERVAL),
    ],
)
def test_a_task_that_stays_is_looked_at_again_when_its_policy_says_so(until, look):
    declined = decide(JOB, MoveDeclined("it does not pay", until), SOON, LIMITS).job

    assert (declined.market.reason, declined.wake_at, declined.pending) == ("it does not pay", SOON + look, ())


@pytest.mark.parametrize(("known", "found", "kept"), [(0.0, 6_000.0, 6_000.0), (6_000.0, 0.0, 6_000.0)])
def test_how_long_a_task_ran_without_a_checkpoint_is_kept(known, found, kept):
    job = replace(JOB, measured=replace(JOB.measured, checkpoint_seconds=known))

    assert decide(job, MoveDeclined("none yet", None, found), SOON, LIMITS).job.measured.checkpoint_seconds == kept


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("machines", "machines of its own (MaxMachines)"),
        ("usd_per_hour", "USD per hour for machines of its own (MaxMachinesPricePerHour)"),
    ],
)
def test_a_task_that_no_machine_may_be_requested_for_stays_and_says_so(limit, words):
    job = replace(JOB, pending=(RequestLaunch(),))

    declined = decide(job, decline_at_limit(MachineLimitReached(limit)), SOON, LIMITS).job

    assert declined.market.reason == (
        f"leaving on-demand for spot pays, but the stack has reached its limit of {words}, and a move takes one more "
        "until the task has left the old one"
    )
    assert (declined.wake_at, declined.pending) == (SOON + HEARTBEAT, ())


def test_a_task_whose_next_machine_does_not_come_says_why_it_stays():
    moving = SITUATIONS["rm"]

    stays = decide(moving, EVENTS["machine-refused"], SOON, LIMITS).job

    assert (stays.state, stays.machine_id, stays.current_attempt.handover) == (JobState.RUNNING, "", None)
    assert stays.market.reason == "there was no machine on spot to move it to: EC2 has no capacity for it"


def test_the_task_that_is_to_be_moved_says_why():
    selection = make_selection(market_reason="leaving on-demand for spot pays")

    moving = decide(JOB, replace(EVENTS["machine-claimed"], selection=selection), SOON, LIMITS).job

    assert moving.machine_id == "m-1"
    assert moving.current_attempt.handover == Handover(SOON, "leaving on-demand for spot pays", is_move=True)


def test_which_machines_start_is_told_in_its_own_words():
    assert describe_limit(MachineLimitReached("starting", "6 machines start now")) == "6 machines start now"


def test_a_move_is_remembered_once_its_task_is_stopped_for_it():
    moved = decide(SITUATIONS["rm"], EVENTS["next-ready"], SOON, LIMITS).job

    assert moved.market.moved_at == (SOON,)
    handed_over = decide(SITUATIONS["rn"], EVENTS["next-ready"], SOON, LIMITS).job
    assert handed_over.market.moved_at == ()


def moved(*hours: float) -> Job:
    job = JOB
    for each in hours:
        job = with_move(job, NOW + each * HOUR)
    return job


@pytest.mark.parametrize(
    ("job", "at", "again_at"),
    [
        pytest.param(moved(), 0.0, 0.0, id="never"),
        pytest.param(moved(0.0), 0.5, 1.0, id="half-an-hour-ago"),
        pytest.param(moved(0.0), 1.5, 1.5, id="long-ago"),
        pytest.param(moved(*range(7)), 7.5, 7.5, id="seven-times"),
        pytest.param(moved(*range(8)), 8.5, 24.0, id="eight-times-within-a-day"),
        pytest.param(moved(*range(9)), 9.5, 25.0, id="the-eighth-last-counts"),
        pytest.param(moved(*range(8)), 25.0, 25.0, id="eight-times-the-first-a-day-ago"),
    ],
)
def test_moves_of_a_job_without_a_limit_are_an_hour_apart_and_eight_a_day(job, at, again_at):
    assert next_move_at(job, NOW + at * HOUR) == NOW + again_at * HOUR


@pytest.mark.parametrize(("job", "times"), [(moved(0.0), "once"), (moved(0.0, 2.0), "2 times")])
def test_one_that_was_moved_lately_stays_and_says_until_when(job, times):
    declined = decline_so_soon(job, NOW + 3 * HOUR, NOW + 2.5 * HOUR)

    assert declined == MoveDeclined(
        f"it was moved to spot {times} within 24 hours, and is not moved again before {NOW + 3 * HOUR:%H:%M} UTC",
        NOW + 3 * HOUR,
    )
