"""Clusters on a virtual clock, whose containers follow scripts, and the client that Relaunch calls them with."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.connection import Connection
from relaunch.adapters.kubernetes.api.kubeconfig import read_kubeconfig
from relaunch_local.ecs.clock import Clock
from relaunch_local.ecs.processes.port import Script, ScriptedProcesses
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.server import KubernetesServer

NAMESPACE = "training"
Document = dict[str, Any]


def manifest(name: str = "cuda-sample", *, limits: Document | None = None, **spec: Any) -> Document:
    """The Job of ACK's page about shared GPUs, with other limits or members of its spec."""
    asked = {"aliyun.com/gpu-mem": 2, "aliyun.com/gpu-core.percentage": 30} if limits is None else limits
    container = {"name": "main", "image": "registry.example/train:1", "command": ["bash", "run.sh"]}
    pod = {"containers": [container | {"resources": {"limits": asked}}], "restartPolicy": "Never"}
    template = {"metadata": {"labels": {"app": "cuda-sample"}}, "spec": pod}
    metadata = {"name": name, "labels": {"app": "cuda-sample"}}
    job_spec = {"parallelism": 1, "backoffLimit": 0, "template": template} | spec
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job_spec}


class World:
    """A cluster with a node of four shared V100, and what is known of it."""

    def __init__(self, **options: Any) -> None:
        self.clock = Clock()
        self.script = Script()
        self.processes = ScriptedProcesses(self.clock, lambda _: self.script)
        self.cluster = KubernetesCluster(self.clock, self.processes, **options)
        self.add_node("gpu-1")

    def add_node(self, name: str, mode: str = "core_mem") -> None:
        self.cluster.add_node(name, gpus=4, gpu_gib=15, labels={"ack.node.gpu.schedule": mode})

    def create(self, name: str = "cuda-sample", **options: Any) -> None:
        self.cluster.create_job(NAMESPACE, manifest(name, **options))

    def job(self, name: str = "cuda-sample") -> Document:
        return self.cluster.state.get("jobs", NAMESPACE, name)

    def pods(self) -> list[Document]:
        return self.cluster.state.all("pods", NAMESPACE)

    @property
    def pod(self) -> Document:
        (pod,) = self.pods()
        return pod

    def conditions(self, name: str = "cuda-sample") -> list[tuple[str, str]]:
        found = self.job(name)["status"].get("conditions", ())
        return [(each["type"], each.get("reason", "")) for each in found]


@pytest.fixture
def make_world() -> Callable[..., World]:
    return World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def server(world: World) -> Iterator[KubernetesServer]:
    server = KubernetesServer(world.cluster)
    server.start()
    yield server
    server.close()


@pytest.fixture
def client(server: KubernetesServer) -> Iterator[KubernetesClient]:
    client = KubernetesClient(Connection(lambda: read_kubeconfig(server.kubeconfig(NAMESPACE))))
    yield client
    client.close()
