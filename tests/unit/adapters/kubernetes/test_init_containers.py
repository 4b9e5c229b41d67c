"""Tasks whose init containers wait or fail: what is seen, and what it was in the end."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.builders import make_launch_request, make_running_attempt
from fakes.kubernetes import disrupted, ended, read_job, waiting
from fakes.kubernetes_clusters import ServedKubernetesCluster, served_cluster
from relaunch.adapters.kubernetes.api.models import Pod
from relaunch.adapters.kubernetes.observation import observe_task
from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import Stop, StopKind
from relaunch.core.launches.launch import ReportedCause, TaskObservation, TaskPhase
from relaunch.core.lifecycle.stop_reason import classify_stop

NAME = "resnet-1f2e3d4c-1-1"
NOW = datetime(2026, 11, 2, 11, tzinfo=UTC)
SYNC = {"spec": {"initContainers": [{"name": "code", "image": "git-sync:4"}]}}
REQUEST = make_launch_request(workload=KubernetesWorkload("image:v1", pod=SYNC), gpu=GpuRequirement())
FAILED = ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
INITIALIZING = waiting("PodInitializing")


@pytest.fixture
def served() -> Iterator[ServedKubernetesCluster]:
    with served_cluster(Target.ACK, minor=36) as cluster:
        cluster.target.launch(REQUEST)
        yield cluster


def seen(served: ServedKubernetesCluster) -> TaskObservation:
    task = served.target.describe([NAME])[NAME]
    assert task is not None
    return task


def stop_of(task: TaskObservation) -> Stop:
    assert task.phase is TaskPhase.STOPPED
    attempt = make_running_attempt(instance_id=None, node="node-0", started_at=None, warned_at=task.warned_at)
    return classify_stop(task, "main", attempt, task.stopped_at or NOW, target=Target.ACK)


def test_a_task_says_which_init_container_it_waits_for(served: ServedKubernetesCluster) -> None:
    served.start(NAME)
    running = seen(served)
    served.finish(NAME, 0)

    assert (running.phase, running.waiting_for) == (TaskPhase.STARTING, "init container code runs")
    assert (seen(served).phase, seen(served).waiting_for) == (TaskPhase.RUNNING, "")


def test_an_image_that_an_init_container_cannot_pull_is_shown_as_that_of_the_main_one(
    served: ServedKubernetesCluster,
) -> None:
    served.cluster.missing_images.add("git-sync:4")
    served.start(NAME)

    task = seen(served)

    assert task.phase is TaskPhase.STARTING
    assert task.waiting_for == 'init container code: ImagePullBackOff: Back-off pulling image "git-sync:4"'
    assert ReportedCause.IMAGE in task.containers["code"].report.causes


def test_an_init_container_that_fails_is_a_failure_with_its_exit_code(served: ServedKubernetesCluster) -> None:
    served.start(NAME)
    served.finish(NAME, 3)

    stop = stop_of(seen(served))

    assert (stop.kind, stop.exit_code) == (StopKind.USER_ERROR, 3)
    assert stop.stopped_reason == "init container code exited with 3"


def test_a_pod_that_is_evicted_while_it_initializes_has_not_failed(served: ServedKubernetesCluster) -> None:
    served.start(NAME)
    served.cluster.disrupt(served.pod(NAME), "EvictionByEvictionAPI", "Eviction API: evicting")
    served.finish(NAME, 143)

    assert stop_of(seen(served)).kind is StopKind.INTERRUPTION


def read_pod(phase: str, init: dict[str, Any], main: dict[str, Any], restarts: str = "", **status: Any) -> Pod:
    spec = {
        "nodeName": "node-0",
        "containers": [{"name": "main"}],
        "initContainers": [{"name": "code"} | ({"restartPolicy": restarts} if restarts else {})],
    }
    states = {"containerStatuses": [{"name": "main", "state": main}]}
    states |= {"initContainerStatuses": [{"name": "code", "state": init}]}
    metadata = {"name": "p", "annotations": {"relaunch/owner": "resnet-1f2e3d4c/1"}}
    return Pod.model_validate({"metadata": metadata, "spec": spec, "status": {"phase": phase, **states, **status}})


@pytest.mark.parametrize(
    ("init", "kind"),
    [
        (ended(1), StopKind.USER_ERROR),
        (ended(137, "OOMKilled"), StopKind.OUT_OF_MEMORY),
        (ended(128, "StartError", "no such device"), StopKind.NOT_STARTED),
        (ended(128, "StartError", 'exec: "sync": executable file not found in $PATH'), StopKind.STARTS_NOWHERE),
        (ended(255, "Unknown"), StopKind.HOST_LOST),
    ],
)
def test_an_init_container_ends_a_job_as_the_main_one_does(init: dict[str, Any], kind: StopKind) -> None:
    task = observe_task(read_job(FAILED), [read_pod("Failed", init, INITIALIZING)])

    assert stop_of(task).kind is kind


def test_an_init_container_that_ends_with_its_capacity_has_not_failed() -> None:
    warned_at = datetime(2026, 11, 2, 9, 56, tzinfo=UTC)
    released = observe_task(read_job(FAILED), [read_pod("Failed", ended(137), INITIALIZING)], warned_at)
    lost = read_pod("Failed", ended(137), INITIALIZING, conditions=disrupted("DeletionByPodGC"))

    assert stop_of(released).kind is StopKind.INTERRUPTION
    assert stop_of(observe_task(read_job(FAILED), [lost])).kind is StopKind.HOST_LOST


@pytest.mark.parametrize("code", [0, 137, 143])
def test_a_sidecar_that_ends_with_its_pod_changes_nothing(code: int) -> None:
    job = read_job(("Complete", "CompletionsReached", ""))
    task = observe_task(job, [read_pod("Succeeded", ended(code), ended(0, "Completed"), "Always")])

    assert list(task.containers) == ["main"]
    assert stop_of(task).kind is StopKind.SUCCESS


@pytest.mark.parametrize(
    ("init", "main", "restarts", "shown"),
    [
        (waiting("CrashLoopBackOff", "40s"), INITIALIZING, "Always", "init container code: CrashLoopBackOff: 40s"),
        ({"running": {}}, waiting("ImagePullBackOff"), "Always", "ImagePullBackOff"),
        (ended(0, "Completed"), waiting("ImagePullBackOff"), "", "ImagePullBackOff"),
        (INITIALIZING, INITIALIZING, "", "PodInitializing"),
    ],
)
def test_what_keeps_a_pod_from_starting_is_shown(
    init: dict[str, Any], main: dict[str, Any], restarts: str, shown: str
) -> None:
    assert observe_task(read_job(), [read_pod("Pending", init, main, restarts)]).waiting_for == shown
