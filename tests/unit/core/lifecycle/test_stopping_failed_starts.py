"""What becomes of a job whose task its machine did not start."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, container_instance_arn, make_offering_key, task_id
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import IntentKind, Stop, StopIntent, StopKind
from relaunch.core.jobs.effects import ReleaseMachine, RememberCapacity, RequestLaunch
from relaunch.core.jobs.job import FailedStart, Job
from relaunch.core.jobs.state import JobState, Refusal, RefusedCall, WaitReason
from relaunch.core.launches.launch import TaskPlaced
from relaunch.core.lifecycle.machine_waits import with_releases
from relaunch.core.lifecycle.restart_policy import useless_for_all
from relaunch.core.lifecycle.stopping import follow_stop
from relaunch.core.offerings.offering import CapacityFailure
from unit.core.lifecycle.steps import SOON, after, chosen, stopped
from unit.core.lifecycle.table_matrix import SITUATIONS, answered, seen, with_attempt


@pytest.mark.parametrize(
    ("instance_id", "instance"),
    [("i-1", "i-1"), (None, container_instance_arn())],
    ids=["its instance is known", "only its container instance is"],
)
def test_a_task_that_its_instance_does_not_start_is_no_failure_and_the_instance_is_kept(instance_id, instance):
    job = with_attempt("pl", instance_id=instance_id, node=container_instance_arn())

    kept = stopped(
        job,
        stop_code="TaskFailedToStart",
        stopped_reason="DockerTimeoutError: Could not transition to created",
        started_at=None,
    )

    assert kept.faults.failed_starts == (FailedStart(instance, "DockerTimeoutError"),)
    assert (kept.state, kept.totals.failures, kept.pending) == (JobState.WAITING, 0, (RequestLaunch(30),))
    assert after(kept, chosen(), answered(TaskPlaced(task_id(2)))).faults.failed_starts == kept.faults.failed_starts


def test_a_start_that_fails_on_its_machine_is_kept_with_the_machine_and_the_error():
    stop = Stop(StopKind.NOT_STARTED, SOON, error="DockerTimeoutError")
    job = follow_stop(with_attempt("pl", instance_id="i-0aaa"), stop, SOON).job

    assert job.faults.failed_starts == (FailedStart("i-0aaa", "DockerTimeoutError"),)
    assert job.pending == (RequestLaunch(30),)


START_ERROR = "CannotStartContainerError"
DRIVER = f"{START_ERROR}: nvml error: driver not loaded"
EARLIER = tuple(FailedStart(f"i-{number}", "CannotStartContainerError") for number in range(2))


def after_failed_start(
    instance_id: str,
    reason: str = DRIVER,
    error: str = START_ERROR,
    *,
    starts=EARLIER,
    **attempt,
) -> Job:
    job = with_attempt("pl", instance_id=instance_id, **attempt)
    failure = CapacityFailure(make_offering_key(), "no capacity", NOW, NOW)
    job = replace(job, faults=replace(job.faults, failed_starts=starts, own_failures=(failure,)))
    return follow_stop(job, Stop(StopKind.NOT_STARTED, SOON, stopped_reason=reason, error=error), SOON).job


def test_a_start_that_failed_for_its_machine_is_no_failure_of_the_job_and_goes_on_elsewhere():
    job = after_failed_start("i-1")

    assert job.current_attempt.stop.kind is StopKind.NOT_STARTED
    assert (job.totals.failures, len(job.faults.failed_starts), len(job.faults.own_failures)) == (0, 3, 1)
    assert job.pending == (RequestLaunch(120),)


def test_a_job_that_three_machines_did_not_start_is_held_back_without_a_machine_and_keeps_off_all_three():
    job = after_failed_start("i-2")

    assert (job.state, job.waiting.reason) == (JobState.WAITING, WaitReason.REFUSED)
    assert job.waiting.until == SOON + timedelta(minutes=15)
    assert (job.totals.failures, job.has_slot, job.machine_id) == (0, False, "")
    assert "3 machines in a row did not start it" in job.reason
    assert job.faults.avoided_instances == ("i-0", "i-1", "i-2")
    assert not any(isinstance(each, RequestLaunch) for each in job.pending)


def test_what_started_too_late_or_without_its_peers_is_no_start_of_the_job():
    job = after_failed_start("i-2", started_at=NOW)

    assert (job.state, job.waiting.reason) == (JobState.WAITING, WaitReason.REFUSED)
    assert job.faults.avoided_instances == ("i-0", "i-1", "i-2")


def test_only_the_latest_failed_starts_are_kept():
    many = tuple(FailedStart(f"i-{number}", START_ERROR) for number in range(5))

    assert [each.instance for each in after_failed_start("i-9", starts=many).faults.failed_starts] == [
        "i-1", "i-2", "i-3", "i-4", "i-9",
    ]  # fmt: skip


@pytest.mark.parametrize(("reason", "told"), [("something new", "something new; "), ("", "")])
def test_an_error_that_nobody_knows_is_tried_on_a_second_machine_and_then_ends_the_job(reason, told):
    job = with_attempt("pl", instance_id="i-1")
    stop = Stop(StopKind.UNKNOWN_START, SOON, stopped_reason=reason)
    first = follow_stop(job, stop, SOON).job

    assert first.pending == (RequestLaunch(30),)
    assert first.faults.failed_starts == (FailedStart("i-1", "", is_unknown=True),)
    second = replace(with_attempt("pl", instance_id="i-2"), faults=first.faults)
    ended = follow_stop(second, stop, SOON).job
    assert (ended.state, ended.current_attempt.stop.kind) == (JobState.FAILED, StopKind.STARTS_NOWHERE)
    assert ended.current_attempt.stop.stopped_reason == (
        f"{told}it did not start on 2 machines: i-1, i-2; Relaunch does not know the error, which may be that of the "
        "image, the task definition or what they need of the account"
    )


def test_an_error_that_nobody_knows_is_tried_in_another_pool_if_there_is_one():
    job = with_attempt("pl", instance_id="i-1", zone="us-east-1b")
    unknown = Stop(StopKind.UNKNOWN_START, SOON, stopped_reason="something new")
    key = job.current_attempt.placement.offering

    first = follow_stop(job, unknown, SOON).job

    assert [each.key for each in first.faults.own_failures] == [
        replace(key, zone="us-east-1b"),
        replace(key, zone=None),
    ]
    assert {each.until for each in first.faults.own_failures} == {SOON + timedelta(minutes=10)}
    assert all("something new" in each.reason for each in first.faults.own_failures)
    assert not any(isinstance(each, RememberCapacity) for each in first.pending), "that of the job alone"
    known = follow_stop(job, replace(unknown, kind=StopKind.NOT_STARTED), SOON).job
    assert known.faults.own_failures == ()


def test_where_the_cluster_chooses_the_node_no_pool_is_avoided():
    job = with_attempt("pl", instance_id="i-1")
    job = replace(job, definition=replace(job.definition, target=Target.ACK))

    assert follow_stop(job, Stop(StopKind.UNKNOWN_START, SOON), SOON).job.faults.own_failures == ()


def test_an_error_that_is_the_same_everywhere_ends_the_job_on_its_first_machine():
    job = with_attempt("pl", instance_id="i-1")
    job = replace(job, definition=replace(job.definition, max_failures=9))

    ended = follow_stop(job, Stop(StopKind.STARTS_NOWHERE, SOON, stopped_reason="no such secret"), SOON).job

    assert (ended.state, ended.totals.failures) == (JobState.FAILED, 1)
    assert ended.reason == "the task does not start on any machine (no such secret)"


def test_a_start_that_is_refused_is_tried_again_on_another_machine_by_the_rule_of_refusals():
    refused = Stop(StopKind.START_REFUSED, SOON, stopped_reason="AccessDenied")
    job = follow_stop(with_attempt("pl", instance_id="i-1"), refused, SOON).job

    assert job.waiting.until == SOON + timedelta(minutes=15)
    assert job.refusals == {RefusedCall.START: Refusal(SOON, SOON)}
    assert job.faults.failed_starts == ()
    # That the cluster takes the next task proves nothing; that it runs does.
    probing = after(job, chosen(), answered(TaskPlaced(task_id(2))), now=SOON + timedelta(minutes=15))
    assert probing.refusals == job.refusals
    assert after(replace(SITUATIONS["pl"], refusals=job.refusals), seen("RUNNING")).refusals == {}


@pytest.mark.parametrize(
    ("kind", "machine_id", "is_told"),
    [(StopKind.START_REFUSED, "m-1", True), (StopKind.START_REFUSED, "", False), (StopKind.NOT_STARTED, "m-1", False)],
)
def test_a_start_that_is_refused_on_a_machine_is_told_to_all_jobs_with_the_revision(kind, machine_id, is_told):
    placed = with_attempt("pl", instance_id="i-1")
    placement = replace(placed.current_attempt.placement, machine_id=machine_id)
    failed = tuple(FailedStart(f"i-{number}", "no image") for number in (2, 3))
    job = replace(
        placed,
        attempt=replace(placed.current_attempt, placement=placement),
        faults=replace(placed.faults, failed_starts=failed),
    )

    held = follow_stop(job, Stop(kind, SOON, stopped_reason="AccessDenied"), SOON).job

    assert held.waiting.reason is WaitReason.REFUSED
    told = useless_for_all(job, machine_id, "the task does not start before", SOON)
    found = [replace(each, reason=told.reason) for each in held.pending if isinstance(each, RememberCapacity)]
    assert found == [told] * is_told


def test_a_task_that_ran_ends_the_count_of_failed_starts():
    running = SITUATIONS["ru"]
    running = replace(running, faults=replace(running.faults, failed_starts=EARLIER))

    assert stopped(running, 1).faults.failed_starts == ()


@pytest.mark.parametrize(
    ("words", "is_unused"),
    [
        ("ECS was unable to assume the role 'arn:aws:iam::111122223333:role/trainer'", True),
        ("DockerTimeoutError: Could not transition to created", False),
    ],
)
def test_a_machine_whose_task_was_not_allowed_to_start_has_had_none_though_it_was_to_be_stopped(words, is_unused):
    placed = with_attempt("pl", instance_id="i-1")
    attempt = placed.current_attempt
    attempt = replace(
        attempt,
        placement=replace(attempt.placement, machine_id="m-1"),
        intent=StopIntent(IntentKind.CANCEL, NOW, "not needed any more"),
    )

    ended = stopped(
        replace(placed, attempt=attempt), stop_code="TaskFailedToStart", stopped_reason=words, started_at=None
    )

    assert ended.state is JobState.CANCELLED
    (released,) = [each for each in ended.pending if isinstance(each, ReleaseMachine)]
    assert released.is_unused is is_unused


def test_a_stop_that_the_release_before_stored_says_by_its_kind_that_the_start_was_refused():
    placed = with_attempt("pl", instance_id="i-1")
    attempt = placed.current_attempt
    job = replace(placed, attempt=replace(attempt, placement=replace(attempt.placement, machine_id="m-1")))

    held = follow_stop(job, Stop(StopKind.START_REFUSED, SOON, stopped_reason="AccessDenied"), SOON)

    (released,) = [
        each for each in with_releases(job, None, held, SOON).job.pending if isinstance(each, ReleaseMachine)
    ]
    assert released.is_unused
