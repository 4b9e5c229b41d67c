"""The cluster of Alibaba Cloud of the local world: an API server on loopback, and pods as local processes.

One of ACK has two nodes with shared GPUs, one of ACS a virtual node, on which pods of any model find room, and the
ConfigMap with its settings.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from relaunch.core.definitions.targets import Target
from relaunch.core.kubernetes import acs_profile
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

VIRTUAL_NODE = "virtual-kubelet-cn-hangzhou-i"
_VIRTUAL_GPUS = 100
# As it is in a new cluster ("Configure an acs-profile to automatically inject pod configurations").
_PROFILE = {"enablePrivateZone": "false", "selectors": "", "vpcId": "vpc-bp1aevy8sofi8mh1q"}
_SECRET = "relaunch/kubeconfig"  # noqa: S105 - the name of one
_NODE_LABELS = {"ack.node.gpu.schedule": "core_mem", "ack.node.gpu.placement": "binpack"}


@dataclass(frozen=True)
class AlibabaCluster:
    """A cluster of a target that is served, whose pods can start once `connect` has been called."""

    target: Target
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

    def write_kubeconfig(self, file: Path) -> Path:
        """Write a kubeconfig of a user who may do everything; return the file."""
        file.write_text(self.server.kubeconfig(NAMESPACE), encoding="utf-8")
        return file


class _PodLogs:
    """Implements LogSink: what containers write is kept with their pods."""

    def __init__(self, cluster: KubernetesCluster) -> None:
        self._cluster = cluster

    def open(self, target: LogTarget | None) -> None:
        """Do nothing: a kubelet keeps the log of every container."""

    def write(self, target: LogTarget | None, timestamp: int, text: str) -> None:
        self._cluster.write_log(target, timestamp, text)


@contextmanager
def running_cluster(target: Target, speed: float) -> Iterator[AlibabaCluster]:
    """Run a cluster of ACK or ACS on a wall clock and a free port."""
    clock = WallClock(speed=speed)
    containers = Containers()
    cluster = KubernetesCluster(clock, containers, is_ack=target is Target.ACK)
    server = KubernetesServer(cluster)
    clock.start()
    cluster.add_namespace(NAMESPACE)
    if target is Target.ACK:
        for name in NODES:
            cluster.add_node(name, gpus=GPUS, gpu_gib=GPU_GIB, labels=_NODE_LABELS)
    else:
        cluster.add_node(VIRTUAL_NODE, gpus=_VIRTUAL_GPUS, labels={"type": "virtual-kubelet"})
        cluster.add_namespace(acs_profile.NAMESPACE)
        profile = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": acs_profile.NAME}, "data": _PROFILE}
        cluster.state.add("configmaps", acs_profile.NAMESPACE, profile)
    server.start()
    try:
        yield AlibabaCluster(target, cluster, server, containers)
    finally:
        server.close()
        containers.close()
        clock.stop()
