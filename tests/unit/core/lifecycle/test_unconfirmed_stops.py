"""A stop that the host does not confirm: when it is repeated, when the machine is abandoned, and how the job ends."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import INSTANCE_ID, NOW, make_definition, make_running_attempt, make_running_job
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import IntentKind, StopIntent, StopKind
from relaunch.core.jobs.effects import AbandonMachine, StopTask
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import Decision, note_stop_sent, stop_effect
from relaunch.core.lifecycle.events import HostWarned, TaskGivenUp, TaskMissing, TimePassed
from relaunch.core.lifecycle.explanation import explain
from relaunch.core.lifecycle.metrics import Metric, MetricDatum, decision_metrics
from relaunch.core.lifecycle.running import MISSING_GRACE
from relaunch.core.lifecycle.table import decide
from relaunch.core.lifecycle.unconfirmed_stops import ELSEWHERE, describe_unconfirmed, why_not_given_up

MINUTE = timedelta(minutes=1)
A_DAY = 24 * 60 + 2
"""So many minutes after a stop began the job is given up: a day after the stop time-out."""


def stopping(kind: IntentKind | None = IntentKind.CANCEL, *, machine_id: str = "", **attempt) -> Job:
    intent = StopIntent(kind, NOW, f"because of {kind}") if kind else None
    placed = replace(make_running_attempt().placement, machine_id=machine_id)
    running = make_running_attempt(**{"placement": placed, "intent": intent, **attempt})
    return replace(make_running_job(attempt=running), state=JobState.STOPPING, state_since=NOW)


def wake(job: Job, minutes: float) -> Decision:
    return decide(job, TimePassed(is_described=True), NOW + minutes * MINUTE, StackLimits())


def metrics_of(job: Job, decision: Decision) -> tuple[MetricDatum, ...]:
    return decision_metrics(job, decision, NOW)


def kinds_of(decision: Decision) -> list[type]:
    return [type(effect) for effect in decision.job.pending]


def test_a_stop_is_repeated_every_five_minutes_at_least_and_after_an_hour_ever_more_rarely():
    job, minutes, repeated = stopping(), 3.0, []
    while minutes < A_DAY - 1:
        decision = wake(job, minutes)
        repeated += [round(minutes)] * kinds_of(decision).count(StopTask)
        job = replace(decision.job, pending=())
        minutes = (job.wake_at - NOW) / MINUTE if job.wake_at else minutes

    assert repeated[:14] == [3, 6, 11, 12, 16, 22, 26, 32, 36, 42, 46, 52, 56, 62]
    assert repeated[14:] == [96, 196, 386, 772]
    assert wake(job, A_DAY).job.state is JobState.CANCELLED


def test_a_task_of_a_polled_target_is_stopped_again_as_rarely():
    definition = make_definition(target=Target.ACK)
    repeated = [
        minute
        for minute in range(1, 60)
        if StopTask in kinds_of(wake(replace(stopping(), definition=definition), minute))
    ]

    assert repeated == [3, 6, 12, 24, 48]


def test_a_task_that_stops_by_itself_is_not_stopped():
    decision = wake(stopping(None), 3)

    assert kinds_of(decision) == []
    assert decision.timeline == ()


def test_a_machine_of_our_own_is_abandoned_ten_minutes_after_the_stop_time_out():
    before, after = wake(stopping(machine_id="m-1"), 11), wake(stopping(machine_id="m-1"), 12)

    assert kinds_of(before) == [StopTask]
    assert kinds_of(after) == [StopTask, AbandonMachine]
    assert kinds_of(wake(stopping(None, machine_id="m-1"), 12)) == [AbandonMachine]
    assert kinds_of(wake(stopping(), 12)) == [StopTask]


def test_a_machine_is_not_abandoned_for_a_task_that_the_target_does_not_know():
    missing = stopping(machine_id="m-1", missing=(NOW + 6 * MINUTE, NOW + 10 * MINUTE))

    unanswered = decide(missing, TimePassed(), NOW + 12 * MINUTE, StackLimits())
    gone = decide(unanswered.job, TaskMissing(missing.current_attempt.task_id or ""), NOW + 13 * MINUTE, StackLimits())

    assert kinds_of(unanswered) == [StopTask]
    assert gone.job.state is JobState.CANCELLED
    # It answers no look any more: its last answer about the task is old.
    silent = decide(missing, TimePassed(), NOW + 32 * MINUTE, StackLimits())
    assert AbandonMachine in kinds_of(silent)


def test_a_machine_is_abandoned_later_while_the_target_cannot_be_asked_whether_its_task_has_stopped():
    job = stopping(machine_id="m-1")

    early, late = (decide(job, TimePassed(), NOW + after * MINUTE, StackLimits()) for after in (12, 32))

    assert AbandonMachine not in kinds_of(early)
    assert AbandonMachine in kinds_of(late)


def test_a_task_is_lost_ten_minutes_after_the_end_of_its_host():
    job = stopping(IntentKind.INTERRUPTION, host_ended_at=NOW + 4 * MINUTE)

    before, after = wake(job, 13.9), wake(job, 14)

    assert (before.job.state, before.job.wake_at) == (JobState.STOPPING, NOW + 14.9 * MINUTE)
    assert after.job.state is JobState.WAITING
    assert after.job.current_attempt.stop.kind is StopKind.INTERRUPTION
    assert after.job.current_attempt.placement.is_lost


@pytest.mark.parametrize("state", [JobState.STOPPING, JobState.RUNNING, JobState.LAUNCHING])
def test_a_task_on_a_host_that_has_ended_is_lost_only_once_the_target_was_asked_for_half_an_hour(state):
    job = replace(stopping(IntentKind.INTERRUPTION, host_ended_at=NOW), state=state, wake_at=NOW)

    decisions = [decide(job, TimePassed(), NOW + minutes * MINUTE, StackLimits()) for minutes in (10, 29.9, 30)]

    assert [each.job.state for each in decisions] == [state, state, JobState.WAITING]
    assert decisions[0].job.wake_at == NOW + 11 * MINUTE


def test_a_task_is_not_stopped_again_on_a_host_that_has_ended():
    assert kinds_of(wake(stopping(host_ended_at=NOW + MINUTE), 6)) == []


def test_a_running_task_is_lost_ten_minutes_after_the_end_of_its_host():
    job = make_running_job(attempt=make_running_attempt(host_ended_at=NOW))

    assert wake(job, 9).job.state is JobState.RUNNING
    assert wake(job, 10).job.current_attempt.stop.kind is StopKind.HOST_LOST


ENDS = {
    IntentKind.CANCEL: (JobState.CANCELLED, StopKind.CANCELLED),
    IntentKind.TIME_OUT: (JobState.TIMED_OUT, StopKind.TIME_OUT),
    IntentKind.INTERRUPTION: (JobState.FAILED, StopKind.HOST_LOST),
    IntentKind.START_WITHDRAWN: (JobState.FAILED, StopKind.HOST_LOST),
    None: (JobState.FAILED, StopKind.HOST_LOST),
}


@pytest.mark.parametrize("kind", ENDS)
def test_no_job_ends_while_its_task_may_live_on_through_an_outage_and_there_is_one_alert(kind):
    job = stopping(kind)
    minutes = 3.0
    told_at = []
    while minutes < A_DAY - 1:
        decision = wake(job, minutes)
        told_at += [round(minutes)] if MetricDatum(Metric.STOPS_UNCONFIRMED) in metrics_of(job, decision) else []
        job = replace(decision.job, pending=())
        assert job.state is JobState.STOPPING
        minutes = (job.wake_at - NOW) / MINUTE

    assert told_at == [62]
    assert f"task {job.current_attempt.task_id} may live on, and cost, on {INSTANCE_ID}" in job.reason


@pytest.mark.parametrize("kind", ENDS)
def test_after_a_day_the_job_ends_and_names_what_may_live_on(kind):
    job = wake(stopping(kind), A_DAY).job

    assert wake(stopping(kind), A_DAY - 1).job.state is JobState.STOPPING
    assert (job.state, job.current_attempt.stop.kind) == ENDS[kind]
    assert f"task {job.current_attempt.task_id} may live on, and cost, on {INSTANCE_ID}" in job.reason


def test_a_job_that_is_cancelled_meanwhile_or_out_of_time_ends_so():
    cancelled = replace(stopping(IntentKind.INTERRUPTION), cancel_requested="enough")
    late = replace(stopping(IntentKind.INTERRUPTION), definition=make_definition(deadline=30 * MINUTE))

    assert wake(cancelled, A_DAY).job.state is JobState.CANCELLED
    assert wake(late, A_DAY).job.state is JobState.TIMED_OUT


def test_a_task_without_a_main_container_or_a_known_start_has_the_usual_stop_time_out():
    job = stopping(instance_id=None, node=None)
    unknown = replace(job, definition=make_definition(container="other"), state_since=None, accepted_at=NOW)

    assert "on an unknown host" in wake(unknown, A_DAY).job.reason
    assert wake(unknown, A_DAY - 1).job.state is JobState.STOPPING


def test_a_job_that_ends_with_its_task_is_counted_and_a_confirmed_end_is_not():
    job = stopping()

    assert MetricDatum(Metric.STOPS_UNCONFIRMED) in metrics_of(job, wake(job, A_DAY))
    assert MetricDatum(Metric.STOPS_UNCONFIRMED) not in metrics_of(job, wake(job, 3))


def test_a_neighbour_is_told_why_it_leaves_and_until_when():
    warned = HostWarned(INSTANCE_ID, NOW, ends_at=NOW + 10 * MINUTE, cause="a stop that the host does not confirm")

    job = decide(make_running_job(), warned, NOW, StackLimits()).job

    assert job.state is JobState.STOPPING
    assert (
        job.reason
        == f"a stop that the host does not confirm, to be left by {warned.ends_at:%H:%M} UTC, for {INSTANCE_ID}"
    )


def on_lost_node(kind: IntentKind | None = None, **definition) -> Job:
    """A job on ACK whose pod is to be deleted on a node that is out of reach."""
    job = stopping(kind, instance_id=None, node="node-1")
    workload = KubernetesWorkload("image:v1")
    usual = {"target": Target.ACK, "kubernetes": workload, "deadline": None, "checkpoint_uri": "s3://acme/"}
    return replace(job, definition=make_definition(**usual | definition))


def give_up(job: Job, minutes: float) -> Decision:
    return decide(job, TaskGivenUp("taken for lost by ada"), NOW + minutes * MINUTE, StackLimits())


def test_a_pod_on_a_node_that_is_out_of_reach_is_waited_for_and_explained():
    job = on_lost_node()
    node, command = explain(job, NOW + 30 * MINUTE).advice

    assert wake(job, A_DAY - 1).job.state is JobState.STOPPING
    assert node.startswith("node-1 does not confirm the stop of its pod since")
    assert command.startswith(f"`relaunch lost {job.job_id}`")
    assert explain(job, NOW + 5 * MINUTE).advice == ()


@pytest.mark.parametrize(
    ("job", "state"),
    [
        (on_lost_node(IntentKind.CANCEL), JobState.CANCELLED),
        (replace(on_lost_node(), cancel_requested="enough"), JobState.CANCELLED),
        (on_lost_node(IntentKind.TIME_OUT), JobState.TIMED_OUT),
        (on_lost_node(deadline=30 * MINUTE), JobState.TIMED_OUT),
    ],
)
def test_a_job_that_is_over_anyway_ends_after_an_hour_though_its_pod_may_live_on(job, state):
    ended = wake(job, 62)

    assert wake(job, 61).job.state is JobState.STOPPING
    assert (ended.job.state, ended.job.has_slot) == (state, False)
    assert "may live on, and cost, on node-1" in ended.job.reason
    assert MetricDatum(Metric.STOPS_UNCONFIRMED) in metrics_of(job, ended)


@pytest.mark.parametrize(
    ("kind", "cancel", "state", "stop"),
    [
        (None, "", JobState.WAITING, StopKind.HOST_LOST),
        (IntentKind.INTERRUPTION, "", JobState.WAITING, StopKind.INTERRUPTION),
        (None, "enough", JobState.CANCELLED, StopKind.HOST_LOST),
        (IntentKind.TIME_OUT, "", JobState.TIMED_OUT, StopKind.TIME_OUT),
    ],
)
def test_a_pod_that_is_given_up_lets_its_job_go_on_or_end(kind, cancel, state, stop):
    job = replace(on_lost_node(kind), cancel_requested=cancel)

    given_up = give_up(job, 12).job

    assert (given_up.state, given_up.current_attempt.stop.kind) == (state, stop)
    assert given_up.current_attempt.is_number_used
    assert given_up.pending[0] == StopTask(job.current_attempt.task_id, "Relaunch: taken for lost by ada")
    assert "taken for lost by ada" in give_up(job, 12).timeline[0].detail or cancel


@pytest.mark.parametrize(
    ("job", "minutes", "why"),
    [
        (on_lost_node(), 11, "its node may confirm the stop until"),
        (on_lost_node(checkpoint_uri=None), 60, "the definition has no `checkpoint`"),
        (stopping(None), 60, "its task is on an EC2 instance"),
        (replace(on_lost_node(), state=JobState.RUNNING), 60, "its task is not stopping"),
    ],
)
def test_nothing_else_is_given_up(job, minutes, why):
    assert why_not_given_up(job, NOW + minutes * MINUTE).startswith(why)
    assert give_up(job, minutes).is_ignored


def test_a_stop_is_due_as_much_later_as_it_was_held_back_and_its_repetition_changes_nothing():
    held_back = stopping(machine_id="m-1")
    held_back = replace(held_back, pending=stop_effect(held_back, "not needed"))
    prompt, late = (note_stop_sent(held_back, NOW + minutes * MINUTE) for minutes in (0.5, 20))
    waits, late = (replace(each, pending=()) for each in (prompt, late))

    assert (prompt.current_attempt.stop_sent_at, late.current_attempt.stop_sent_at) == (None, NOW + 20 * MINUTE)
    assert AbandonMachine in kinds_of(wake(waits, 13))
    assert AbandonMachine not in kinds_of(wake(late, 31))
    assert AbandonMachine in kinds_of(wake(late, 33))

    repeated = wake(waits, 3).job
    assert (kinds_of(wake(waits, 3)), repeated.current_attempt.stop_sent_at) == ([StopTask], NOW)
    assert note_stop_sent(repeated, NOW + 3 * MINUTE) == repeated


def test_only_the_stop_of_its_own_task_is_noted():
    job = replace(stopping(), pending=(StopTask("another", "it is not the current task of its job"),))

    assert note_stop_sent(job, NOW + 20 * MINUTE) == job


def test_a_pod_that_was_seen_in_another_cluster_is_stopped_and_never_lost():
    seen_there = make_running_job(attempt=make_running_attempt(cluster="a/training"))
    seen_there = replace(seen_there, definition=make_definition(target=Target.ACK))
    missing = TaskMissing(seen_there.current_attempt.task_id or "", "b/training")

    early = decide(seen_there, missing, NOW, StackLimits()).job
    late = decide(early, missing, NOW + MISSING_GRACE, StackLimits()).job
    again = decide(late, missing, NOW + 3 * MISSING_GRACE, StackLimits())

    assert early.state is JobState.RUNNING
    assert (late.state, late.reason) == (JobState.STOPPING, ELSEWHERE)
    assert again.is_ignored
    # A target that does not say what it is has lost the task.
    unsaid = TaskMissing(missing.task_id)
    assert decide(early, unsaid, NOW + MISSING_GRACE, StackLimits()).job.state is JobState.WAITING
    assert f"or delete the Job {missing.task_id}" in describe_unconfirmed(late, NOW + timedelta(hours=1))[1]
