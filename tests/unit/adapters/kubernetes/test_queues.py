"""Jobs that a queue holds back, on the local API server: before their start, after it, and when they are stopped."""

from collections.abc import Iterator
from datetime import datetime

import pytest

from fakes.builders import NOW, make_launch_request, make_running_attempt
from fakes.kubernetes import ended, read_job, read_pod
from fakes.kubernetes_clusters import NAMESPACE, ServedKubernetesCluster, served_cluster
from relaunch.adapters.kubernetes.api.models import Job
from relaunch.adapters.kubernetes.manifest import build_job
from relaunch.adapters.kubernetes.observation import observe_task
from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.launches.launch import ReportedCause, TaskObservation, TaskPhase, TaskPlaced
from relaunch.core.lifecycle.stop_reason import classify_stop

NAME = "resnet-1f2e3d4c-1-1"
REQUEST = make_launch_request(workload=KubernetesWorkload("image:v1", queue="gpus"), gpu=GpuRequirement())


@pytest.fixture
def served() -> Iterator[ServedKubernetesCluster]:
    """Yield a cluster with a task that waits in a queue."""
    with served_cluster(Target.ACK) as cluster:
        assert cluster.target.launch(REQUEST) == TaskPlaced(NAME)
        yield cluster


def suspend(served: ServedKubernetesCluster, *, value: bool) -> None:
    """Let the queue suspend the Job, or let it go on."""
    served.cluster.patch_job(NAMESPACE, NAME, {"spec": {"suspend": value}})


def seen(served: ServedKubernetesCluster) -> TaskObservation:
    task = served.target.describe([NAME])[NAME]
    assert task is not None
    return task


def kind_of(task: TaskObservation, warned_at: datetime | None = None) -> StopKind:
    attempt = make_running_attempt(instance_id=None, node="node-0", started_at=task.created_at, warned_at=warned_at)
    return classify_stop(task, "main", attempt, task.stopped_at or NOW, target=Target.ACK).kind


def test_the_job_of_a_queue_is_created_suspended_and_names_it() -> None:
    job = build_job(REQUEST, Target.ACK, "relaunch")

    assert job["spec"]["suspend"] is True
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpus"
    # Kueue would manage the pod beside the Job.
    assert "kueue.x-k8s.io/queue-name" not in job["spec"]["template"]["metadata"]["labels"]


def test_a_task_waits_in_its_queue_with_the_words_of_that(served: ServedKubernetesCluster) -> None:
    before = seen(served)
    workload = {"kind": "Workload", "metadata": {"name": f"job-{NAME}-1a2b3", "namespace": NAMESPACE, "uid": "w"}}
    served.cluster.record_event(workload, "Warning", "Pending", "insufficient unused quota for nvidia.com/gpu")
    waiting = seen(served)
    suspend(served, value=False)
    served.start(NAME)
    running = seen(served)

    assert (before.phase, before.is_suspended, before.status) == (TaskPhase.PENDING, True, "Suspended")
    assert before.waiting_for == "suspended, queue gpus"
    assert waiting.waiting_for == "suspended, queue gpus: insufficient unused quota for nvidia.com/gpu"
    assert (running.phase, running.is_suspended) == (TaskPhase.RUNNING, False)


def test_a_task_that_a_queue_takes_away_stops_and_is_never_over_by_itself(served: ServedKubernetesCluster) -> None:
    suspend(served, value=False)
    served.start(NAME)
    suspend(served, value=True)
    stopping = seen(served)
    served.finish(NAME, 143)
    suspended = seen(served)

    assert (stopping.phase, stopping.is_suspended) == (TaskPhase.STOPPING, False)
    assert stopping.warned_at is not None
    assert (suspended.phase, suspended.is_suspended) == (TaskPhase.PENDING, True)
    # The queue may let it go on, with what it started with, until it is stopped.
    served.target.stop(NAME, "taken")
    served.advance(600)
    assert (seen(served).phase, seen(served).report.causes) == (TaskPhase.STOPPED, {ReportedCause.STOP_CALLED})
    suspend(served, value=False)
    served.advance(600)
    assert served.cluster.state.all("pods", NAMESPACE) == []
    assert seen(served).status == "Failed"


@pytest.mark.parametrize("code", [1, 143])
def test_a_pod_that_fails_while_a_queue_takes_it_away_was_interrupted(
    served: ServedKubernetesCluster, code: int
) -> None:
    served.cluster._jobs.fails_suspended = True
    suspend(served, value=False)
    served.start(NAME)
    suspend(served, value=True)
    served.finish(NAME, code)
    stopped = seen(served)

    assert stopped.phase is TaskPhase.STOPPED
    assert kind_of(stopped) is StopKind.INTERRUPTION


def test_a_pod_that_has_ended_and_is_still_there_does_not_end_a_task_that_a_queue_may_let_go_on() -> None:
    job = Job.model_validate(read_job().model_dump(by_alias=True) | {"spec": {"suspend": True}})
    pod = read_pod("Failed", state=ended(143), deletionTimestamp="2026-11-02T10:01:00Z")

    task = observe_task(job, [pod])

    assert (task.phase, task.is_suspended) == (TaskPhase.STOPPING, False)
    assert task.report.causes == {ReportedCause.INTERRUPTED}


def test_a_task_that_is_stopped_in_its_queue_is_over_at_once_and_never_runs(served: ServedKubernetesCluster) -> None:
    served.target.stop(NAME, "cancelled")
    stopped = seen(served)
    suspend(served, value=False)
    served.advance(5)

    assert (stopped.phase, stopped.may_have_run) == (TaskPhase.STOPPED, False)
    assert stopped.report.text == "cancelled"
    assert served.cluster.state.all("pods", NAMESPACE) == []


def test_a_stop_that_a_suspension_overtakes_is_carried_out_when_it_is_sent_again(
    served: ServedKubernetesCluster,
) -> None:
    suspend(served, value=False)
    served.start(NAME)
    served.cluster._jobs.follow = lambda *_: None  # type: ignore[method-assign]
    served.target.stop(NAME, "cancelled")
    del served.cluster._jobs.follow
    suspend(served, value=True)
    served.finish(NAME, 143)
    held_back = seen(served)
    served.target.stop(NAME, "cancelled")

    assert held_back.phase is not TaskPhase.STOPPED
    assert seen(served).phase is TaskPhase.STOPPED


def test_a_cluster_that_does_not_know_suspend_would_run_past_the_queue_and_is_refused() -> None:
    with served_cluster(Target.ACK, minor=20) as cluster:
        outcome = cluster.target.launch(REQUEST)

        assert "needs Kubernetes 1.22, which suspends Jobs: the cluster has v1.20.2" in getattr(outcome, "reason", "")
        assert cluster.cluster.state.all("jobs", NAMESPACE) == []
