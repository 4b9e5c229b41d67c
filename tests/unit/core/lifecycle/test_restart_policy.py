from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import NOW, make_definition, make_job, make_running_attempt, make_running_job
from relaunch.core.definitions.definition import RetryRules
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import Stop, StopKind
from relaunch.core.jobs.job import FailedStart
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.long_waits import START_LIMIT, idle_time
from relaunch.core.lifecycle.restart_policy import (
    GiveUp,
    HoldBack,
    RestartAfter,
    decide_restart,
    describe_stop,
    is_failure,
    is_interruption,
    next_time_limit,
    out_of_time,
)

HOUR = timedelta(hours=1)


def after_stop(kind: StopKind, **job):
    stop = Stop(kind, NOW, exit_code=1 if kind is StopKind.USER_ERROR else None)
    return decide_restart(make_running_job(attempt=make_running_attempt(stop=stop), **job), stop, NOW)


def test_every_kind_of_stop_is_one_of_end_failure_interruption_or_want_of_capacity():
    started = (FailedStart("i-1", ""),)
    ends = {k for k in StopKind if isinstance(after_stop(k, failures=1, failed_starts=started), GiveUp)}
    failures = {kind for kind in StopKind if is_failure(kind)}
    interruptions = {kind for kind in StopKind if is_interruption(kind)}

    assert ends == {StopKind.SUCCESS, StopKind.CANCELLED, StopKind.TIME_OUT, StopKind.STARTS_NOWHERE}
    assert failures == {
        StopKind.USER_ERROR,
        StopKind.SIDECAR,
        StopKind.OUT_OF_MEMORY,
        StopKind.IMAGE,
        StopKind.STARTS_NOWHERE,
        StopKind.UNKNOWN,
    }
    assert interruptions == {StopKind.INTERRUPTION, StopKind.HOST_LOST}
    assert isinstance(after_stop(StopKind.START_REFUSED), HoldBack)
    others = {
        StopKind.MOVED,
        StopKind.OVER_BUDGET,
        StopKind.NO_CAPACITY,
        StopKind.NOT_STARTED,
        StopKind.START_REFUSED,
        StopKind.UNKNOWN_START,
        StopKind.MACHINE_FAULT,
    }
    assert set(StopKind) - ends - failures - interruptions == others


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (StopKind.SUCCESS, JobState.SUCCEEDED),
        (StopKind.CANCELLED, JobState.CANCELLED),
        (StopKind.TIME_OUT, JobState.TIMED_OUT),
    ],
)
def test_an_end_is_an_end(kind, state):
    verdict = after_stop(kind)

    assert isinstance(verdict, GiveUp)
    assert verdict.state is state


@pytest.mark.parametrize(("failed", "delay"), [(1, 30), (2, 60)])
def test_a_task_that_an_instance_did_not_start_is_launched_again_after_a_growing_pause(failed, delay):
    starts = tuple(FailedStart(f"i-{number}", f"{number}Error") for number in range(failed))

    assert after_stop(StopKind.NOT_STARTED, failed_starts=starts) == RestartAfter(
        delay, f"the task had a machine and did not start on it; again on another machine in {delay} s"
    )


@pytest.mark.parametrize("failed", [3, 5])
def test_a_task_that_three_machines_did_not_start_is_held_back_until_what_they_have_in_common_heals(failed):
    starts = tuple(FailedStart(f"i-{number}", "DockerTimeoutError") for number in range(failed))

    assert after_stop(StopKind.NOT_STARTED, failed_starts=starts) == HoldBack(
        f"the task had a machine and did not start on it; {failed} machines in a row did not start it"
    )


def early(exit_code=1, *, ran=9, resume_uri=None, kind=StopKind.USER_ERROR, early_failures=1, failures=1, **retry):
    stop = Stop(kind, NOW, exit_code=exit_code)
    attempt = make_running_attempt(stop=stop, started_at=NOW - timedelta(minutes=ran))
    attempt = replace(attempt, placement=replace(attempt.placement, resume_uri=resume_uri))
    definition = make_definition(max_failures=5, retry=RetryRules(**retry))
    job = make_running_job(attempt=attempt, definition=definition, early_failures=early_failures, failures=failures)
    return decide_restart(job, stop, NOW)


@pytest.mark.parametrize("kind", [StopKind.USER_ERROR, StopKind.OUT_OF_MEMORY, StopKind.SIDECAR])
def test_a_program_that_fails_soon_after_its_start_is_started_again_once(kind):
    limit = "(within 10m of the start, before any checkpoint): retry.max_early_failures allows 1"
    again = early(kind=kind)
    assert isinstance(again, RestartAfter)
    assert again.reason.endswith(f"; failure 1: max_failures allows 5; early failure 1 {limit}; again in 30 s")
    verdict = early(kind=kind, early_failures=2, failures=2)
    assert isinstance(verdict, GiveUp)
    assert verdict.state is JobState.FAILED
    assert verdict.reason.endswith(f"; early failure 2 {limit}")


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param({"ran": 10}, id="it ran for longer"),
        pytest.param({"resume_uri": "s3://acme/step-0000100/"}, id="it has trained before"),
        pytest.param({"max_early_failures": 2}, id="more are allowed"),
        pytest.param({"on_exit_codes": (1,)}, id="the exit code is retried"),
        pytest.param({"kind": StopKind.UNKNOWN}, id="nobody says that the program failed"),
    ],
)
def test_a_failure_is_not_limited_as_an_early_one(rules):
    assert isinstance(early(early_failures=2, failures=2, **rules), RestartAfter)


def test_a_failure_with_an_exit_code_that_is_never_retried_ends_the_job():
    verdict = early(2, ran=100, never_on_exit_codes=(2, 3))

    assert verdict == GiveUp(JobState.FAILED, "the program failed (exit code 2); retry.never_on_exit_codes has 2")


def test_a_job_out_of_time_is_not_launched_again_though_its_instance_did_not_start_it():
    definition = make_definition(deadline=timedelta(0))
    verdict = after_stop(StopKind.NOT_STARTED, failed_starts=(FailedStart("i-1", ""),), definition=definition)

    assert isinstance(verdict, GiveUp)
    assert verdict.state is JobState.TIMED_OUT


@pytest.mark.parametrize("kind", [StopKind.USER_ERROR, StopKind.INTERRUPTION, StopKind.NO_CAPACITY])
def test_a_job_to_be_cancelled_is_never_launched_again(kind):
    verdict = after_stop(kind, cancel_requested="not needed", failures=1)

    assert isinstance(verdict, GiveUp)
    assert verdict.state is JobState.CANCELLED
    assert verdict.reason.startswith("not needed (")


@pytest.mark.parametrize(
    ("failures", "max_failures", "delay"),
    [(1, 2, 30), (2, 2, 60), (3, 9, 120), (5, 9, 480), (6, 9, 900), (9, 9, 900), (3, 2, None), (1, 0, None)],
)
def test_failures_are_budgeted_by_number_with_a_growing_pause(failures, max_failures, delay):
    definition = make_definition(max_failures=max_failures, retry=RetryRules(on_exit_codes=(1,)))
    verdict = after_stop(StopKind.USER_ERROR, failures=failures, definition=definition)

    failed = f"the program failed (exit code 1); failure {failures}"
    if delay is None:
        assert verdict == GiveUp(JobState.FAILED, f"{failed}: max_failures allows {max_failures}")
    else:
        assert verdict == RestartAfter(delay, f"{failed}: max_failures allows {max_failures}; again in {delay} s")


@given(failures=st.integers(1, 50))
def test_a_pause_never_outlasts_what_a_queue_can_delay(failures):
    verdict = after_stop(StopKind.USER_ERROR, failures=failures, definition=make_definition(max_failures=50))

    assert isinstance(verdict, RestartAfter)
    assert 30 <= verdict.delay_seconds <= 900


@pytest.mark.parametrize("kind", [StopKind.INTERRUPTION, StopKind.MOVED, StopKind.OVER_BUDGET, StopKind.NO_CAPACITY])
def test_what_the_machine_did_is_made_up_for_at_once(kind):
    assert after_stop(kind, interruptions=50) == RestartAfter(0, describe_stop(Stop(kind, NOW), Target.ECS))


def idle_job(idle: timedelta, interruptions: int, **fields):
    ran = 2 * HOUR
    stop = Stop(StopKind.INTERRUPTION, NOW)
    return make_job(
        attempt=make_running_attempt(stop=stop),
        first_started_at=NOW - ran - idle,
        run_seconds=ran.total_seconds(),
        interruptions=interruptions,
        accepted_at=NOW - ran - idle,
        **fields,
    )


@pytest.mark.parametrize(
    ("idle", "interruptions", "words"),
    [
        pytest.param(START_LIMIT, 1, "interrupted once and not running for 24h in all", id="used-up"),
        pytest.param(START_LIMIT - timedelta(seconds=1), 99, "", id="many-but-short"),
        pytest.param(
            START_LIMIT * 2, 0, "not running for 24h in all since it first ran", id="a-failure-and-then-no-capacity"
        ),
    ],
)
def test_interruptions_are_budgeted_by_the_time_they_cost(idle, interruptions, words):
    job = idle_job(idle, interruptions)
    over = GiveUp(
        JobState.FAILED,
        f"{words}: allow on-demand, more instance types, or set a deadline; `relaunch retry {job.job_id}` resumes from "
        f"the newest checkpoint below s3://acme-checkpoints/resnet/{job.job_id}/",
    )

    assert out_of_time(job, NOW) == (over if words else None)


def test_a_job_that_never_runs_is_given_up_after_a_day_with_what_it_waited_for_last():
    job = make_job(accepted_at=NOW, reason="no offering has capacity", waiting=None)
    over = GiveUp(
        JobState.FAILED,
        "not running within 24h, not counting its waits for others: allow on-demand, more instance types, or set a "
        "deadline; last: no offering has capacity",
    )

    assert out_of_time(job, NOW + START_LIMIT - timedelta(seconds=1)) is None
    assert out_of_time(job, NOW + START_LIMIT) == over


def test_a_task_that_runs_is_not_stopped_for_the_time_that_its_start_took():
    job = make_running_job(first_started_at=NOW - 3 * START_LIMIT, accepted_at=NOW - 4 * START_LIMIT, interruptions=1)

    assert out_of_time(job, NOW) is None


def test_a_job_without_checkpoints_names_none():
    job = idle_job(START_LIMIT, 1, definition=make_definition(checkpoint_uri=None))
    verdict = out_of_time(job, NOW)

    assert isinstance(verdict, GiveUp)
    assert "retry" not in verdict.reason


@pytest.mark.parametrize(("idle", "is_over"), [(START_LIMIT + HOUR, False), (START_LIMIT * 2, True)])
def test_patience_is_time_that_the_interruptions_may_cost_as_well(idle, is_over):
    job = idle_job(idle, 1, definition=make_definition(patience=START_LIMIT))

    assert (out_of_time(job, NOW) is not None) is is_over


def test_idle_time_counts_from_the_acceptance_or_the_first_start_and_is_never_negative():
    assert idle_time(make_job(accepted_at=NOW), NOW + HOUR) == HOUR
    assert idle_time(make_job(accepted_at=NOW + HOUR), NOW) == timedelta(0)
    assert idle_time(make_running_job(), NOW + HOUR) == timedelta(0)
    assert idle_time(idle_job(3 * HOUR, 1), NOW) == 3 * HOUR
    assert idle_time(make_running_job(run_seconds=9999.0), NOW) == timedelta(0)


@pytest.mark.parametrize(("at", "is_over"), [(36 * HOUR, True), (36 * HOUR - timedelta(seconds=1), False)])
def test_the_deadline_counts_from_acceptance(at, is_over):
    job = make_job(definition=make_definition(deadline=36 * HOUR))
    over = GiveUp(JobState.TIMED_OUT, "the deadline of 36h after acceptance has passed")

    assert out_of_time(job, NOW + at) == (over if is_over else None)


@pytest.mark.parametrize(("at", "is_over"), [(8 * HOUR, True), (8 * HOUR - timedelta(seconds=1), False)])
def test_max_runtime_counts_all_attempts_together(at, is_over):
    job = make_running_job(definition=make_definition(max_runtime=10 * HOUR), run_seconds=7200.0)

    over = GiveUp(JobState.TIMED_OUT, "its tasks have run for max_runtime, 10h")

    assert out_of_time(job, NOW + at) == (over if is_over else None)


@pytest.mark.parametrize(
    ("deadline", "expected"), [(None, NOW + 8 * HOUR), (3 * HOUR, NOW + 3 * HOUR), (30 * HOUR, NOW + 8 * HOUR)]
)
def test_the_next_limit_of_a_running_job_is_whichever_comes_first(deadline, expected):
    definition = make_definition(max_runtime=10 * HOUR, deadline=deadline)
    job = make_running_job(definition=definition, run_seconds=7200.0)

    assert next_time_limit(job, NOW + HOUR) == expected
    assert out_of_time(job, expected) is not None


@pytest.mark.parametrize(
    ("stop", "words"),
    [
        (Stop(StopKind.SUCCESS, NOW, exit_code=0), "the program finished (exit code 0)"),
        (
            Stop(StopKind.USER_ERROR, NOW, stopped_reason="Essential container in task exited", exit_code=2),
            "the program failed (exit code 2; Essential container in task exited)",
        ),
        (
            Stop(StopKind.HOST_LOST, NOW, stopped_reason="Host EC2 terminated."),
            "the machine was lost (Host EC2 terminated.)",
        ),
        (Stop(StopKind.NO_CAPACITY, NOW), "no capacity"),
    ],
)
def test_a_stop_is_told_with_ecs_own_words(stop, words):
    assert describe_stop(stop, Target.ECS) == words


WORDS = {
    StopKind.SUCCESS: "the program finished",
    StopKind.INTERRUPTION: "the machine was taken away",
    StopKind.MOVED: "it was moved to spot",
    StopKind.OVER_BUDGET: "it was stopped because its budget is used up",
    StopKind.HOST_LOST: "the machine was lost",
    StopKind.OUT_OF_MEMORY: "the container ran out of memory",
    StopKind.IMAGE: "the container image could not be used",
    StopKind.USER_ERROR: "the program failed",
    StopKind.SIDECAR: "the program did not end by itself: another essential container ended",
    StopKind.CANCELLED: "cancelled",
    StopKind.TIME_OUT: "out of time",
    StopKind.NO_CAPACITY: "no capacity",
    StopKind.NOT_STARTED: "the task had a machine and did not start on it",
    StopKind.STARTS_NOWHERE: "the task does not start on any machine",
    StopKind.START_REFUSED: "the task does not start before somebody grants what it needs",
    StopKind.UNKNOWN_START: "the task had a machine and did not start on it, for an error that Relaunch does not know",
    StopKind.MACHINE_FAULT: "the machine is at fault",
    StopKind.UNKNOWN: "the task stopped for a reason that the cluster does not tell",
}


@pytest.mark.parametrize("kind", list(StopKind))
def test_every_kind_of_stop_has_words(kind):
    assert describe_stop(Stop(kind, NOW), Target.ECS) == WORDS[kind]
    assert describe_stop(Stop(kind, NOW), Target.ACK) == WORDS[kind].replace("machine was taken", "pod was taken")


def test_a_running_attempt_counts_as_run_time_until_it_stops():
    running = make_running_job(run_seconds=60.0)
    attempt = replace(running.current_attempt, stop=Stop(StopKind.INTERRUPTION, NOW + HOUR))

    assert running.run_time(NOW + HOUR) == HOUR + timedelta(minutes=1)
    assert replace(running, attempt=attempt).run_time(NOW + HOUR) == timedelta(minutes=1)
    assert make_job(run_seconds=60.0).run_time(NOW + HOUR) == timedelta(minutes=1)


@pytest.mark.parametrize(("minutes", "ran"), [(3, 3), (-1, 0)])
def test_the_run_time_ends_with_the_program_before_its_end_is_counted(minutes, ran):
    ended_at = NOW + timedelta(minutes=minutes)
    job = make_running_job(attempt=replace(make_running_job().current_attempt, program_ended_at=ended_at))

    assert job.run_time(NOW + HOUR) == timedelta(minutes=ran)
