"""A job with a task on Kubernetes is looked at every minute: nobody tells what becomes of it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_definition
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import IntentKind
from relaunch.core.jobs.effects import StopTask
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import ignore, with_poll
from relaunch.core.lifecycle.events import HostWarned, TaskSeen, TimePassed
from relaunch.core.lifecycle.explanation import explain
from unit.core.lifecycle.steps import SOON, after, decided
from unit.core.lifecycle.table_matrix import SITUATIONS, seen

MINUTE = timedelta(minutes=1)
HALF_A_MINUTE = timedelta(seconds=30)
PENDING_TEXT = "0/1 nodes are available: 1 Insufficient aliyun.com/gpu-mem"


def on_ack(situation, **fields):
    definition = make_definition(target=Target.ACK, kubernetes=KubernetesWorkload("trainer"), **fields)
    return replace(SITUATIONS[situation], definition=definition)


def with_attempt(job, **fields):
    return replace(job, attempt=replace(job.current_attempt, **fields))


def on_node(name, **fields):
    """Build a job with a pod that does not run yet, on a node or on none."""
    job = on_ack("pl", **fields)
    placement = job.current_attempt.placement
    on_demand = replace(placement, offering=replace(placement.offering, purchase=PurchaseOption.ON_DEMAND))
    return with_attempt(job, node=name, instance_id=None, placement=on_demand)


def said(job, status, **fields):
    event = seen(status, version=job.current_attempt.task_version + 1)
    return TaskSeen(replace(event.observation, **fields))


@pytest.mark.parametrize("status", ["PENDING", "RUNNING", "STOPPING"])
def test_a_task_is_looked_at_again_by_the_next_run_of_reconcile(status):
    job = on_ack("pl")

    assert after(job, said(job, status)).wake_at == SOON + HALF_A_MINUTE


def test_a_task_on_ecs_is_not_for_its_events_come_by_themselves():
    assert after(SITUATIONS["pl"], seen("RUNNING")).wake_at == SOON + timedelta(minutes=10)


def test_a_time_limit_before_that_is_kept():
    job = on_ack("pl", max_runtime=timedelta(minutes=1, seconds=10))

    assert after(job, seen("RUNNING", started_at=NOW)).wake_at == NOW + timedelta(minutes=1, seconds=10)


@pytest.mark.parametrize("situation", ["w0", "fz"])
def test_a_job_without_a_task_waits_as_on_ecs(situation):
    decision = decided(on_ack(situation), TimePassed())

    assert with_poll(decision.job, TimePassed(), decision, SOON) == decision
    assert decision.job.wake_at == SOON + timedelta(minutes=5)


def test_a_decision_that_changes_nothing_stays_so():
    ignored = ignore(on_ack("ru"), "nothing new")

    assert with_poll(ignored.job, TimePassed(), ignored, SOON) is ignored


def test_a_stop_is_repeated_every_three_minutes_though_the_job_is_due_every_minute():
    stopping = on_ack("sc")
    asked_at = stopping.current_attempt.intent.at

    repeated = [bool(decided(stopping, TimePassed(), asked_at + minute * MINUTE).job.pending) for minute in range(1, 8)]

    assert repeated == [False, False, True, False, False, True, False]


def test_a_pod_that_no_node_has_room_for_keeps_its_place():
    job = on_node(None)

    decision = decided(job, TimePassed(), NOW + timedelta(hours=3))

    assert (decision.job.state, decision.timeline) == (JobState.LAUNCHING, ())


def test_a_pod_on_spot_gives_up_its_place_for_the_other_capacity_that_the_job_may_have():
    job = on_node(None, purchase=PurchasePolicy.SPOT_THEN_ON_DEMAND)
    placement = job.current_attempt.placement
    spot = replace(placement, offering=replace(placement.offering, purchase=PurchaseOption.SPOT))

    decision = decided(with_attempt(job, placement=spot), TimePassed(), NOW + timedelta(hours=3))

    assert decision.job.current_attempt.intent.kind is IntentKind.PLACEMENT_WITHDRAWN


def test_a_pod_that_has_a_node_and_does_not_start_is_withdrawn():
    job = on_node("cn-beijing.192.168.0.11")

    decision = decided(job, TimePassed(), NOW + timedelta(hours=3))

    assert decision.job.current_attempt.intent.kind is IntentKind.START_WITHDRAWN


def test_what_a_pod_waits_for_is_the_reason_of_the_job_also_if_it_is_something_else_now():
    job = on_ack("pl")
    waiting = after(job, said(job, "PENDING", waiting_for=PENDING_TEXT))
    version = waiting.current_attempt.task_version
    other = TaskSeen(replace(seen("PENDING", version=version).observation, waiting_for="0/2 nodes are available"))
    same = TaskSeen(replace(other.observation, waiting_for=PENDING_TEXT))

    assert waiting.reason == PENDING_TEXT
    assert decided(waiting, same).is_ignored
    assert after(waiting, other).reason == "0/2 nodes are available"


def test_a_job_that_runs_has_no_reason_any_more():
    job = on_ack("pl")
    waiting = after(job, said(job, "PENDING", waiting_for=PENDING_TEXT))

    assert after(waiting, said(waiting, "RUNNING")).reason == ""


def test_an_explanation_repeats_what_the_scheduler_says():
    job = on_node(None)
    waiting = after(job, said(job, "PENDING", waiting_for=PENDING_TEXT))

    explained = explain(waiting, SOON)

    assert explained.waiting_for.endswith(f"(the cluster says PENDING): {PENDING_TEXT}")
    assert (explained.next_step, explained.next_at) == ("it is looked at again", waiting.wake_at)
    assert explained.advice[0].startswith("a node with room")


def test_an_explanation_of_a_pod_with_a_node_advises_no_other():
    job = on_node("cn-beijing.192.168.0.11")

    explained = explain(job, SOON)

    assert explained.waiting_for.endswith("(the cluster says PENDING)")
    assert explained.advice == ()


def test_a_warning_that_came_with_a_task_stops_it_and_names_its_node():
    job = with_attempt(on_ack("ru"), node="cn-beijing.192.168.0.11", instance_id=None)
    task_id = job.current_attempt.task_id

    warned = after(job, HostWarned("", SOON, task_id))

    assert (warned.state, warned.current_attempt.warned_at) == (JobState.STOPPING, SOON)
    assert warned.current_attempt.instance_id is None
    reason = "spot interruption warning for cn-beijing.192.168.0.11"
    assert warned.pending == (StopTask(task_id, f"Relaunch: {reason}"),)
