"""What a job waits for that its definition names and the cluster lacks, as Relaunch sees it."""

from typing import Any

import pytest

from fakes.builders import make_launch_request
from fakes.kubernetes_clusters import NAMESPACE, ServedKubernetesCluster, served_cluster
from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload, PodVolume, SecretKey
from relaunch.core.definitions.targets import Target
from relaunch.core.launches.launch import LaunchRefused, TaskPhase, TaskPlaced

NAME = "resnet-1f2e3d4c-1-1"


def waiting_for(served: ServedKubernetesCluster, **fields: Any) -> str:
    """Launch a job on a cluster with a tainted node of four GPUs, and return what it waits for."""
    node = served.cluster.add_node("gpu-1", gpus=4)
    node["spec"]["taints"] = [{"key": "gpu", "value": "a10", "effect": "NoSchedule"}]
    request = make_launch_request(workload=KubernetesWorkload("image:v1", **fields), gpu=GpuRequirement())
    assert served.target.launch(request) == TaskPlaced(NAME)
    served.advance(60)
    task = served.target.describe([NAME])[NAME]
    assert task is not None
    assert task.phase in {TaskPhase.PENDING, TaskPhase.STARTING}
    return task.waiting_for


def test_a_claim_that_is_not_there() -> None:
    with served_cluster(Target.ACK) as served:
        said = waiting_for(served, volumes=(PodVolume("data", "/data"),))

    assert said == 'Unschedulable: 0/1 nodes are available: persistentvolumeclaim "data" not found.'


def test_a_taint_that_is_not_tolerated() -> None:
    with served_cluster(Target.ACK) as served:
        said = waiting_for(served)

    assert said == "Unschedulable: 0/1 nodes are available: 1 node(s) had untolerated taint {gpu: a10}."


def test_a_secret_that_is_not_there_until_it_is() -> None:
    with served_cluster(Target.ACK) as served:
        request = make_launch_request(
            workload=KubernetesWorkload("image:v1", secrets={"A": SecretKey("wandb", "key")}), gpu=GpuRequirement()
        )
        served.target.launch(request)
        served.run(NAME)
        before = served.target.describe([NAME])[NAME]
        served.cluster.add_secret(NAMESPACE, "wandb", key="value")
        served.advance(15)
        after = served.target.describe([NAME])[NAME]

    assert before is not None
    assert after is not None
    assert before.waiting_for == 'CreateContainerConfigError: secret "wandb" not found'
    assert (before.phase, after.phase) == (TaskPhase.STARTING, TaskPhase.RUNNING)


@pytest.mark.parametrize("minor", [36, 20])
def test_a_field_that_no_server_knows_is_refused_where_servers_look(minor: int) -> None:
    pod = {"spec": {"volumes": [{"name": "x", "emptyDir": {"sizelimit": "1Gi"}}]}}
    with served_cluster(Target.ACK, minor=minor) as served:
        request = make_launch_request(workload=KubernetesWorkload("image:v1", pod=pod), gpu=GpuRequirement())
        outcome = served.target.launch(request)

    if minor == 20:
        assert outcome == TaskPlaced(NAME)
    else:
        assert isinstance(outcome, LaunchRefused)
        assert 'unknown field "spec.template.spec.volumes[0].emptyDir.sizelimit"' in outcome.reason
