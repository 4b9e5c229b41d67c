"""Tasks that a queue of the cluster holds back before their start, and tasks that lose the place that they had."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import NOW, make_definition, make_running_attempt
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import IntentKind, StopKind
from relaunch.core.jobs.effects import StopTask
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import ReportedCause, StopReport, TaskPhase
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.events import TaskSeen, TimePassed
from relaunch.core.lifecycle.explanation import explain
from relaunch.core.lifecycle.long_waits import QUEUE_LIMIT, WAITS_LONG, idle_time
from relaunch.core.lifecycle.table import decide
from relaunch.core.lifecycle.withdrawals import start_deadline
from unit.core.lifecycle.table_matrix import SITUATIONS, seen

HOUR = timedelta(hours=1)
WHY = "suspended, queue gpus: insufficient unused quota"
LIMITS = StackLimits()


def on_ack(situation: str = "pl", **fields) -> Job:
    definition = make_definition(
        target=Target.ACK, kubernetes=KubernetesWorkload("image:v1", queue="gpus"), deadline=None, **fields
    )
    job = SITUATIONS[situation]
    return replace(job, definition=definition, attempt=replace(job.current_attempt, node=None, instance_id=None))


def look(job: Job, phase: TaskPhase, at: datetime, version: int = 0, **fields) -> Decision:
    attempt = job.current_attempt
    said = {"waiting_for": WHY, "is_suspended": True, "started_at": None, "node": None, **fields}
    observation = replace(
        seen(phase.name, version=version or attempt.task_version + 1).observation,
        task_id=attempt.task_id,
        owner=job.attempt_key,
        phase=phase,
        **said,
    )
    return decide(job, TaskSeen(observation), at, LIMITS)


def woken(job: Job, at: datetime) -> Decision:
    return decide(job, TimePassed(is_described=True), at, LIMITS)


def test_a_task_that_a_queue_holds_back_waits_there_with_its_words_and_costs_nothing():
    waiting = look(on_ack(), TaskPhase.PENDING, NOW + HOUR).job
    again = woken(waiting, NOW + 20 * HOUR)
    explanation = explain(again.job, NOW + 20 * HOUR)

    assert (again.job.state, again.job.reason) == (JobState.LAUNCHING, WHY)
    assert again.job.current_attempt.suspended_since == NOW + HOUR
    assert again.job.run_time(NOW + 20 * HOUR) == timedelta(0)
    assert explanation.advice[0].startswith("`kubectl get localqueues,workloads` shows")
    assert explanation.waiting_for == f"its place in a queue of the cluster: {WHY}"
    assert "the queue lets it start; it fails if it waits until 2026" in explanation.next_step


def test_a_queue_says_nothing_of_an_offering():
    job = on_ack(purchase=PurchasePolicy.SPOT_THEN_ON_DEMAND)
    placement = job.current_attempt.placement
    spot = replace(placement, offering=replace(placement.offering, purchase=PurchaseOption.SPOT))
    job = replace(job, attempt=replace(job.current_attempt, placement=spot))
    waiting = look(job, TaskPhase.PENDING, NOW + HOUR).job

    assert woken(waiting, NOW + 20 * HOUR).job.state is JobState.LAUNCHING
    admitted = look(waiting, TaskPhase.PENDING, NOW + 21 * HOUR, is_suspended=False).job
    assert admitted.current_attempt.suspended_since is None
    assert start_deadline(admitted.current_attempt, LIMITS) == NOW + 21 * HOUR + timedelta(minutes=15)


def test_a_wait_in_a_queue_causes_an_alert_at_half_of_its_bound_and_fails_the_job_at_its_end():
    waiting = look(on_ack(), TaskPhase.PENDING, NOW).job
    alerted = woken(waiting, NOW + QUEUE_LIMIT / 2)
    over = woken(waiting, NOW + QUEUE_LIMIT)
    stopped = look(
        over.job,
        TaskPhase.STOPPED,
        NOW + QUEUE_LIMIT,
        report=StopReport("stopped", frozenset({ReportedCause.STOP_CALLED})),
        containers={},
    ).job

    assert [entry.event for entry in alerted.timeline] == [WAITS_LONG]
    assert (over.job.state, over.job.current_attempt.intent.kind) == (
        JobState.STOPPING,
        IntentKind.PLACEMENT_WITHDRAWN,
    )
    assert stopped.state is JobState.FAILED
    assert stopped.reason == f"it waited for 336h in all: {WHY}"


def test_a_task_that_ran_before_anybody_saw_that_its_queue_let_it_go_was_placed_before_it_ran():
    waiting = look(on_ack(), TaskPhase.PENDING, NOW).job

    running = look(waiting, TaskPhase.RUNNING, NOW + 2 * HOUR, is_suspended=False, started_at=NOW + HOUR).job

    assert (running.state, running.current_attempt.placement.placed_at) == (JobState.RUNNING, NOW + HOUR)


@pytest.mark.parametrize("has_trained", [False, True])
def test_what_a_job_waited_in_a_queue_is_taken_off_its_other_waits(has_trained):
    job = on_ack()
    if has_trained:
        job = replace(job, totals=replace(job.totals, first_started_at=NOW))
    waiting = look(job, TaskPhase.PENDING, NOW + HOUR).job
    admitted = look(waiting, TaskPhase.PENDING, NOW + 31 * HOUR, is_suspended=False).job

    assert admitted.queued_time(NOW + 31 * HOUR) == 30 * HOUR
    assert idle_time(admitted, NOW + 31 * HOUR) == NOW + HOUR - (NOW if has_trained else job.accepted_at)


@pytest.mark.parametrize("phase", [TaskPhase.RUNNING, TaskPhase.STOPPING, TaskPhase.STARTING])
def test_a_task_whose_place_a_queue_takes_is_stopped_and_launched_again(phase):
    attempt = make_running_attempt(instance_id=None, node="node-1", task_version=40)
    state = {TaskPhase.STOPPING: JobState.STOPPING, TaskPhase.STARTING: JobState.LAUNCHING}.get(phase, JobState.RUNNING)
    if phase is TaskPhase.STARTING:
        attempt = replace(attempt, started_at=None)
    job = replace(on_ack("ru"), attempt=attempt, state=state, state_since=NOW)
    suspended = look(job, TaskPhase.PENDING, NOW + HOUR, version=3).job
    stopped = look(
        suspended,
        TaskPhase.STOPPED,
        NOW + 2 * HOUR,
        version=50,
        report=StopReport("stopped", frozenset({ReportedCause.STOP_CALLED})),
        containers={},
    ).job

    assert (suspended.state, suspended.reason) == (JobState.STOPPING, f"a queue took its place: {WHY}")
    assert [type(each) for each in suspended.pending] == [StopTask]
    assert look(suspended, TaskPhase.PENDING, NOW + HOUR, version=3).is_ignored
    assert stopped.current_attempt.stop.kind is StopKind.INTERRUPTION
    assert stopped.state is JobState.WAITING


@pytest.mark.parametrize("cause", [ReportedCause.START_REFUSED, ReportedCause.STARTS_NOWHERE])
@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.STOPPING])
def test_a_task_whose_pod_is_gone_and_refused_anew_is_stopped_and_launched_again(cause, state):
    # Before 1.25 the Job controller replaces a pod that is gone, which a quota may refuse.
    attempt = make_running_attempt(instance_id=None, node="node-1", task_version=40)
    job = replace(on_ack("ru"), attempt=attempt, state=state, state_since=NOW)
    words = "FailedCreate: exceeded quota: gpus"
    refused = {"waiting_for": words, "is_suspended": False, "report": StopReport(words, frozenset({cause}))}
    stopping = look(job, TaskPhase.PENDING, NOW + HOUR, version=3, **refused).job
    again = look(stopping, TaskPhase.PENDING, NOW + HOUR, version=3, **refused)
    called = StopReport("stopped", frozenset({ReportedCause.STOP_CALLED}))
    stopped = look(
        stopping, TaskPhase.STOPPED, NOW + 2 * HOUR, version=50, is_suspended=False, report=called, containers={}
    ).job

    assert (stopping.state, stopping.reason) == (
        JobState.STOPPING,
        f"its pod is gone, and another one is refused: {words}",
    )
    assert [type(each) for each in stopping.pending] == [StopTask]
    assert again.is_ignored
    assert stopped.current_attempt.stop.kind is StopKind.INTERRUPTION
    assert stopped.state is JobState.WAITING


@pytest.mark.parametrize("phase", [TaskPhase.PENDING, TaskPhase.STARTING, TaskPhase.RUNNING])
@pytest.mark.parametrize(
    ("made_after", "is_lost"), [(-HOUR, False), (timedelta(0), False), (HOUR, True), (None, False)]
)
def test_several_pods_are_stopped_when_one_was_made_after_all_had_started(phase, made_after, is_lost):
    """Before 1.25 the Job controller replaces a pod that is taken away, for which the others do not wait."""
    attempt = make_running_attempt(instance_id=None, node="node-1", task_version=40)
    job = replace(on_ack("ru", nodes=3), attempt=attempt, state_since=NOW)
    made_at = None if made_after is None else attempt.started_at + made_after
    words = {"waiting_for": "rank 1: no node", "is_suspended": False, "newest_pod_at": made_at}
    stopping = look(job, phase, NOW + 2 * HOUR, version=3 if is_lost else 41, **words).job
    silent = look(job, phase, NOW + 2 * HOUR, version=41, **{**words, "waiting_for": ""}).job

    assert (stopping.state is JobState.STOPPING) is is_lost
    if is_lost:
        reason = "a pod of it was taken away, and the cluster made another one"
        assert (stopping.reason, silent.reason) == (f"{reason}: rank 1: no node", reason)
        assert stopping.current_attempt.intent.kind is IntentKind.INTERRUPTION
        assert stopping.current_attempt.task_version == 40
        assert look(stopping, phase, NOW + 2 * HOUR, version=3, **words).is_ignored


def test_a_pod_that_is_made_before_all_have_started_is_one_that_came_late():
    attempt = replace(make_running_attempt(instance_id=None, node="node-1", task_version=40), started_at=None)
    job = replace(on_ack("ru", nodes=3), attempt=attempt, state=JobState.LAUNCHING, state_since=NOW)

    late = look(job, TaskPhase.STARTING, NOW + HOUR, version=41, is_suspended=False, newest_pod_at=NOW + HOUR).job

    assert late.state is JobState.LAUNCHING
