"""Tasks that the target has taken and that do not start."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import NOW, make_definition, make_job
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.effects import AdmitWaiting, StopTask
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState, RefusedCall, WaitReason
from relaunch.core.launches.launch import ReportedCause, StopReport, TaskPhase, TaskPlaced
from relaunch.core.lifecycle.events import CancelAsked, LaunchAnswered, TaskSeen, TimePassed
from relaunch.core.lifecycle.explanation import explain
from relaunch.core.lifecycle.table import decide
from relaunch.core.lifecycle.withdrawals import REFUSED_FOR, START_TIMEOUT, UNTOLD_FOR, start_deadline
from unit.core.lifecycle.steps import after, chosen, decided
from unit.core.lifecycle.table_matrix import SITUATIONS, seen

QUOTA = (
    'FailedCreate: Error creating: pods "a" is forbidden: exceeded quota: gpus, requested: pods=1, used: pods=2, '
    "limited: pods=2"
)
DENIED = 'FailedCreate: Error creating: admission webhook "pods.example.com" denied the request: no'


@pytest.mark.parametrize(
    ("is_managed", "given_seconds", "minutes"),
    [
        pytest.param(False, 0, 15, id="auto-scaling-group"),
        pytest.param(True, 0, 8, id="managed-instances"),
        pytest.param(False, 300, 5, id="given-for-a-group"),
        pytest.param(True, 300, 5, id="given-for-managed-instances"),
    ],
)
def test_the_time_for_a_machine_depends_on_the_way_to_it_unless_it_is_given(is_managed, given_seconds, minutes):
    limits = StackLimits(provisioning_deadline_seconds=given_seconds)
    requested = decide(make_job(), chosen(is_managed=is_managed), NOW, limits).job
    attempt = requested.current_attempt

    assert attempt.placement.is_managed == is_managed
    assert start_deadline(attempt, limits) == NOW + timedelta(minutes=minutes)


def on_ack(**fields) -> Job:
    """A placed task on ACK that has no pod."""
    definition = make_definition(target=Target.ACK, kubernetes=KubernetesWorkload("image:v1"), deadline=None, **fields)
    job = SITUATIONS["pl"]
    return replace(job, definition=definition, attempt=replace(job.current_attempt, node=None, instance_id=None))


def said(job: Job, phase: TaskPhase, text: str, cause: ReportedCause, at: datetime, **fields) -> Job:
    """The job after a look at its task, which has no containers."""
    attempt = job.current_attempt
    observation = replace(
        seen(phase.name, version=attempt.task_version + 1).observation,
        task_id=attempt.task_id,
        owner=job.attempt_key,
        phase=phase,
        containers={},
        report=StopReport(text, frozenset({cause})),
        **fields,
    )
    return after(job, TaskSeen(observation), now=at)


def refused(
    job: Job, words: str = QUOTA, cause: ReportedCause = ReportedCause.START_REFUSED, at: datetime = NOW
) -> Job:
    """The job once the target has said that it refuses the start of its task."""
    return said(job, TaskPhase.PENDING, words, cause, at, waiting_for=words)


def ended_without_pod(job: Job, at) -> Job:
    """The job once its Job has ended by the deadline that the stop set."""
    text = f"Relaunch: {job.current_attempt.intent.detail}"
    return said(job, TaskPhase.STOPPED, text, ReportedCause.STOP_CALLED, at, stopped_at=at, may_have_run=True)


def test_a_pod_that_is_refused_is_explained_and_given_time():
    job = refused(on_ack())
    looked = decided(job, TimePassed(), NOW + REFUSED_FOR - timedelta(seconds=1))
    explanation = explain(job, NOW)

    assert (looked.job.state, looked.job.pending, looked.timeline) == (JobState.LAUNCHING, (), ())
    assert QUOTA in explanation.waiting_for
    assert "leaves its slot" in explanation.next_step
    assert explanation.advice[0].startswith("raise the ResourceQuota gpus, or wait until others")


def test_a_pod_that_is_created_after_all_is_withdrawn_no_sooner_than_any():
    job = refused(on_ack())
    created = after(job, seen("PENDING", version=8), now=NOW + timedelta(minutes=4))

    assert created.current_attempt.refused_since is None
    assert decided(created, TimePassed(), NOW + REFUSED_FOR).job.state is JobState.LAUNCHING


def test_a_pod_of_which_the_cluster_does_not_tell_whether_it_started_is_withdrawn_later():
    job = on_ack()
    job = replace(job, attempt=replace(job.current_attempt, node="node-1"))
    deadline = (job.current_attempt.placement.placed_at or NOW) + START_TIMEOUT
    described = after(job, TimePassed(is_described=True), now=deadline)
    untold = after(job, TimePassed(), now=deadline)

    assert (described.state, untold.state) == (JobState.STOPPING, JobState.LAUNCHING)
    assert after(untold, TimePassed(), now=deadline + UNTOLD_FOR).state is JobState.STOPPING


def test_a_job_whose_pod_stays_refused_waits_without_a_slot_and_is_tried_again():
    job = refused(on_ack())
    at = NOW + REFUSED_FOR

    stopping = after(job, TimePassed(), now=at)
    waits = ended_without_pod(stopping, at)

    assert [type(each) for each in stopping.pending] == [StopTask]
    assert "without a slot" in explain(stopping, at).next_step
    assert (waits.state, waits.waiting.reason, waits.has_slot) == (JobState.WAITING, WaitReason.REFUSED, False)
    assert waits.current_attempt.stop.kind is StopKind.START_REFUSED
    assert AdmitWaiting() in waits.pending
    assert QUOTA in explain(waits, at).waiting_for
    assert explain(waits, at).advice[0].startswith("raise the ResourceQuota gpus")
    assert waits.waiting.until == at + timedelta(minutes=5)


def test_a_pod_that_is_refused_at_every_try_ends_the_job_after_a_day():
    job = on_ack()
    tries = 0
    at = NOW
    while not job.state.is_final:
        job = refused(job, at=at)
        at += REFUSED_FOR
        job = ended_without_pod(after(job, TimePassed(), now=at), at)
        tries += 1
        if job.state is JobState.WAITING:
            at = job.wake_at
            job = after(replace(job, pending=()), TimePassed(), chosen(), now=at)
            attempt = job.current_attempt
            placed = LaunchAnswered(attempt.number, attempt.placement.number, TaskPlaced(f"task-{attempt.number}"))
            job = after(job, placed, now=at)

    assert (job.state, job.reason[:21]) == (JobState.FAILED, "refused for 24 hours:")
    assert QUOTA in job.reason
    assert 40 < tries < 60
    assert explain(job, at).advice == ("correct what the reason names, then `relaunch retry`",)


def test_a_pod_that_is_refused_for_what_it_is_fails_the_job():
    stopping = refused(on_ack(), DENIED, ReportedCause.STARTS_NOWHERE)
    failed = ended_without_pod(stopping, NOW)

    assert "the job fails" in explain(stopping, NOW).next_step
    assert (failed.state, failed.current_attempt.stop.kind) == (JobState.FAILED, StopKind.STARTS_NOWHERE)
    assert DENIED in failed.reason


def test_cancel_and_the_deadline_end_a_job_whose_pod_is_refused():
    job = refused(on_ack())
    cancelled = ended_without_pod(after(job, CancelAsked("enough"), now=NOW), NOW)
    late = replace(job, definition=replace(job.definition, deadline=timedelta(minutes=1)))
    timed_out = ended_without_pod(after(late, TimePassed(), now=NOW + timedelta(hours=1)), NOW + timedelta(hours=1))

    assert cancelled.state is JobState.CANCELLED
    assert timed_out.state is JobState.TIMED_OUT


def test_what_runs_in_the_end_is_refused_no_more():
    job = after(refused(on_ack()), seen("RUNNING", version=8, started_at=NOW), now=NOW)

    assert (job.state, job.current_attempt.refused_since, job.refusals) == (JobState.RUNNING, None, {})
    assert RefusedCall.POD not in job.refusals
