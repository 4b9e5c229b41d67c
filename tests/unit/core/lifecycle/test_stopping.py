from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_attempt, make_offering_key, make_placement, make_running_attempt, task_arn
from relaunch.core.jobs.job import (
    AdmitWaiting,
    IntentKind,
    Job,
    JobState,
    PlacementState,
    RememberCapacity,
    RequestLaunch,
    StopKind,
    Waiting,
    WaitReason,
)
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.lifecycle.table import decide
from unit.core.lifecycle.table_matrix import SITUATIONS, intent, seen_stopped

SOON = NOW + timedelta(minutes=1)
LAUNCH = RequestLaunch()
HOST_GONE = {
    "stop_code": "TerminationNotice",
    "stopped_reason": "Host EC2 (instance i-0123456789abcdef0) terminated.",
    "container_exit_codes": {"main": None},
}
NO_CAPACITY = {
    "stop_code": "TaskFailedToStart",
    "stopped_reason": "RESOURCE:GPU",
    "container_exit_codes": {},
    "started_at": None,
}


def stopped(job: Job, exit_code: int | None = None, at=SOON, **fields) -> Job:
    return decide(job, seen_stopped(exit_code, at, **fields), at, StackLimits()).job


def test_a_stop_is_kept_with_its_attempt_in_ecs_own_words():
    attempt = stopped(SITUATIONS["ru"], 3).current_attempt

    assert attempt.stop is not None
    assert (attempt.stop.kind, attempt.stop.exit_code, attempt.stop.at) == (StopKind.USER_ERROR, 3, SOON)
    assert attempt.stop.stop_code == "EssentialContainerExited"
    assert attempt.task_status == "STOPPED"
    assert attempt.placement.state is PlacementState.CLOSED
    assert attempt.placement.task_arn == task_arn()


def test_what_a_task_ran_is_summed_up_and_paid_for():
    job = replace(SITUATIONS["ru"], run_seconds=100.0, cost_usd=1.0)

    ended = stopped(job, 0, NOW + timedelta(hours=2))

    assert ended.run_seconds == 7300.0
    assert ended.cost_usd == pytest.approx(1.0 + 2 * 0.40)


def test_a_task_that_stopped_before_it_was_seen_running_ran_all_the_same():
    job = stopped(SITUATIONS["pl"], 1)

    assert job.current_attempt.started_at == NOW
    assert job.first_started_at == NOW
    assert job.run_seconds == 60.0


def test_clocks_that_disagree_make_no_negative_run_time():
    job = replace(SITUATIONS["ru"], attempt=make_running_attempt(started_at=SOON + timedelta(seconds=9)))

    assert stopped(job, 1).run_seconds == 0.0


def test_a_task_that_never_started_costs_nothing_and_counts_as_nothing():
    job = stopped(SITUATIONS["pl"], **NO_CAPACITY)

    assert (job.run_seconds, job.cost_usd, job.failures, job.interruptions) == (0.0, 0.0, 0, 0)
    assert job.first_started_at is None


def test_a_failure_is_launched_again_after_its_pause():
    job = stopped(SITUATIONS["ru"], 1)

    assert (job.failures, job.interruptions) == (1, 0)
    assert job.pending == (RequestLaunch(30),)
    again_at = SOON + timedelta(seconds=30)
    assert job.waiting == Waiting(WaitReason.BACKOFF, SOON, job.reason, again_at)
    assert job.wake_at is not None
    assert job.wake_at > again_at


@pytest.mark.parametrize(
    ("observed", "minutes"),
    [pytest.param(HOST_GONE, 30, id="host-lost"), pytest.param(NO_CAPACITY, 15, id="no-capacity")],
)
def test_an_offering_that_failed_is_remembered_before_the_next_launch_is_asked_for(observed, minutes):
    job = stopped(SITUATIONS["ru"], **observed)

    remember, launch = job.pending
    assert remember == RememberCapacity(
        reason=job.reason,
        offering=make_offering_key(),
        until=SOON + timedelta(minutes=minutes),
    )
    assert launch == LAUNCH
    assert job.waiting == Waiting(WaitReason.LAUNCH, SOON, job.reason)


def test_a_job_that_ends_gives_its_slot_back_and_lets_the_next_one_in():
    decision = decide(SITUATIONS["ru"], seen_stopped(0), SOON, StackLimits())

    assert decision.release_slot
    assert decision.job.pending == (AdmitWaiting(),)
    assert decision.job.ended_at == SOON
    assert decision.job.wake_at is not None
    assert decision.timeline[0].event == "succeeded"


def test_the_exit_code_of_the_definitions_container_counts_and_no_others():
    assert stopped(SITUATIONS["ru"], container_exit_codes={"main": 0, "log": 1}).state is JobState.SUCCEEDED
    assert stopped(SITUATIONS["ru"], container_exit_codes={"main": 1, "log": 0}).failures == 1


def test_a_program_that_fails_on_a_machine_that_shuts_down_was_lost_with_it():
    job = replace(SITUATIONS["ru"], attempt=make_running_attempt(host_ended_at=NOW + timedelta(seconds=50)))

    lost = stopped(job, 1)

    assert (lost.failures, lost.interruptions, lost.interrupted_at) == (0, 1, NOW + timedelta(seconds=50))


def test_a_task_that_is_lost_before_it_starts_leaves_no_gap_to_be_timed():
    lost = stopped(SITUATIONS["pl"], started_at=None, **HOST_GONE)

    assert (lost.interruptions, lost.interrupted_at, lost.run_seconds) == (1, None, 0.0)


def test_a_job_that_we_stopped_because_its_time_was_up_timed_out():
    job = replace(SITUATIONS["sn"], attempt=make_running_attempt(intent=intent(IntentKind.TIME_OUT)))

    assert decide(job, seen_stopped(143), SOON, StackLimits()).timeline[0].event == "timed out"


def test_the_last_allowed_failure_is_the_end():
    job = stopped(replace(SITUATIONS["ru"], failures=2), 1)

    assert job.state is JobState.FAILED
    assert job.failures == 3
    assert job.reason.endswith("failure 3, and max_failures is 2")


def test_a_task_without_a_stop_time_stopped_when_it_was_seen():
    attempt = make_attempt(placement=make_placement(state=PlacementState.PLACED, task_arn=task_arn()))
    job = decide(replace(SITUATIONS["pl"], attempt=attempt), seen_stopped(1, stopped_at=None), SOON, StackLimits()).job

    assert job.current_attempt.stop is not None
    assert job.current_attempt.stop.at == SOON
