"""Tasks that are taken away, on the local API server: what is seen meanwhile, and what it was in the end."""

from collections.abc import Callable, Iterator
from datetime import datetime

import pytest

from fakes.builders import make_launch_request, make_running_attempt
from fakes.kubernetes_clusters import NAMESPACE, ServedKubernetesCluster, served_cluster
from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.launches.launch import ReportedCause, TaskObservation, TaskPhase
from relaunch.core.lifecycle.stop_reason import classify_stop

NAME = "resnet-1f2e3d4c-1-1"
NODE = "node-0"
REQUEST = make_launch_request(workload=KubernetesWorkload("image:v1"), gpu=GpuRequirement())
Taken = Callable[[ServedKubernetesCluster], None]


@pytest.fixture(params=[36, 20], ids=["1.36", "1.20"])
def minor(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def served(minor: int) -> Iterator[ServedKubernetesCluster]:
    """Yield a cluster with a running task."""
    with served_cluster(Target.ACK, minor=minor) as cluster:
        cluster.target.launch(REQUEST)
        cluster.start(NAME)
        yield cluster


def seen(served: ServedKubernetesCluster) -> TaskObservation:
    task = served.target.describe([NAME])[NAME]
    assert task is not None
    return task


def kind_of(task: TaskObservation, warned_at: datetime | None = None) -> StopKind:
    assert task.phase is TaskPhase.STOPPED
    attempt = make_running_attempt(instance_id=None, node=NODE, started_at=task.created_at, warned_at=warned_at)
    assert task.stopped_at is not None
    return classify_stop(task, "main", attempt, task.stopped_at, target=Target.ACK).kind


def evict(served: ServedKubernetesCluster) -> None:
    pod = served.pod(NAME)
    served.cluster.disrupt(pod, "EvictionByEvictionAPI", "Eviction API: evicting")


def delete(served: ServedKubernetesCluster) -> None:
    served.cluster.delete_pod(NAMESPACE, served.pod(NAME)["metadata"]["name"])


@pytest.mark.parametrize("take", [evict, delete])
@pytest.mark.parametrize("code", [0, 3, 143])
@pytest.mark.parametrize("minor", [36])
def test_a_pod_that_is_taken_away_stops_and_was_interrupted(
    served: ServedKubernetesCluster, take: Taken, code: int
) -> None:
    take(served)
    stopping = seen(served)
    served.finish(NAME, code)
    stopped = seen(served)

    assert stopping.phase is TaskPhase.STOPPING
    assert stopping.node == NODE
    assert stopped.version > stopping.version
    # What deletes a pod leaves no condition of it: that it was being deleted is known by what was seen meanwhile.
    assert kind_of(stopped, stopping.warned_at) is StopKind.INTERRUPTION
    is_failure = (take, code) == (delete, 3)
    assert kind_of(stopped) is (StopKind.USER_ERROR if is_failure else StopKind.INTERRUPTION)
    assert [page for page in served.target.list_tasks() for _ in page] == []


@pytest.mark.parametrize("take", [evict, delete])
@pytest.mark.parametrize("code", [0, 3, 143])
@pytest.mark.parametrize("minor", [25])
def test_a_server_that_fails_the_job_of_a_pod_as_its_deletion_begins_tells_an_interruption(
    served: ServedKubernetesCluster, take: Taken, code: int
) -> None:
    take(served)
    stopping = seen(served)
    served.finish(NAME, code)

    assert stopping.phase is TaskPhase.STOPPING
    assert stopping.report.causes == {ReportedCause.INTERRUPTED}
    assert kind_of(seen(served)) is StopKind.INTERRUPTION
    # No other pod is made.
    served.advance(600)
    assert served.cluster.state.all("pods", NAMESPACE) == []


@pytest.mark.parametrize("take", [evict, delete])
@pytest.mark.parametrize("minor", [20])
def test_an_old_server_goes_on_with_another_pod_of_the_same_task(served: ServedKubernetesCluster, take: Taken) -> None:
    running = seen(served)
    take(served)
    served.finish(NAME, 143)
    replaced = seen(served)

    assert (replaced.phase, replaced.task_id) == (TaskPhase.PENDING, running.task_id)
    # It is older than what was seen before, and not told.
    assert replaced.version < running.version
    assert len(served.cluster.state.all("pods", NAMESPACE)) == 1

    served.start(NAME)
    assert seen(served).phase is TaskPhase.RUNNING
    assert seen(served).version > running.version
    served.finish(NAME, 0)
    assert kind_of(seen(served)) is StopKind.SUCCESS


@pytest.mark.parametrize("take", [evict, delete])
@pytest.mark.parametrize("minor", [36])
def test_whether_a_pod_ran_that_is_gone_is_not_known(served: ServedKubernetesCluster, take: Taken) -> None:
    take(served)
    served.finish(NAME, 0)

    task = seen(served)

    assert served.cluster.state.all("pods", NAMESPACE) == []
    assert task.phase is TaskPhase.STOPPED
    assert (task.started_at, task.may_have_run) == (None, True)
    # It saved and exited with 0 by SIGTERM: the Job is complete, and the program has not finished.
    assert kind_of(task) is StopKind.INTERRUPTION


def test_a_task_that_is_stopped_has_no_other_pod_and_keeps_its_reason(served: ServedKubernetesCluster) -> None:
    served.target.stop(NAME, "cancelled")
    served.advance(1)
    stopping = seen(served)
    served.finish(NAME, 143)
    served.advance(600)
    stopped = seen(served)

    assert [stopping.phase, stopped.phase] == [TaskPhase.STOPPING, TaskPhase.STOPPED]
    for task in (stopping, stopped):
        assert task.report.causes == {ReportedCause.STOP_CALLED}
        assert task.report.text == "cancelled"
    assert served.cluster.state.all("pods", NAMESPACE) == []


def test_a_task_that_does_not_save_in_time_is_killed(served: ServedKubernetesCluster) -> None:
    served.target.stop(NAME, "cancelled")

    served.advance(85)
    assert seen(served).phase is TaskPhase.STOPPING
    served.advance(10)
    assert seen(served).phase is TaskPhase.STOPPED


def test_a_task_whose_job_somebody_deletes_is_known_until_its_pod_has_ended(served: ServedKubernetesCluster) -> None:
    served.cluster.delete_job(NAMESPACE, NAME)
    stopping = seen(served)
    served.finish(NAME, 143)

    assert stopping.phase is TaskPhase.STOPPING
    assert stopping.report.causes == {ReportedCause.STOP_CALLED}
    assert served.target.describe([NAME]) == {NAME: None}


@pytest.mark.parametrize("minor", [25, 36])
def test_a_task_on_a_node_that_is_out_of_reach_is_not_over_until_the_node_is_gone(
    served: ServedKubernetesCluster, minor: int
) -> None:
    served.cluster.lose_node(NODE)
    unheard = seen(served)
    served.advance(301)
    deleted = seen(served)
    served.cluster.remove_node(NODE)
    served.advance(41)
    gone = seen(served)

    assert [unheard.phase, deleted.phase, gone.phase] == [TaskPhase.RUNNING, TaskPhase.STOPPING, TaskPhase.STOPPED]
    # That of 1.25 has failed the Job by then, which warns of nothing.
    assert (deleted.warned_at is not None) is (minor > 25)
    # Its pod took the reason along: the Job only says that there was one.
    assert kind_of(gone) is StopKind.INTERRUPTION


def test_a_program_that_finished_is_a_success_though_its_pod_is_removed(served: ServedKubernetesCluster) -> None:
    served.finish(NAME, 0)
    delete(served)

    task = seen(served)

    assert served.cluster.state.all("pods", NAMESPACE) == []
    assert {name: each.exit_code for name, each in task.containers.items()} == {"main": 0}
    assert kind_of(task) is StopKind.SUCCESS
    # What the cluster forgets after an hour can be said no more, and that the pod was taken away not either.
    served.advance(3_700)
    assert kind_of(seen(served)) is StopKind.INTERRUPTION


WITH_SIDECAR = {"spec": {"initContainers": [{"name": "metrics", "image": "otel:1", "restartPolicy": "Always"}]}}


@pytest.fixture
def beside() -> Iterator[ServedKubernetesCluster]:
    """Yield a cluster with a running task, beside whose program there is a sidecar."""
    workload = KubernetesWorkload("image:v1", pod=WITH_SIDECAR)
    with served_cluster(Target.ACK) as cluster:
        cluster.target.launch(make_launch_request(workload=workload, gpu=GpuRequirement()))
        cluster.start(NAME)
        yield cluster


def killed(served: ServedKubernetesCluster) -> list[str]:
    events = served.cluster.state.all("events", NAMESPACE)
    return [each["message"] for each in events if each["reason"] == "Killing"]


def test_a_program_that_finished_is_a_success_though_a_sidecar_was_ended_after_it(
    beside: ServedKubernetesCluster,
) -> None:
    beside.finish(NAME, 0)
    delete(beside)

    assert killed(beside) == ["Stopping container metrics"]
    assert beside.cluster.state.all("pods", NAMESPACE) == []
    assert kind_of(seen(beside)) is StopKind.SUCCESS


def test_a_program_that_saved_beside_a_sidecar_was_interrupted(beside: ServedKubernetesCluster) -> None:
    delete(beside)
    beside.finish(NAME, 0)

    assert sorted(killed(beside)) == ["Stopping container main", "Stopping container metrics"]
    assert kind_of(seen(beside)) is StopKind.INTERRUPTION


@pytest.mark.parametrize("minor", [36])
def test_a_task_that_ends_by_itself_tells_its_exit_code_though_its_pod_is_removed(
    served: ServedKubernetesCluster,
) -> None:
    served.finish(NAME, 3)
    served.cluster.delete_pod(NAMESPACE, served.pod(NAME)["metadata"]["name"])

    task = seen(served)

    assert {name: each.exit_code for name, each in task.containers.items()} == {"main": 3}
    assert kind_of(task) is StopKind.USER_ERROR


def test_a_pod_whose_image_is_missing_says_so(minor: int) -> None:
    with served_cluster(Target.ACK, minor=minor) as cluster:
        cluster.cluster.missing_images.add("image:v1")
        cluster.target.launch(REQUEST)
        cluster.start(NAME)

        task = seen(cluster)

        assert task.phase is TaskPhase.STARTING
        assert task.waiting_for == 'ImagePullBackOff: Back-off pulling image "image:v1"'


def test_a_pod_without_room_says_what_the_scheduler_says(minor: int) -> None:
    with served_cluster(Target.ACK, minor=minor) as cluster:
        cluster.cluster.add_node("cpu-only")
        cluster.target.launch(REQUEST)

        task = seen(cluster)

        assert task.phase is TaskPhase.PENDING
        assert task.waiting_for.startswith("Unschedulable: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu")
