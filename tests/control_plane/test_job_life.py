"""What becomes of Jobs and their pods, on the real server, and what KubernetesTarget tells of them."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from control_plane.cluster import RealKubernetesCluster, real_cluster
from control_plane.jobs import Document, make_job
from control_plane.namespaces import Namespace, finish_of
from control_plane.waiting import wait_for
from fakes.alibaba_documents import ACK_DEFINITION, job_of
from fakes.builders import make_launch_request
from relaunch.adapters.kubernetes.labels import STOP_REASON
from relaunch.adapters.kubernetes.target import kubernetes_target
from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.launches.launch import (
    LaunchDeferred,
    LaunchRefused,
    ReportedCause,
    TaskObservation,
    TaskPhase,
    TaskPlaced,
)

pytestmark = pytest.mark.kubernetes

REQUEST = make_launch_request(workload=KubernetesWorkload("registry.example.com/vision:v1"), gpu=GpuRequirement())
TRACKS_PODS, HAS_POLICIES = 25, 26
SUSPENDS = 22


@pytest.fixture
def cluster(namespace: Namespace) -> Iterator[RealKubernetesCluster]:
    with real_cluster(namespace, Target.ACK) as cluster:
        yield cluster


def place(cluster: RealKubernetesCluster, job_id: str = "resnet-1f2e3d4c") -> str:
    outcome = cluster.target.launch(replace(REQUEST, attempt=AttemptKey(job_id, 1)))
    assert isinstance(outcome, TaskPlaced)
    return outcome.task_id


def seen(cluster: RealKubernetesCluster, name: str) -> TaskObservation:
    task = cluster.target.describe([name])[name]
    assert task is not None
    return task


def delete_pod(namespace: Namespace, job: str) -> str:
    """Delete the pod of a Job as anybody may; return its UID."""
    pod = namespace.pod(job)["metadata"]
    namespace.api.delete(namespace.path("pods", pod["name"])).raise_for_status()
    return str(pod["uid"])


def test_the_echo_of_a_job_lacks_what_the_server_does_not_know(namespace: Namespace) -> None:
    minor = namespace.plane.version.minor
    with namespace.client() as client:
        created = client.create_job(job_of(ACK_DEFINITION))

    assert (created.spec.pod_failure_policy is not None) is (minor >= HAS_POLICIES)
    assert (created.spec.ttl_seconds_after_finished is not None) is (minor >= 21)
    assert (created.spec.backoff_limit, created.spec.parallelism) == (0, 1)


def test_a_program_that_succeeds_makes_its_job_complete(cluster: RealKubernetesCluster) -> None:
    name = place(cluster)
    cluster.start(name)
    cluster.finish(name, 0)

    task = seen(cluster, name)
    assert cluster.namespace.finished(name)["type"] == "Complete"
    assert (task.phase, task.containers["main"].exit_code) == (TaskPhase.STOPPED, 0)
    assert task.report.causes == {ReportedCause.ENDED}


def test_a_program_that_fails_is_not_started_again(cluster: RealKubernetesCluster) -> None:
    name = place(cluster)
    cluster.start(name)
    cluster.finish(name, 2)

    failed = cluster.namespace.finished(name)
    expected = "PodFailurePolicy" if cluster.namespace.plane.version.minor >= HAS_POLICIES else "BackoffLimitExceeded"
    assert (failed["type"], failed["reason"]) == ("Failed", expected)
    assert len(cluster.namespace.pods(name)) == 1
    assert seen(cluster, name).containers["main"].exit_code == 2


def test_the_exit_code_outlives_the_pod_where_the_server_has_failure_policies(cluster: RealKubernetesCluster) -> None:
    name = place(cluster)
    cluster.start(name)
    cluster.finish(name, 7)
    delete_pod(cluster.namespace, name)
    wait_for("pod that is gone", lambda: not cluster.namespace.pods(name))

    codes = {each: container.exit_code for each, container in seen(cluster, name).containers.items()}
    assert codes == ({"main": 7} if cluster.namespace.plane.version.minor >= HAS_POLICIES else {})


def test_a_program_that_finished_is_known_to_though_its_pod_is_gone(cluster: RealKubernetesCluster) -> None:
    name = place(cluster)
    cluster.start(name)
    cluster.finish(name, 0)
    delete_pod(cluster.namespace, name)
    wait_for("pod that is gone", lambda: not cluster.namespace.pods(name))

    # The Job controller writes its event behind the status of the Job.
    wait_for("event of the end", lambda: seen(cluster, name).report.causes == {ReportedCause.ENDED})
    assert seen(cluster, name).containers["main"].exit_code == 0


def test_a_queue_needs_a_server_that_suspends_jobs(cluster: RealKubernetesCluster) -> None:
    workload = KubernetesWorkload("registry.example.com/vision:v1", queue="gpus")
    outcome = cluster.target.launch(replace(REQUEST, workload=workload))

    if cluster.namespace.plane.version.minor >= SUSPENDS:
        assert isinstance(outcome, TaskPlaced)
        assert seen(cluster, outcome.task_id).is_suspended
        return
    assert isinstance(outcome, LaunchRefused)
    assert "which suspends Jobs" in outcome.reason
    assert cluster.namespace.get("jobs")["items"] == []


def test_a_stop_ends_the_pod_and_no_other_one_is_made(cluster: RealKubernetesCluster) -> None:
    name = place(cluster)
    cluster.start(name)
    uid = cluster.namespace.pod(name)["metadata"]["uid"]
    cluster.target.stop(name, "cancelled")
    stopping = seen(cluster, name)
    cluster.namespace.kubelets.exit(uid, 143)
    wait_for("pod that is gone", lambda: not cluster.namespace.pods(name))

    failed = cluster.namespace.finished(name)
    stopped = seen(cluster, name)
    assert failed["reason"] == "DeadlineExceeded"
    assert (stopping.phase, stopped.phase) == (TaskPhase.STOPPING, TaskPhase.STOPPED)
    assert stopped.report.text == "cancelled"
    assert stopped.report.causes == {ReportedCause.STOP_CALLED}
    assert stopped.version > stopping.version
    assert cluster.namespace.pods(name) == []


def test_stops_in_the_first_moment_of_a_job_are_carried_out_at_the_latest_when_they_are_repeated(
    namespace: Namespace,
) -> None:
    with namespace.client() as client:
        target = kubernetes_target(client, Target.ACK, "relaunch")
        names = [f"job-{number}-1-1" for number in range(20)]
        for number, name in enumerate(names):
            assert target.launch(replace(REQUEST, attempt=AttemptKey(f"job-{number}", 1))) == TaskPlaced(name)
            target.stop(name, "cancelled")

        def all_stopped() -> bool:
            for name in names:
                target.stop(name, "cancelled again")
            observed = [task for task in target.describe(names).values() if task is not None]
            return [task.phase for task in observed] == [TaskPhase.STOPPED] * len(names)

        wait_for("end of all Jobs", all_stopped, pause_seconds=5.0)
        reports = {task.report.text for task in target.describe(names).values() if task is not None}
    assert reports == {"cancelled"}


def test_a_pod_that_is_deleted_fails_its_job_or_is_replaced_by_an_old_server(cluster: RealKubernetesCluster) -> None:
    name = place(cluster)
    cluster.start(name)
    uid = delete_pod(cluster.namespace, name)
    if is_old(cluster):
        # At once, beside the one that saves.
        assert len(replaced(cluster, name, uid)) == 2
        assert finish_of(cluster.namespace.get("jobs", name)) is None
        assert seen(cluster, name).phase is TaskPhase.PENDING
        return

    assert seen(cluster, name).phase is TaskPhase.STOPPING
    cluster.namespace.kubelets.exit(uid, 143)
    assert cluster.namespace.finished(name)["type"] == "Failed"
    assert seen(cluster, name).phase is TaskPhase.STOPPED


def forbid_pods(namespace: Namespace) -> None:
    """Let a quota refuse every pod."""
    namespace.create("resourcequotas", {"metadata": {"name": "gpus"}, "spec": {"hard": {"pods": "0"}}})
    wait_for("quota", lambda: "hard" in namespace.get("resourcequotas", "gpus").get("status", {}))


def test_a_deleted_pod_that_ends_fails_its_job_where_an_old_server_may_not_replace_it(
    cluster: RealKubernetesCluster,
) -> None:
    name = place(cluster)
    namespace = cluster.namespace
    cluster.start(name)
    forbid_pods(namespace)
    namespace.kubelets.exit(delete_pod(namespace, name), 1)

    assert namespace.finished(name)["type"] == "Failed"
    assert seen(cluster, name).phase is TaskPhase.STOPPED


def test_a_pod_that_is_gone_and_refused_by_an_old_server_is_told_and_its_task_can_be_stopped(
    cluster: RealKubernetesCluster,
) -> None:
    if not is_old(cluster):
        pytest.skip("this server counts a pod that is gone")
    name = place(cluster)
    namespace = cluster.namespace
    cluster.start(name)
    forbid_pods(namespace)
    path = namespace.path("pods", namespace.pod(name)["metadata"]["name"])
    namespace.api.request("DELETE", path, json={"gracePeriodSeconds": 0}).raise_for_status()

    wait_for("refusal", lambda: seen(cluster, name).report.causes == {ReportedCause.START_REFUSED})
    assert seen(cluster, name).phase is TaskPhase.PENDING
    assert "exceeded quota" in seen(cluster, name).waiting_for
    cluster.target.stop(name, "interrupted")
    wait_for("stop", lambda: seen(cluster, name).phase is TaskPhase.STOPPED)


def is_old(cluster: RealKubernetesCluster) -> bool:
    """Return whether the server's Job controller replaces pods that are deleted, whatever the `backoffLimit`."""
    return cluster.namespace.plane.version.minor < TRACKS_PODS


def replaced(cluster: RealKubernetesCluster, name: str, uid: str) -> list[Document]:
    """Return the pods of a Job once there is another one than that of a UID."""
    namespace = cluster.namespace
    wait_for("other pod", lambda: [each for each in namespace.pods(name) if each["metadata"]["uid"] != uid])
    return namespace.pods(name)


def test_a_job_that_is_deleted_takes_its_pod_along_and_is_known_until_then(cluster: RealKubernetesCluster) -> None:
    name = place(cluster)
    cluster.start(name)
    uid = cluster.namespace.pod(name)["metadata"]["uid"]
    cluster.namespace.delete_job(name)
    cluster.namespace.delete_job(name)
    wait_for("pod that is deleted", lambda: cluster.namespace.pod(name)["metadata"].get("deletionTimestamp"))

    assert seen(cluster, name).phase is TaskPhase.STOPPING
    cluster.namespace.kubelets.exit(uid, 143)
    wait_for("task that is forgotten", lambda: cluster.target.describe([name]) == {name: None})


def test_a_task_on_a_lost_node_is_stopping_until_the_cluster_removes_its_pod(cluster: RealKubernetesCluster) -> None:
    name = place(cluster)
    node, namespace = cluster.start(name), cluster.namespace
    uid = namespace.pod(name)["metadata"]["uid"]
    # Where all nodes of a zone are lost, the network is at fault for Kubernetes, and it evicts nothing.
    cluster.add_node()
    namespace.kubelets.lose_node(node.name)

    def of_lost_node() -> Document | None:
        return next((each for each in namespace.pods(name) if each["metadata"]["uid"] == uid), None)

    wait_for("eviction", lambda: (of_lost_node() or {})["metadata"].get("deletionTimestamp"))
    found = cluster.target.find_node(node.name)
    assert found is not None
    assert not found.is_active
    if is_old(cluster):
        assert len(replaced(cluster, name, uid)) == 2
    else:
        assert seen(cluster, name).phase is TaskPhase.STOPPING

    namespace.kubelets.remove_node(node.name)
    wait_for("pod that is gone", lambda: of_lost_node() is None)
    if is_old(cluster):
        assert seen(cluster, name).phase is TaskPhase.PENDING
    else:
        assert namespace.finished(name)["type"] == "Failed"
        assert seen(cluster, name).phase is TaskPhase.STOPPED


def test_an_evicted_pod_is_an_interruption_or_replaced_by_an_old_server(cluster: RealKubernetesCluster) -> None:
    name = place(cluster)
    cluster.start(name)
    namespace = cluster.namespace
    pod, version = namespace.pod(name)["metadata"], namespace.plane.version
    metadata = {"name": pod["name"], "namespace": namespace.name}
    api_version = "policy/v1" if version.minor >= 22 else "policy/v1beta1"
    eviction = {"apiVersion": api_version, "kind": "Eviction", "metadata": metadata}
    namespace.api.post(f"{namespace.path('pods', pod['name'])}/eviction", json=eviction).raise_for_status()
    if is_old(cluster):
        assert len(replaced(cluster, name, pod["uid"])) == 2
        return

    task = seen(cluster, name)
    assert (task.phase, task.report.causes) == (TaskPhase.STOPPING, {ReportedCause.INTERRUPTED})
    namespace.kubelets.exit(pod["uid"], 143)
    expected = "PodFailurePolicy" if version.minor >= HAS_POLICIES else "BackoffLimitExceeded"
    assert namespace.finished(name)["reason"] == expected
    assert seen(cluster, name).report.causes == {ReportedCause.INTERRUPTED}


def test_a_used_up_quota_defers_a_launch(namespace: Namespace) -> None:
    quota = {"metadata": {"name": "jobs"}, "spec": {"hard": {"count/jobs.batch": "0"}}}
    namespace.create("resourcequotas", quota)
    wait_for("quota", lambda: "hard" in namespace.get("resourcequotas", "jobs").get("status", {}))
    with namespace.client() as client:
        outcome = kubernetes_target(client, Target.ACK, "relaunch").launch(REQUEST)

    assert isinstance(outcome, LaunchDeferred)
    assert "exceeded quota" in outcome.reason


def test_a_job_that_the_server_refuses_says_why(namespace: Namespace) -> None:
    workload = KubernetesWorkload("registry.example.com/vision:v1", labels={"a": "not a label"})
    with namespace.client() as client:
        outcome = kubernetes_target(client, Target.ACK, "relaunch").launch(replace(REQUEST, workload=workload))

    assert isinstance(outcome, LaunchRefused)
    assert outcome.is_about_revision
    assert "a valid label" in outcome.reason


def test_a_service_account_that_is_not_there_leaves_the_job_without_a_pod(namespace: Namespace) -> None:
    namespace.create("jobs", make_job(pod={"serviceAccountName": "trainer"}, limits={}))

    def said() -> list[str]:
        events = namespace.get("events")["items"]
        return [each["message"] for each in events if each["reason"] == "FailedCreate"]

    assert "service account" in wait_for("event", said)[0]
    assert namespace.pods("cuda-sample") == []


def test_the_reason_of_a_stop_is_on_the_job(cluster: RealKubernetesCluster) -> None:
    name = place(cluster)
    cluster.target.stop(name, "cancelled")

    assert cluster.namespace.get("jobs", name)["metadata"]["annotations"][STOP_REASON] == "cancelled"
