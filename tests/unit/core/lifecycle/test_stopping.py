from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import (
    NOW,
    container_instance_arn,
    make_attempt,
    make_offering_key,
    make_placement,
    make_running_attempt,
    task_id,
    with_stored,
)
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import RetryRules
from relaunch.core.jobs.attempt import IntentKind, PlacementState, Stop, StopKind
from relaunch.core.jobs.effects import CountRun, ReleaseMachine, RememberCapacity, RequestLaunch
from relaunch.core.jobs.job import FailedStart
from relaunch.core.jobs.state import CostBasis, JobState, Waiting, WaitReason
from relaunch.core.lifecycle.stopping import follow_stop, task_lost
from relaunch.core.offerings.offering import CapacityFailure
from relaunch.core.offerings.spot_runs import Observed, SpotRun
from unit.core.lifecycle.steps import ADMIT, LAUNCH, SOON, after, decided, stopped
from unit.core.lifecycle.table_matrix import (
    HOST_LOST,
    NO_CAPACITY,
    SITUATIONS,
    intent,
    seen,
    seen_stopped,
    with_attempt,
)


def ended(what: Observed = Observed.END, seconds: float = 60.0, **fields) -> CountRun:
    """Return the effect that counts the end of the first attempt's run."""
    run_id = f"{SITUATIONS['ru'].attempt_key}/1"
    return CountRun(SpotRun(make_offering_key(**{"zone": "us-east-1a", **fields}), run_id, what, SOON, seconds / 3600))


def test_a_stop_is_kept_with_its_attempt_in_ecs_own_words():
    attempt = stopped(SITUATIONS["ru"], 3).current_attempt

    assert attempt.stop is not None
    assert (attempt.stop.kind, attempt.stop.exit_code, attempt.stop.at) == (StopKind.USER_ERROR, 3, SOON)
    assert attempt.stop.stop_code == "EssentialContainerExited"
    assert attempt.task_status == "STOPPED"
    assert attempt.placement.state is PlacementState.CLOSED
    assert attempt.placement.task_id == task_id()


def test_what_a_task_ran_is_summed_up_and_paid_for():
    job = replace(SITUATIONS["ru"], totals=replace(SITUATIONS["ru"].totals, run_seconds=100.0, cost_usd=1.0))

    ended = stopped(job, 0, NOW + timedelta(hours=2))

    assert ended.totals.run_seconds == 7300.0
    assert ended.totals.cost_usd == pytest.approx(1.0 + 2 * 0.40)


@pytest.mark.parametrize(("zone", "usd_per_hour"), [("us-east-1a", 0.2), ("us-east-1b", 0.4)])
def test_a_zone_that_becomes_known_with_the_stop_decides_the_price(zone, usd_per_hour):
    job = SITUATIONS["ru"]
    placement = replace(
        job.current_attempt.placement,
        usd_per_hour_by_zone={"us-east-1a": 0.2, "us-east-1b": 0.4},
        limit_usd_per_hour=1.0,
    )
    job = replace(job, attempt=replace(job.current_attempt, placement=placement, zone=None))

    ended = stopped(job, 0, NOW + timedelta(hours=2), zone=zone)

    assert (ended.totals.cost_usd, ended.totals.cost_basis) == (pytest.approx(2 * usd_per_hour), CostBasis.PRICE)


@pytest.mark.parametrize(
    ("price", "expected"),
    [
        pytest.param({}, CostBasis.PRICE, id="price"),
        pytest.param({"is_price_limit": True}, CostBasis.LIMIT, id="limit"),
        pytest.param({"price_usd_per_hour": 0.0}, CostBasis.UNKNOWN, id="unknown"),
    ],
)
def test_a_cost_rests_on_the_worst_price_that_a_task_ran_at(price, expected):
    attempt = SITUATIONS["ru"].current_attempt
    job = replace(SITUATIONS["ru"], attempt=replace(attempt, placement=replace(attempt.placement, **price)))

    assert stopped(job, 0).totals.cost_basis is expected
    assert (
        stopped(replace(job, totals=replace(job.totals, cost_basis=CostBasis.UNKNOWN)), 0).totals.cost_basis
        is CostBasis.UNKNOWN
    )
    never_ran = replace(job, attempt=replace(job.current_attempt, started_at=None))
    assert follow_stop(never_ran, Stop(StopKind.NO_CAPACITY, SOON), SOON).job.totals.cost_basis is CostBasis.PRICE


def test_a_task_that_stopped_before_it_was_seen_running_ran_all_the_same():
    job = stopped(SITUATIONS["pl"], 1)

    assert job.current_attempt.started_at == NOW
    assert job.totals.first_started_at == NOW
    assert job.totals.run_seconds == 60.0


def test_clocks_that_disagree_make_no_negative_run_time():
    job = with_attempt("ru", started_at=SOON + timedelta(seconds=9))

    assert stopped(job, 1).totals.run_seconds == 0.0


def test_instances_that_did_not_start_a_job_are_forgotten_once_it_runs():
    failure = CapacityFailure(make_offering_key(), "no capacity", NOW, NOW)
    kept_off = (FailedStart("i-1", "DockerTimeoutError"),)
    job = after(
        replace(
            SITUATIONS["pl"], faults=replace(SITUATIONS["pl"].faults, failed_starts=kept_off, own_failures=(failure,))
        ),
        seen("RUNNING"),
    )

    assert (job.faults.failed_starts, job.faults.own_failures) == ((), ())


def test_a_task_that_never_started_costs_nothing_and_counts_as_nothing():
    job = stopped(SITUATIONS["pl"], **NO_CAPACITY)

    assert (job.totals.run_seconds, job.totals.cost_usd, job.totals.failures, job.totals.interruptions) == (
        0.0,
        0.0,
        0,
        0,
    )
    assert job.totals.first_started_at is None


def test_a_failure_is_launched_again_after_its_pause():
    job = stopped(SITUATIONS["ru"], 1)

    assert (job.totals.failures, job.totals.interruptions) == (1, 0)
    assert job.pending == (ended(), RequestLaunch(30))
    again_at = SOON + timedelta(seconds=30)
    assert job.waiting == Waiting(WaitReason.BACKOFF, SOON, job.reason, again_at)
    assert job.wake_at is not None
    assert job.wake_at > again_at


def test_an_offering_without_capacity_is_remembered_before_the_next_launch_is_asked_for():
    job = stopped(SITUATIONS["pl"], **NO_CAPACITY)

    remember, launch = job.pending
    provider = job.current_attempt.placement.capacity_provider
    until = SOON + timedelta(minutes=30)
    assert remember == RememberCapacity(make_offering_key(), job.reason, SOON, until, provider, gpu_count=1)
    assert launch == LAUNCH
    assert job.waiting == Waiting(WaitReason.LAUNCH, SOON, job.reason)


@pytest.mark.parametrize(("node", "remembered"), [(None, [RememberCapacity]), (container_instance_arn(), [])])
def test_a_withdrawn_task_that_got_a_machine_before_its_stop_took_effect_shuts_no_offering(node, remembered):
    withdrawn = with_attempt("pl", intent=intent(IntentKind.PLACEMENT_WITHDRAWN), node=node)

    job = stopped(replace(withdrawn, state=JobState.STOPPING), **NO_CAPACITY)

    assert job.current_attempt.stop is not None
    assert job.current_attempt.stop.kind is StopKind.NO_CAPACITY
    assert [type(effect) for effect in job.pending] == [*remembered, RequestLaunch]


def test_gpus_are_not_asked_of_an_instance_with_part_of_one():
    job = SITUATIONS["pl"]
    part = replace(job.current_attempt.placement, gpu_partition_size=0.5)

    remember, _ = stopped(replace(job, attempt=replace(job.current_attempt, placement=part)), **NO_CAPACITY).pending

    assert remember.gpu_count == 0


def test_an_offering_without_capacity_for_a_job_that_is_kept_from_an_instance_is_avoided_by_that_job_only():
    kept_off = (FailedStart("i-1", "DockerTimeoutError"),)
    provider = SITUATIONS["pl"].current_attempt.placement.capacity_provider
    earlier = CapacityFailure(make_offering_key(), "earlier", NOW, NOW, capacity_provider=provider)
    other = CapacityFailure(make_offering_key(), "other", NOW, NOW, capacity_provider="another-provider")
    job = replace(
        SITUATIONS["pl"], faults=replace(SITUATIONS["pl"].faults, failed_starts=kept_off, own_failures=(earlier, other))
    )

    job = stopped(job, **NO_CAPACITY)

    until = SOON + timedelta(minutes=10)
    own = CapacityFailure(make_offering_key(), job.reason, SOON, until, capacity_provider=provider)
    assert job.pending == (LAUNCH,)
    assert job.faults.own_failures == (other, own)


def test_an_instance_that_is_known_by_its_container_instance_only_keeps_no_launch_from_it():
    kept_off = (FailedStart(container_instance_arn(), "DockerTimeoutError"),)

    job = stopped(
        replace(SITUATIONS["pl"], faults=replace(SITUATIONS["pl"].faults, failed_starts=kept_off)), **NO_CAPACITY
    )

    assert [type(effect) for effect in job.pending] == [RememberCapacity, RequestLaunch]
    assert job.faults.own_failures == ()


def test_an_interruption_counts_for_the_rate_in_its_zone_and_shuts_nothing():
    job = stopped(with_attempt("ru", zone="us-east-1b"), **HOST_LOST)

    assert job.pending == (ended(Observed.INTERRUPTION, zone="us-east-1b"), LAUNCH)


def test_an_interruption_before_the_start_counts_without_hours():
    job = stopped(SITUATIONS["pl"], started_at=None, **HOST_LOST)

    assert job.pending == (ended(Observed.INTERRUPTION, seconds=0.0, zone=None), LAUNCH)


@pytest.mark.parametrize(("node", "counted"), [(None, 0), (make_running_attempt().node, 1)], ids=["nowhere", "on-node"])
def test_a_task_that_was_lost_before_it_was_seen_on_a_machine_says_nothing_of_the_pool(node, counted):
    placed = with_attempt("pl", node=node)

    job = task_lost(placed, SOON, "the cluster does not know the task any more", SOON).job

    assert job.attempt.stop.kind is StopKind.HOST_LOST
    assert sum(isinstance(effect, CountRun) for effect in job.pending) == counted


@pytest.mark.parametrize(("ended_after", "ran"), [(None, 60), (20, 20), (-1, 0), (90, 60)])
def test_a_task_that_was_lost_ran_until_its_instance_ended(ended_after, ran):
    started_at = SITUATIONS["ru"].current_attempt.started_at
    ended_at = None if ended_after is None else started_at + timedelta(seconds=ended_after)

    job = task_lost(with_attempt("ru", host_ended_at=ended_at), started_at + timedelta(minutes=1), "gone", SOON).job

    assert job.attempt.stop.at == started_at + timedelta(seconds=ran)
    assert job.totals.run_seconds == ran


def test_what_runs_on_demand_says_nothing_of_spot():
    placement = make_placement(
        state=PlacementState.PLACED, task_id=task_id(), offering=make_offering_key(purchase=PurchaseOption.ON_DEMAND)
    )

    assert stopped(with_attempt("ru", placement=placement), **HOST_LOST).pending == (LAUNCH,)


def test_a_job_that_ends_gives_its_slot_back_and_lets_the_next_one_in():
    decision = decided(SITUATIONS["ru"], seen_stopped(0))

    assert decision.release_slot
    assert decision.job.pending == (ended(), ADMIT)
    assert decision.job.ended_at == SOON
    assert decision.job.wake_at is not None
    assert decision.timeline[0].event == "succeeded"


def test_the_exit_code_of_the_definitions_container_counts_and_no_others():
    assert stopped(SITUATIONS["ru"], container_exit_codes={"main": 0, "log": 1}).state is JobState.SUCCEEDED
    assert stopped(SITUATIONS["ru"], container_exit_codes={"main": 1, "log": 0}).totals.failures == 1


def test_a_program_that_fails_on_a_machine_that_shuts_down_was_lost_with_it():
    job = with_attempt("ru", host_ended_at=NOW + timedelta(seconds=50))

    lost = stopped(job, 1)

    assert (lost.totals.failures, lost.totals.interruptions, lost.interrupted_at) == (0, 1, NOW + timedelta(seconds=50))


def test_a_task_that_is_lost_before_it_starts_leaves_no_gap_to_be_timed():
    lost = stopped(SITUATIONS["pl"], started_at=None, **HOST_LOST)

    assert (lost.totals.interruptions, lost.interrupted_at, lost.totals.run_seconds) == (1, None, 0.0)


def test_a_job_that_we_stopped_because_its_time_was_up_timed_out():
    job = with_attempt("sn", intent=intent(IntentKind.TIME_OUT))

    assert decided(job, seen_stopped(143)).timeline[0].event == "timed out"


def test_the_last_allowed_failure_is_the_end():
    job = stopped(replace(SITUATIONS["ru"], totals=replace(SITUATIONS["ru"].totals, failures=2)), 1)

    assert job.state is JobState.FAILED
    assert job.totals.failures == 3
    assert job.reason.endswith("failure 3: max_failures allows 2")


def test_a_task_without_a_stop_time_stopped_when_it_was_seen():
    attempt = make_attempt(placement=make_placement(state=PlacementState.PLACED, task_id=task_id()))
    job = decided(replace(SITUATIONS["pl"], attempt=attempt), seen_stopped(1, stopped_at=None)).job

    assert job.current_attempt.stop is not None
    assert job.current_attempt.stop.at == SOON


PATIENT = replace(SITUATIONS["ro"].definition, max_failures=9, retry=RetryRules(max_early_failures=9))


def failing(kind=StopKind.USER_ERROR, *, ran=timedelta(minutes=1), instance_id="i-0abc", **fields):
    job = with_attempt("ro", started_at=SOON - ran, instance_id=instance_id)
    job = with_stored(job, machine_id="", **fields)
    return follow_stop(job, Stop(kind, SOON, exit_code=1), SOON).job


@pytest.mark.parametrize("kind", [StopKind.USER_ERROR, StopKind.OUT_OF_MEMORY, StopKind.SIDECAR])
def test_a_program_that_fails_soon_after_its_start_is_started_again_on_the_same_machine(kind):
    job = failing(kind)

    assert job.machine_id == job.current_attempt.placement.machine_id != ""
    assert job.faults.early_failures == 1
    assert not any(isinstance(each, ReleaseMachine) for each in job.pending)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        pytest.param(StopKind.USER_ERROR, {"ran": timedelta(minutes=10)}, id="it ran for longer"),
        pytest.param(StopKind.UNKNOWN, {}, id="nobody says that the program failed"),
        pytest.param(StopKind.USER_ERROR, {"failures": 2, "definition": PATIENT}, id="the machine would wait for long"),
    ],
)
def test_what_may_be_the_machines_goes_on_elsewhere(kind, fields):
    assert failing(kind, **fields).machine_id == ""


def test_early_failures_in_a_row_are_counted_until_one_that_comes_later():
    assert failing(early_failures=1).faults.early_failures == 2
    assert failing(StopKind.INTERRUPTION, early_failures=1).faults.early_failures == 1
    assert failing(ran=timedelta(minutes=10), early_failures=1).faults.early_failures == 0


def test_a_machine_at_fault_is_no_failure_and_the_job_keeps_off_it():
    job = failing(StopKind.MACHINE_FAULT, instance_id="i-9", faulty_machines=("i-1",))

    assert (job.totals.failures, job.faults.faulty_machines, job.pending[-1]) == (0, ("i-1", "i-9"), RequestLaunch(0))
    assert job.faults.avoided_instances == ("i-1", "i-9")
    assert job.machine_id == ""


def test_a_program_that_blames_a_fourth_machine_in_a_row_has_failed():
    job = failing(StopKind.MACHINE_FAULT, instance_id="i-4", faulty_machines=("i-1", "i-2", "i-3"))

    stop = job.current_attempt.stop
    assert (stop.kind, job.totals.failures) == (StopKind.USER_ERROR, 1)
    assert stop.stopped_reason == "it said so of 3 machines before: i-1, i-2, i-3"


def test_a_machine_that_fails_after_an_hour_is_the_first_again():
    hour = timedelta(hours=1)
    three = ("i-1", "i-2", "i-3")

    assert failing(
        StopKind.MACHINE_FAULT, ran=hour, instance_id="i-4", faulty_machines=three
    ).faults.faulty_machines == ("i-4",)
    assert failing(ran=hour, faulty_machines=three).faults.faulty_machines == ("i-3",)
