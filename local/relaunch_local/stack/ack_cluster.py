"""The ACK cluster of the local world: an API server on loopback, nodes with shared GPUs, pods as local processes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from relaunch_local.ecs import LogTarget, WallClock
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.role import read_role
from relaunch_local.kubernetes.server import KubernetesServer
from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.containers import Containers
from relaunch_local.stack.emulator import Emulator

NAMESPACE = "training"
ROLE = REPOSITORY / "infrastructure" / "kubernetes" / "role.yaml"
NODES = ("cn-beijing.192.168.0.11", "cn-beijing.192.168.0.12")
# Of each node, as in the document on shared GPUs of ACK.
GPUS = 4
GPU_GIB = 15

_SECRET = "relaunch/ack-kubeconfig"  # noqa: S105 - the name of one
_NODE_LABELS = {"ack.node.gpu.schedule": "core_mem", "ack.node.gpu.placement": "binpack"}


@dataclass(frozen=True)
class AckCluster:
    """A cluster that is served, whose pods can start once `connect` has been called."""

    cluster: KubernetesCluster
    server: KubernetesServer
    containers: Containers

    def connect(self, emulator: Emulator, credentials: dict[str, str]) -> str:
        """Give pods the emulator's endpoint and credentials of their own; return the secret with the kubeconfig.

        Its user has the Role of the repository and nothing else.
        """
        self.containers.connect(emulator, credentials, _PodLogs(self.cluster))
        secrets = emulator.client("secretsmanager")
        created = secrets.create_secret(
            Name=_SECRET, SecretString=self.server.kubeconfig(NAMESPACE, role=read_role(ROLE))
        )
        return str(created["ARN"])


class _PodLogs:
    """Implements LogSink: what containers write is kept with their pods."""

    def __init__(self, cluster: KubernetesCluster) -> None:
        self._cluster = cluster

    def open(self, target: LogTarget | None) -> None:
        """Do nothing: a kubelet keeps the log of every container."""

    def write(self, target: LogTarget | None, timestamp: int, text: str) -> None:
        self._cluster.write_log(target, timestamp, text)


@contextmanager
def running_ack_cluster(speed: float) -> Iterator[AckCluster]:
    """Run a cluster on a wall clock and a free port."""
    clock = WallClock(speed=speed)
    containers = Containers()
    cluster = KubernetesCluster(clock, containers, is_ack=True)
    server = KubernetesServer(cluster)
    clock.start()
    cluster.add_namespace(NAMESPACE)
    for name in NODES:
        cluster.add_node(name, gpus=GPUS, gpu_gib=GPU_GIB, labels=_NODE_LABELS)
    server.start()
    try:
        yield AckCluster(cluster, server, containers)
    finally:
        server.close()
        containers.close()
        clock.stop()
