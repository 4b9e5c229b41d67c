"""An ACK cluster with all that shared GPUs need, as the local API server serves it; tests break it."""

import base64
import gzip
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import yaml

from fakes.repository import REPOSITORY
from relaunch_local.ecs.clock import Clock
from relaunch_local.ecs.processes.port import Script, ScriptedProcesses
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.server import KubernetesServer

SYSTEM, NAMESPACE = "kube-system", "training"
RAM_ID = "300000000000000000"
"""Whom the files name, and who signs in."""
CORE_MEM = {"ack.node.gpu.schedule": "core_mem", "ack.node.gpu.placement": "binpack"}


def release(version: str, revision: int = 1) -> dict[str, Any]:
    """Return the Secret in which Helm 3 stores a release."""
    content = json.dumps({"chart": {"metadata": {"name": "ack-ai-installer", "version": version}}}).encode()
    packed = base64.b64encode(base64.b64encode(gzip.compress(content))).decode()
    labels = {"owner": "helm", "name": "ack-ai-installer", "status": "deployed", "version": str(revision)}
    metadata = {"name": f"sh.helm.release.v1.ack-ai-installer.v{revision}", "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"release": packed}}


def daemon_set(image: str) -> dict[str, Any]:
    """Return a DaemonSet that runs an image."""
    spec = {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "cgpu-installer"}, "spec": spec}


class AckCluster:
    """A served cluster and its objects."""

    def __init__(self, server: KubernetesServer) -> None:
        self.server = server
        self.cluster = server.cluster
        server.user = RAM_ID
        self.add("namespaces", "", {"metadata": {"name": NAMESPACE}})
        self.add("secrets", SYSTEM, release("1.12.1"))
        self.add("daemonsets", SYSTEM, daemon_set("registry.example/acs/cgpu-installer:v1.5.10"))
        for file, namespace in (("role.yaml", NAMESPACE), ("nodes.yaml", "")):
            for document in yaml.safe_load_all((REPOSITORY / "infrastructure" / "kubernetes" / file).read_text()):
                self.add(f"{document['kind'].lower()}s", namespace, document)

    def add(self, resource: str, namespace: str, document: dict[str, Any]) -> None:
        """Add an object."""
        self.cluster.state.add(resource, namespace, document)

    def remove(self, resource: str, namespace: str, name: str) -> None:
        """Remove an object."""
        self.cluster.state.remove(resource, self.cluster.state.get(resource, namespace, name))

    def add_node(self, name: str, labels: Mapping[str, str] = CORE_MEM) -> dict[str, Any]:
        """Add a node with four GPUs of 15 GiB."""
        return self.cluster.add_node(name, gpus=4, gpu_gib=15, labels=labels)

    def add_pod(self, name: str, node: str, limits: Mapping[str, str], **annotations: str) -> None:
        """Add a pod that runs on a node."""
        container = {"name": "main", "image": "i", "resources": {"limits": dict(limits)}}
        metadata = {"name": name, "annotations": annotations}
        spec = {"nodeName": node, "containers": [container]}
        self.add("pods", "others", {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})


@contextmanager
def serving_ack_cluster() -> Iterator[AckCluster]:
    """Serve a whole cluster without nodes."""
    clock = Clock()
    server = KubernetesServer(KubernetesCluster(clock, ScriptedProcesses(clock, lambda _: Script()), is_ack=True))
    server.start()
    try:
        yield AckCluster(server)
    finally:
        server.close()
