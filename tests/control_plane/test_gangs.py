"""Jobs of several nodes on a real control plane: an older one is refused, and their Service goes with its Job."""

from typing import Any

import pytest

from control_plane.jobs import make_job
from control_plane.namespaces import Namespace
from control_plane.waiting import wait_for
from fakes.builders import make_launch_request
from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.errors import AlreadyExistsError
from relaunch.adapters.kubernetes.api.models import ServerVersion
from relaunch.adapters.kubernetes.gang_manifest import KNOWS_GANGS, headless_service
from relaunch.adapters.kubernetes.target import kubernetes_target
from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.launches.launch import LaunchRefused, TaskPlaced

pytestmark = pytest.mark.kubernetes

REQUEST = make_launch_request(
    workload=KubernetesWorkload("registry.example.com/trainer:1"), gpu=GpuRequirement(), nodes=3
)
SERVICE = "nodes-cuda-sample"


class SaysNew:
    """A client whose server says that it is newer than it is."""

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client

    def version(self) -> ServerVersion:
        return ServerVersion(1, KNOWS_GANGS, "v1.24.0")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def names(namespace: Namespace, kind: str) -> list[str]:
    found = namespace.api.get(namespace.path(kind)).raise_for_status().json()["items"]
    return [each["metadata"]["name"] for each in found]


def test_a_server_without_ranks_makes_nothing(namespace: Namespace) -> None:
    with namespace.client() as client:
        outcome = kubernetes_target(client, Target.ACK, "relaunch").launch(REQUEST)

    if namespace.plane.version.minor >= KNOWS_GANGS:
        assert isinstance(outcome, TaskPlaced)
        return
    assert isinstance(outcome, LaunchRefused)
    assert "needs Kubernetes 1.24" in outcome.reason
    assert (names(namespace, "jobs"), names(namespace, "services")) == ([], [])


def test_a_job_that_lost_its_ranks_on_the_way_is_deleted_with_its_pods(namespace: Namespace) -> None:
    if namespace.plane.version.minor >= KNOWS_GANGS:
        pytest.skip("the server keeps the ranks")
    with namespace.client() as client:
        outcome = kubernetes_target(SaysNew(client), Target.ACK, "relaunch").launch(REQUEST)

    assert isinstance(outcome, LaunchRefused)
    assert "without ranks, and it was deleted" in outcome.reason
    wait_for("end of Job and pods", lambda: not names(namespace, "jobs") and not names(namespace, "pods"))


def test_a_service_is_tried_and_made_and_goes_with_its_job(namespace: Namespace) -> None:
    with namespace.client() as client:
        made = client.create_job(make_job())
        job = {"metadata": {"name": "cuda-sample", "labels": {}}}
        client.create_headless_service(headless_service(job), is_dry=True)
        assert names(namespace, "services") == []

        client.create_headless_service(headless_service(job, made.metadata.uid))
        with pytest.raises(AlreadyExistsError):
            client.create_headless_service(headless_service(job), is_dry=True)
        found = client.get_headless_service(SERVICE)
        assert found is not None
        assert [each.uid for each in found.metadata.owner_references] == [made.metadata.uid]
        client.delete_job("cuda-sample")
        wait_for("end of the Service", lambda: client.get_headless_service(SERVICE) is None)
        client.delete_headless_service(SERVICE)
