"""A cluster for the contract of TaskTarget (fakes.task_clusters.Cluster): KubernetesTarget on a real control plane."""

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from control_plane.namespaces import RBAC, Namespace, finish_of
from control_plane.waiting import wait_for
from fakes.kubernetes import INSTANCE_TYPE, ZONE
from fakes.kubernetes_clusters import STACK, WaitingCluster
from relaunch.adapters.kubernetes.target import KubernetesTarget, kubernetes_target
from relaunch.core.definitions.targets import Target
from relaunch.core.launches.launch import Node
from relaunch.ports import TaskTarget
from relaunch_local.control_plane.shared_gpus import Denial

Document = dict[str, Any]
_POLLS_PER_STOP = 100
NODE_READER = "relaunch-node-reader"


class LossyTransport(httpx.BaseTransport):
    """Sends requests, and loses the creations that it is told to: on their way, or their answers."""

    def __init__(self, transport: httpx.BaseTransport, losses: deque[bool]) -> None:
        self._transport = transport
        self._losses = losses

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method != "POST" or not self._losses:
            return self._transport.handle_request(request)
        if self._losses.popleft():
            self._transport.handle_request(request).read()
        raise httpx.ReadTimeout("the answer was lost", request=request)

    def close(self) -> None:
        self._transport.close()


class SettledTarget(KubernetesTarget):
    """A target whose stops have been carried out by the controllers when they return, as far as the container lets.

    A stop that the Job controller has missed is repeated after seconds; Relaunch does so after minutes.
    """

    cluster: "RealKubernetesCluster"

    def stop(self, task_id: str, reason: str) -> None:
        super().stop(task_id, reason)
        self.cluster.settle(task_id, lambda: KubernetesTarget.stop(self, task_id, reason))


class RealKubernetesCluster(WaitingCluster):
    """A namespace of a real control plane; a test controls it as any Cluster.

    Nodes come when a test starts a task, and have room for nothing: the test binds the pod itself, as a scheduler does.
    Containers save when they are stopped, until the test lets them end.
    """

    def __init__(self, namespace: Namespace, losses: deque[bool]) -> None:
        self.namespace = namespace
        self._losses = losses
        self._nodes: list[str] = []
        self.target: TaskTarget

    def start(self, arn: str) -> Node:
        return self.node_of(self.start_pod(arn))

    def start_pod(self, arn: str) -> str:
        """Let the pod of a Job run on a node of its own; return the node."""
        name = self.add_node()
        pod = self.namespace.pod(arn)["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Node", "name": name}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
        self.namespace.api.post(f"{self.namespace.path('pods', pod)}/binding", json=binding).raise_for_status()
        self.namespace.running(arn)
        return name

    def add_node(self) -> str:
        """Add a node; return its name."""
        name = f"{self.namespace.name}-node-{len(self._nodes)}"
        labels = {"node.kubernetes.io/instance-type": INSTANCE_TYPE, "topology.kubernetes.io/zone": ZONE}
        self._nodes.append(name)
        self.namespace.kubelets.add_node(name, {"pods": "0"}, labels)
        return name

    def finish(self, arn: str, exit_code: int) -> None:
        self.namespace.kubelets.exit(self.namespace.pod(arn)["metadata"]["uid"], exit_code)
        self.namespace.finished(arn)
        # Servers from 1.25 on keep a pod from being removed until the Job has counted it.
        wait_for("pod that was counted", lambda: all(not e["metadata"].get("finalizers") for e in self._pods(arn)))

    def forget(self, arn: str) -> None:
        self.namespace.delete_job(arn)
        wait_for("collected pods", lambda: not self._pods(arn))

    def settle(self, arn: str, repeat: Callable[[], None]) -> None:
        """Wait until the Job controller has seen to a stop."""
        if self.namespace.api.get(self.namespace.path("jobs", arn)).status_code == 404:
            return
        polls = itertools.count(1)

        def is_settled() -> bool:
            if next(polls) % _POLLS_PER_STOP == 0:
                repeat()
            return self._is_settled(arn)

        wait_for("Job that is stopped", is_settled)

    def throttle_launch(self) -> None:
        self._deny(Denial(429, "TooManyRequests", "too many requests, please try again later"))

    def refuse_launch(self) -> None:
        self._deny(Denial(422, "Invalid", "spec.template.spec.containers[0].resources: must be an integer"))

    def lose_launch(self, *, takes_effect: bool) -> None:
        self._losses.append(takes_effect)

    def close(self) -> None:
        """Remove the nodes."""
        for name in self._nodes:
            self.namespace.kubelets.remove_node(name)

    def _deny(self, denial: Denial) -> None:
        self.namespace.plane.admission.denials.append(denial)

    def _pods(self, arn: str) -> list[Document]:
        return self.namespace.pods(arn)

    def _is_settled(self, arn: str) -> bool:
        job, pods = self.namespace.get("jobs", arn), self._pods(arn)
        conditions = {each["type"] for each in job["status"].get("conditions") or () if each["status"] == "True"}
        if finish_of(job) is None and "FailureTarget" not in conditions:
            return False
        return all(e["metadata"].get("deletionTimestamp") or e["status"]["phase"] in _OVER for e in pods)


_OVER = {"Succeeded", "Failed"}


@contextmanager
def real_cluster(namespace: Namespace, kind: Target) -> Iterator[RealKubernetesCluster]:
    """Yield a cluster whose functions may read nodes beside what the Role allows."""
    losses: deque[bool] = deque()
    cluster = RealKubernetesCluster(namespace, losses)
    _let_read_nodes(namespace)
    made = namespace.client(lambda context: LossyTransport(httpx.HTTPTransport(verify=context), losses))
    with made as client:
        target = kubernetes_target(client, kind, STACK)
        settled = SettledTarget(client, STACK, target._build_manifest, target._warnings)
        settled.cluster = cluster
        cluster.target, cluster.kind = settled, kind
        try:
            yield cluster
        finally:
            cluster.close()


def _let_read_nodes(namespace: Namespace) -> None:
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}]
    role = {"metadata": {"name": NODE_READER}, "rules": rules}
    made = namespace.api.post(f"/{RBAC}/clusterroles", json=role)
    assert made.status_code in {201, 409}, made.text
    subjects = [{"kind": "Group", "name": f"system:serviceaccounts:{namespace.name}"}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NODE_READER}
    binding = {"metadata": {"name": f"nodes-{namespace.name}"}, "roleRef": reference, "subjects": subjects}
    namespace.api.post(f"/{RBAC}/clusterrolebindings", json=binding).raise_for_status()
