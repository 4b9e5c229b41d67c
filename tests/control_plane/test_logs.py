"""Logs of pods: the API server asks the kubelet for them, here a simulated one that answers as one does."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from control_plane.cluster import RealKubernetesCluster, real_cluster
from control_plane.jobs import make_job
from control_plane.namespaces import Namespace
from relaunch.adapters.kubernetes.api.errors import ApiRefusedError, NotFoundError
from relaunch.core.definitions.targets import Target

pytestmark = pytest.mark.kubernetes

LINES = [(f"2026-11-02T09:00:0{second}.500000000Z", f"step {second}") for second in range(4)]


@pytest.fixture
def cluster(namespace: Namespace) -> Iterator[RealKubernetesCluster]:
    with real_cluster(namespace, Target.ACK) as cluster:
        yield cluster


@pytest.fixture
def pod(cluster: RealKubernetesCluster) -> str:
    """Return the name of a pod that runs and has written."""
    cluster.namespace.create("jobs", make_job())
    cluster.start_pod("cuda-sample")
    name = str(cluster.namespace.pod("cuda-sample")["metadata"]["name"])
    for at, text in LINES:
        cluster.namespace.kubelets.logs.write(cluster.namespace.name, name, "main", at, text)
    return name


def test_lines_come_with_their_times(namespace: Namespace, pod: str) -> None:
    with namespace.log_reader() as client:
        assert list(client.read_log(pod, "main")) == [f"{at} {text}" for at, text in LINES]
        assert list(client.read_log(pod, "main", timestamps=False)) == [text for _, text in LINES]


def test_the_last_lines_and_those_since_a_time_can_be_asked_for(namespace: Namespace, pod: str) -> None:
    since = datetime(2026, 11, 2, 9, 0, 2, tzinfo=UTC)
    with namespace.log_reader() as client:
        assert list(client.read_log(pod, "main", tail_lines=1, timestamps=False)) == ["step 3"]
        assert list(client.read_log(pod, "main", since_time=since, timestamps=False)) == ["step 2", "step 3"]


def test_a_pod_or_container_that_is_not_there_says_so(namespace: Namespace, pod: str) -> None:
    with namespace.log_reader() as client:
        with pytest.raises(NotFoundError):
            list(client.read_log("nobody", "main"))
        with pytest.raises(ApiRefusedError, match="container other is not valid for pod"):
            list(client.read_log(pod, "other"))


def test_a_pod_without_a_node_has_an_empty_log(namespace: Namespace) -> None:
    namespace.create("jobs", make_job())
    name = namespace.pod("cuda-sample")["metadata"]["name"]
    with namespace.log_reader() as client:
        assert list(client.read_log(name, "main")) == []


def test_a_container_that_waits_to_start_has_an_empty_log(cluster: RealKubernetesCluster, pod: str) -> None:
    cluster.namespace.kubelets.logs.forget(cluster.namespace.name, pod)
    with cluster.namespace.log_reader() as client:
        assert list(client.read_log(pod, "main")) == []
