"""Clusters of Kubernetes for the tests of TaskTarget (fakes.task_clusters.Cluster)."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from fakes.held_processes import HeldProcesses
from fakes.kubernetes import INSTANCE_TYPE, ZONE, FakeKubernetes
from relaunch.adapters.kubernetes.api.errors import ApiRefusedError, TooManyRequestsError
from relaunch.adapters.kubernetes.labels import TASK
from relaunch.adapters.kubernetes.target import kubernetes_target
from relaunch.core.definitions.targets import Target
from relaunch.core.launches.launch import LaunchRequest, Node
from relaunch.ports import TaskTarget, TransientError
from relaunch_local.ecs import Clock
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.role import Access, Role, read_role
from relaunch_local.kubernetes.server import Fault, KubernetesServer
from relaunch_local.kubernetes.state import Document
from relaunch_local.repository import REPOSITORY

if TYPE_CHECKING:
    from relaunch.adapters.kubernetes.api.client import KubernetesClient

NAMESPACE, STACK = "training", "relaunch"
_THROTTLED = "too many requests, please try again later"
_INVALID = 'Job.batch "a" is invalid: spec.template.spec.containers[0].resources: must be an integer'


class WaitingCluster:
    """What the clusters have in common: tasks wait for room, and a variable may be too long."""

    target: TaskTarget
    kind: Target

    def node_of(self, name: str) -> Node:
        """Return a node as the target tells it."""
        found = self.target.find_node(name)
        assert found is not None
        return found.node

    def without_room(self, request: LaunchRequest) -> LaunchRequest | None:
        del request
        return None

    def beyond_limit(self, request: LaunchRequest) -> tuple[LaunchRequest, str]:
        return replace(request, environment={"A": "x" * 131_072}), "variable A"


class ScriptedKubernetesCluster(WaitingCluster):
    """A cluster with KubernetesTarget and FakeKubernetes; a test controls it as any Cluster."""

    def __init__(self, kind: Target) -> None:
        self.kubernetes = FakeKubernetes()
        self.target: TaskTarget = kubernetes_target(self.kubernetes, kind, STACK)
        self.kind = kind

    def start(self, arn: str) -> Node:
        name = f"cn-beijing.10.0.0.{len(self.kubernetes.pods)}.{arn}"
        self.kubernetes.run(arn, name)
        return self.node_of(name)

    def finish(self, arn: str, exit_code: int) -> None:
        self.kubernetes.exit(arn, exit_code)

    def forget(self, arn: str) -> None:
        self.kubernetes.forget(arn)

    def throttle_launch(self) -> None:
        self.kubernetes.failures.append(TooManyRequestsError(_THROTTLED, 1.0))

    def refuse_launch(self) -> None:
        self.kubernetes.failures.append(ApiRefusedError(_INVALID, 422, "Invalid"))

    def lose_launch(self, *, takes_effect: bool) -> None:
        self.kubernetes.creates_uncertain = takes_effect
        self.kubernetes.failures.append(TransientError("creating a Job: no answer within 10 s"))


class ServedKubernetesCluster(WaitingCluster):
    """A cluster with KubernetesTarget and the local API server over HTTPS, on a virtual clock.

    Nodes come when a test starts a task, which is the scheduler's part then. Its containers save when they are stopped.
    """

    def __init__(self, cluster: KubernetesCluster, server: KubernetesServer, processes: HeldProcesses) -> None:
        self.cluster = cluster
        self.server = server
        self.processes = processes
        self.client: KubernetesClient
        self.target: TaskTarget

    def start(self, arn: str) -> Node:
        return self.node_of(self.run(arn))

    def run(self, arn: str) -> str:
        """Run a task on a new node and return its name."""
        with self.cluster.clock.lock:
            name = f"node-{len(self.cluster.state.all('nodes'))}"
            labels = {"node.kubernetes.io/instance-type": INSTANCE_TYPE, "topology.kubernetes.io/zone": ZONE}
            self.cluster.add_node(name, labels=labels)
            pod = self.pod(arn)
            pod["spec"]["nodeName"] = name
            self.cluster._kubelet.start(pod)
            self.cluster.clock.advance(5)
        return name

    def finish(self, arn: str, exit_code: int) -> None:
        with self.cluster.clock.lock:
            self.processes.of_task[self.pod(arn)["metadata"]["uid"]].exit(exit_code)
            self.cluster.clock.advance(5)

    def forget(self, arn: str) -> None:
        self.cluster.delete_job(NAMESPACE, arn)

    def throttle_launch(self) -> None:
        self.server.faults.append(Fault(ApiError(429, "TooManyRequests", _THROTTLED, retry_after_seconds=1)))

    def refuse_launch(self) -> None:
        self.server.faults.append(Fault(ApiError(422, "Invalid", _INVALID)))

    def lose_launch(self, *, takes_effect: bool) -> None:
        self.server.faults.append(Fault(after=takes_effect))

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        with self.cluster.clock.lock:
            self.cluster.clock.advance(seconds)

    def pod(self, arn: str) -> Document:
        """Return the pod of a task."""
        pods = self.cluster.state.all("pods", NAMESPACE)
        return next(each for each in pods if each["metadata"]["labels"][TASK] == arn)


def role_of_functions() -> Role:
    """Return the Role of the repository, and that nodes may be read, as a target is told of them if it may."""
    role = read_role(REPOSITORY / "infrastructure" / "kubernetes" / "role.yaml", NAMESPACE)
    return replace(role, grants=role.grants | {Access("list", "", "nodes"), Access("get", "", "nodes")})


@contextmanager
def served_cluster(kind: Target, *, minor: int = 36, role: Role | None = None) -> Iterator[ServedKubernetesCluster]:
    """Serve a cluster of a minor version of Kubernetes 1 to a user with a role, that of functions, and yield it."""
    # Imported here, because httpx is only in the layer of the functions that call Kubernetes.
    from relaunch.adapters.kubernetes.api.client import KubernetesClient  # noqa: PLC0415
    from relaunch.adapters.kubernetes.api.connection import Connection  # noqa: PLC0415
    from relaunch.adapters.kubernetes.api.kubeconfig import read_kubeconfig  # noqa: PLC0415

    processes = HeldProcesses(save=True)
    cluster = KubernetesCluster(Clock(), processes, minor=minor, is_ack=kind is Target.ACK)
    with closing(KubernetesServer(cluster)) as server:
        server.start()
        kubeconfig = server.kubeconfig(NAMESPACE, role=role or role_of_functions())
        with closing(KubernetesClient(Connection(lambda: read_kubeconfig(kubeconfig)))) as client:
            served = ServedKubernetesCluster(cluster, server, processes)
            served.client = client
            served.target, served.kind = kubernetes_target(client, kind, STACK), kind
            yield served
