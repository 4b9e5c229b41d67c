"""Pods on the virtual nodes of ACS, on the local API server: no stock for them, and capacity that is taken away."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import NOW, make_definition, make_job, make_launch_request, make_placement, make_running_attempt
from fakes.kubernetes import read_job, read_pod
from fakes.kubernetes_clusters import NAMESPACE, ServedKubernetesCluster, served_cluster
from relaunch.adapters.kubernetes.observation import observe_task
from relaunch.core.definitions.accelerator import GpuRequirement, PurchaseOption, PurchasePolicy
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import IntentKind, PlacementState, StopKind
from relaunch.core.jobs.effects import RememberCapacity
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import ReportedCause, TaskObservation, TaskPhase
from relaunch.core.lifecycle.events import JobEvent, TaskSeen, TimePassed
from relaunch.core.lifecycle.stop_reason import classify_stop
from relaunch.core.lifecycle.table import decide
from relaunch.core.offerings.offering import OfferingKey

NAME = "resnet-1f2e3d4c-1-1"
WORKLOAD = KubernetesWorkload("image:v1", vcpus=1, memory_mib=1024, gpu_model="T4")
SPOT = OfferingKey("acs/gpu/T4", None, PurchaseOption.SPOT)


@pytest.fixture
def served() -> Iterator[ServedKubernetesCluster]:
    """Yield a cluster with a best-effort task."""
    with served_cluster(Target.ACS) as cluster:
        cluster.target.launch(make_launch_request(workload=WORKLOAD, gpu=GpuRequirement(), offering=SPOT))
        yield cluster


def seen(served: ServedKubernetesCluster) -> TaskObservation:
    task = served.target.describe([NAME])[NAME]
    assert task is not None
    return task


def placed_job() -> Job:
    """The job of the task, which takes on-demand capacity too, as far as its launch was answered."""
    definition = make_definition(
        target=Target.ACS, kubernetes=WORKLOAD, deadline=None, purchase=PurchasePolicy.SPOT_THEN_ON_DEMAND
    )
    placement = make_placement(state=PlacementState.PLACED, offering=SPOT, task_id=NAME, placed_at=NOW)
    attempt = replace(make_running_attempt(instance_id=None, node="node-0"), placement=placement, started_at=None)
    return make_job(definition=definition, state=JobState.LAUNCHING, waiting=None, attempt=attempt, has_slot=True)


def after(job: Job, event: JobEvent, at: datetime) -> Job:
    return decide(job, event, at, StackLimits()).job


def test_a_pod_without_an_instance_is_one_without_capacity(served: ServedKubernetesCluster) -> None:
    served.cluster.qualities_out_of_stock.add("best-effort")
    served.run(NAME)
    lacking = seen(served)
    job = after(placed_job(), TaskSeen(lacking), NOW)
    withdrawn = after(job, TimePassed(is_described=True), NOW + timedelta(minutes=15))
    served.target.stop(NAME, "Relaunch: no capacity")
    served.advance(90)
    stopped = seen(served)
    at = NOW + timedelta(minutes=17)
    again = after(withdrawn, TaskSeen(replace(stopped, stopped_at=at)), at)

    assert lacking.waiting_for.startswith("NoStock: Create failed because the specified instance is out of stock")
    assert lacking.node is None
    assert lacking.report.causes == {ReportedCause.NO_CAPACITY}
    assert job.reason == lacking.waiting_for
    assert withdrawn.current_attempt.intent is not None
    assert withdrawn.current_attempt.intent.kind is IntentKind.PLACEMENT_WITHDRAWN
    assert (again.state, again.current_attempt.stop and again.current_attempt.stop.kind) == (
        JobState.WAITING,
        StopKind.NO_CAPACITY,
    )
    assert [each.offering for each in again.pending if isinstance(each, RememberCapacity)] == [SPOT]


def test_a_pod_that_gets_an_instance_later_runs(served: ServedKubernetesCluster) -> None:
    served.cluster.qualities_out_of_stock.add("best-effort")
    node = served.run(NAME)
    lacking = seen(served)
    served.cluster.qualities_out_of_stock.clear()
    served.advance(60)
    running = seen(served)

    assert (running.phase, running.node, running.waiting_for) == (TaskPhase.RUNNING, node, "")
    assert running.version > lacking.version


@pytest.mark.parametrize(
    ("reason", "said", "causes"),
    [("Creating", "", set()), ("Throttling", "Throttling: x", set()), ("StockClose", "StockClose: x", {"no-capacity"})],
)
def test_which_conditions_are_told_as_waits(reason: str, said: str, causes: set[str]) -> None:
    condition = {"type": "ContainerInstanceCreated", "status": "False", "reason": reason, "message": "x"}
    task = observe_task(read_job(), [read_pod("Pending", node="virtual-kubelet", conditions=[condition])])

    assert (task.node, task.waiting_for) == (None, said)
    assert {each.value for each in task.report.causes} == causes


@pytest.mark.parametrize("code", [None, 0, 1, 130])
def test_what_ends_within_minutes_of_the_notice_was_taken_away(
    served: ServedKubernetesCluster, code: int | None
) -> None:
    served.start(NAME)
    served.cluster.release_best_effort(NAMESPACE, served.pod(NAME)["metadata"]["name"])
    warned = seen(served)
    if code is not None:
        served.advance(240)
        served.finish(NAME, code)
    served.advance(310)
    stopped = seen(served)

    assert (warned.phase, stopped.phase) == (TaskPhase.RUNNING, TaskPhase.STOPPED)
    assert warned.warned_at is not None
    assert stopped.warned_at == warned.warned_at
    attempt = make_running_attempt(instance_id=None, node="node-0", warned_at=stopped.warned_at)
    assert classify_stop(stopped, "main", attempt, NOW, target=Target.ACS).kind is StopKind.INTERRUPTION


def test_a_condition_announces_it_too() -> None:
    at = "2026-11-02T10:00:00Z"
    condition = {"type": "ContainerInstanceCreated", "status": "True", "reason": "BestEffortToBeReleased"}
    task = observe_task(read_job(), [read_pod("Running", conditions=[condition | {"lastTransitionTime": at}])])

    assert task.warned_at == datetime.fromisoformat(at)
