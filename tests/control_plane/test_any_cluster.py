"""Jobs of target kubernetes: real scheduler, taints of real nodes, and what RBAC lets the functions see of them."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import yaml

from control_plane.namespaces import ACCOUNT, RBAC, Namespace
from control_plane.waiting import wait_for
from fakes.builders import make_launch_request
from fakes.kubernetes_clusters import STACK
from fakes.repository import REPOSITORY
from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.target import KubernetesTarget, kubernetes_target
from relaunch.core.definitions.accelerator import GpuRequirement, PurchaseOption
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.kubernetes.node_labels import NodeLabel, NodeLabels
from relaunch.core.launches.launch import TaskPhase, TaskPlaced
from relaunch.core.offerings.offering import OfferingKey

pytestmark = pytest.mark.kubernetes

MIG = "nvidia.com/mig-1g.5gb"
LABELS = NodeLabels("nvidia.com/gpu.product", NodeLabel("cloud.google.com/gke-spot", "true"))
NODE_LABELS = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "cloud.google.com/gke-spot": "true"}
SPOT = make_launch_request(
    workload=KubernetesWorkload("trainer", gpu_model="NVIDIA-A100-SXM4-40GB", gpu_resource=MIG),
    gpu=GpuRequirement(),
    offering=OfferingKey("kubernetes", None, PurchaseOption.SPOT),
)
ON_DEMAND = replace(SPOT, offering=replace(SPOT.offering, purchase=PurchaseOption.ON_DEMAND), placement_number=2)
WARNING = "warning of Karpenter that its node is taken away (taint karpenter.sh/disrupted)"


@pytest.fixture
def node(namespace: Namespace) -> Iterator[str]:
    """Yield a node with partitions of a GPU on spot, which has the taints that such nodes have."""
    name = f"{namespace.name}-spot"
    namespace.kubelets.add_node(name, {MIG: "7", "pods": "10"}, NODE_LABELS)
    taint(namespace, name, "nvidia.com/gpu", "cloud.google.com/gke-spot")
    yield name
    namespace.kubelets.remove_node(name)
    set_finalizers(namespace, name)


@pytest.fixture
def client(namespace: Namespace) -> Iterator[KubernetesClient]:
    with namespace.client() as client:
        yield client


@pytest.fixture
def target(client: KubernetesClient) -> KubernetesTarget:
    return kubernetes_target(client, Target.KUBERNETES, STACK, LABELS)


def taint(namespace: Namespace, node: str, *keys: str) -> None:
    path = f"/api/v1/nodes/{node}"
    known = namespace.api.get(path).raise_for_status().json()["spec"].get("taints") or []
    taints = [*known, *({"key": key, "value": "true", "effect": "NoSchedule"} for key in keys)]
    headers = {"Content-Type": "application/merge-patch+json"}
    namespace.api.patch(path, json={"spec": {"taints": taints}}, headers=headers).raise_for_status()


def set_finalizers(namespace: Namespace, node: str, *names: str) -> None:
    headers = {"Content-Type": "application/merge-patch+json"}
    patch = {"metadata": {"finalizers": list(names)}}
    answer = namespace.api.patch(f"/api/v1/nodes/{node}", json=patch, headers=headers)
    # Without its last one a node that was deleted is gone.
    assert answer.status_code in {200, 404}, answer.text


def let_read_nodes(namespace: Namespace, client: KubernetesClient, node: str) -> None:
    """Bind the ClusterRole of infrastructure/kubernetes/nodes.yaml; what is changed of it are the names."""
    file = REPOSITORY / "infrastructure" / "kubernetes" / "nodes.yaml"
    role, binding = yaml.safe_load_all(file.read_text(encoding="utf-8"))
    made = namespace.api.post(f"/{RBAC}/clusterroles", json=role)
    assert made.status_code in {201, 409}, made.text
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace.name}
    binding |= {"metadata": {"name": f"relaunch-{namespace.name}"}, "subjects": [subject]}
    namespace.api.post(f"/{RBAC}/clusterrolebindings", json=binding).raise_for_status()

    def may_read() -> bool:
        try:
            return client.get_node(node) is not None
        except Exception:  # noqa: BLE001 - a binding counts some moments after it was made
            return False

    wait_for("binding", may_read)


def launch(target: KubernetesTarget) -> str:
    placed = target.launch(SPOT)
    assert isinstance(placed, TaskPlaced)
    return placed.task_id


def test_a_partition_on_spot_is_scheduled_on_its_tainted_node_and_one_on_demand_tolerates_no_spot(
    namespace: Namespace, node: str, target: KubernetesTarget
) -> None:
    task = launch(target)
    on_demand = target.launch(ON_DEMAND)
    assert isinstance(on_demand, TaskPlaced)

    pod = namespace.running(task)
    assert pod["spec"]["nodeName"] == node
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {MIG: "1"}

    def words() -> str:
        seen = target.describe([on_demand.task_id])[on_demand.task_id]
        return seen.waiting_for if seen is not None else ""

    assert "taint" in wait_for("words of the scheduler", words)


def test_without_the_right_to_read_nodes_a_job_runs_and_is_not_warned(
    namespace: Namespace, node: str, target: KubernetesTarget
) -> None:
    task = launch(target)
    namespace.running(task)
    taint(namespace, node, "aws-node-termination-handler/spot-itn")

    seen = target.describe([task])[task]

    assert seen is not None
    assert (seen.phase, seen.warned_at) == (TaskPhase.RUNNING, None)


def test_a_node_that_karpenter_deletes_warns_a_job_that_then_saves_and_stops(
    namespace: Namespace, node: str, target: KubernetesTarget, client: KubernetesClient
) -> None:
    let_read_nodes(namespace, client, node)
    task = launch(target)
    namespace.running(task)
    set_finalizers(namespace, node, "karpenter.sh/termination")
    taint(namespace, node, "karpenter.sh/disrupted")
    before = target.describe([task])[task]
    namespace.api.delete(f"/api/v1/nodes/{node}").raise_for_status()

    warned = target.describe([task])[task]
    target.stop(task, "it is warned")

    assert before is not None
    assert warned is not None
    assert (before.warning, warned.warning) == ("", WARNING)
    assert warned.warned_at is not None
    wait_for(
        "pod that is deleted", lambda: all(each["metadata"].get("deletionTimestamp") for each in namespace.pods(task))
    )
    stopping = target.describe([task])[task]
    assert stopping is not None
    assert stopping.phase is TaskPhase.STOPPING
    # It ends already, and is warned of nothing more.
    assert stopping.warning == ""
