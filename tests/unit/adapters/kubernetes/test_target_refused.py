"""A cluster that refuses its user for a while, served on loopback: the launch may heal, and then it is taken."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from fakes.builders import make_launch_request
from fakes.kubernetes_clusters import ServedKubernetesCluster, served_cluster
from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.launches.launch import LaunchRefused, TaskPlaced
from relaunch.core.lifecycle.refusal_waits import what_to_grant
from relaunch.ports import NotGrantedError

REQUEST = make_launch_request(workload=KubernetesWorkload("image:v1"), gpu=GpuRequirement())
Refusing = Callable[[ServedKubernetesCluster], Iterator[None]]


def expired_token(cluster: ServedKubernetesCluster) -> Iterator[None]:
    """Accept no token."""
    tokens, cluster.server.tokens = cluster.server.tokens, set()
    yield
    cluster.server.tokens = tokens


def missing_role(cluster: ServedKubernetesCluster) -> Iterator[None]:
    """Let nobody create or list Jobs."""
    denied = {("create", "jobs"), ("list", "jobs")}
    cluster.server.forbidden |= denied
    yield
    cluster.server.forbidden -= denied


@pytest.mark.parametrize(
    ("refusing", "said", "advice"),
    [(expired_token, "HTTP 401", "--duration"), (missing_role, "HTTP 403", "role.yaml")],
)
@pytest.mark.parametrize("minor", [20, 36])
def test_a_launch_that_is_refused_for_what_may_heal_is_taken_afterwards(
    refusing: Refusing, said: str, advice: str, minor: int
) -> None:
    with served_cluster(Target.ACK, minor=minor) as cluster:
        with contextmanager(refusing)(cluster):
            refused = cluster.target.launch(REQUEST)
            with pytest.raises(NotGrantedError, match=said):
                cluster.target.describe(["resnet-1f2e3d4c-1-1"])
        placed = cluster.target.launch(REQUEST)

    assert isinstance(refused, LaunchRefused)
    assert refused.may_heal
    assert said in refused.reason
    assert advice in what_to_grant(refused.reason)[0]
    assert isinstance(placed, TaskPlaced)
