"""The Role of the repository, as the local API server holds users to it."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.builders import make_launch_request
from fakes.kubernetes_clusters import STACK, served_cluster
from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.connection import Connection
from relaunch.adapters.kubernetes.api.errors import ForbiddenError
from relaunch.adapters.kubernetes.api.kubeconfig import read_kubeconfig
from relaunch.adapters.kubernetes.api.models import ServerVersion
from relaunch.adapters.kubernetes.gang_launch import GangCluster
from relaunch.adapters.kubernetes.target import Cluster, kubernetes_target
from relaunch.core.definitions.accelerator import GpuRequirement, PurchaseOption
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.launches.launch import LaunchRefused, LaunchUncertain, TaskPlaced
from relaunch.core.offerings.offering import OfferingKey
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.requests import Request
from relaunch_local.kubernetes.role import Access, Role, read_cluster_role, read_role
from relaunch_local.repository import REPOSITORY
from tests.unit.local.kubernetes.conftest import NAMESPACE, manifest

FILE = REPOSITORY / "infrastructure" / "kubernetes" / "role.yaml"
ROLE = read_role(FILE)
PREEMPTIBLE = make_launch_request(
    workload=KubernetesWorkload("image:v1", vcpus=4.0, memory_mib=16_384, gpu_model="T4", queue="gpus"),
    gpu=GpuRequirement(),
    offering=OfferingKey("acs", None, PurchaseOption.SPOT),
)


class Recorder:
    """A client that notes which of its methods are called."""

    def __init__(self, client: KubernetesClient) -> None:
        self.called: set[str] = set()
        self._client = client

    def __getattr__(self, name: str) -> Any:
        self.called.add(name)
        return getattr(self._client, name)


@pytest.fixture
def limited(server) -> Iterator[KubernetesClient]:
    kubeconfig = server.kubeconfig(NAMESPACE, role=ROLE)
    with closing(KubernetesClient(Connection(lambda: read_kubeconfig(kubeconfig)))) as client:
        yield client


def test_the_functions_use_every_grant_and_need_no_other():
    with served_cluster(Target.ACS, role=ROLE) as cluster:
        recorder = Recorder(cluster.client)
        target = kubernetes_target(recorder, Target.ACS, STACK)
        placed = target.launch(PREEMPTIBLE)
        assert isinstance(placed, TaskPlaced)
        assert target.launch(PREEMPTIBLE) == placed
        assert target.describe([placed.task_id])[placed.task_id]
        cluster.cluster.patch_job("training", placed.task_id, {"spec": {"suspend": False}})
        cluster.run(placed.task_id)

        assert target.find_tasks_of(PREEMPTIBLE.attempt)
        assert target.describe([placed.task_id])[placed.task_id]
        assert list(target.list_tasks())
        assert list(target.list_nodes()) == []
        assert kubernetes_target(recorder, Target.ACK, STACK).describe([placed.task_id])[placed.task_id]
        target.stop(placed.task_id, "cancelled")
        _launch_gang(cluster, recorder)

    methods = {name for each in (Cluster, GangCluster) for name in vars(each) if not name.startswith("_")}
    assert recorder.called == methods, "a call of the functions is not tried here"
    # Whoever has signed in may read the version.
    assert {each for each in cluster.server.granted if each.resource != "/version"} == ROLE.grants
    assert cluster.server.refused == {Access("list", "", "nodes"), Access("get", "", "nodes")}


def _launch_gang(cluster, recorder):
    """Launch a job of several nodes twice, beside the Service of an earlier Job, and one that gets no ranks."""
    request = replace(PREEMPTIBLE, nodes=2, attempt=AttemptKey("several", 1))
    target = kubernetes_target(recorder, Target.ACS, STACK)
    assert isinstance(target.launch(request), TaskPlaced)
    service = cluster.cluster.state.all("services", "training")[0]
    service["metadata"]["ownerReferences"][0]["uid"] = "earlier"
    assert isinstance(target.launch(request), LaunchUncertain)
    cluster.cluster.minor = 20
    recorder.version = lambda: ServerVersion(1, 24, "v1.24.0")
    assert isinstance(target.launch(replace(request, attempt=AttemptKey("ranks", 1))), LaunchRefused)


def test_with_the_cluster_role_a_taint_of_the_node_warns_and_nothing_more_is_allowed():
    nodes = read_cluster_role(FILE.parent / "nodes.yaml")
    role = Role(ROLE.user, ROLE.grants | nodes.grants)
    with served_cluster(Target.KUBERNETES, role=role) as cluster:
        placed = cluster.target.launch(replace(PREEMPTIBLE, workload=KubernetesWorkload("image:v1")))
        assert isinstance(placed, TaskPlaced)
        node = cluster.run(placed.task_id)
        assert cluster.target.describe([placed.task_id])[placed.task_id].warned_at is None
        cluster.cluster.taint_node(node, "karpenter.sh/disrupted")
        cluster.cluster.delete_node(node)

        warned = cluster.target.describe([placed.task_id])[placed.task_id]

    assert warned.warning == "warning of Karpenter that its node is taken away (taint karpenter.sh/disrupted)"
    assert nodes.grants == {Access("get", "", "nodes")}
    assert nodes.user == ROLE.user
    assert cluster.server.refused == set()


def test_a_ram_role_with_another_name_than_the_bindings_may_do_nothing_but_hear_its_name(server):
    role = Role(f"{ROLE.user}-1676970192", frozenset())
    kubeconfig = server.kubeconfig(NAMESPACE, role=role)
    with closing(KubernetesClient(Connection(lambda: read_kubeconfig(kubeconfig)))) as client:
        with pytest.raises(ForbiddenError, match=f'User "{role.user}" cannot create resource "jobs"'):
            client.create_job(manifest())
        assert client.review_self()["status"]["userInfo"]["username"] == role.user


@pytest.mark.parametrize(
    ("method", "body", "code"), [("GET", b"{}", 405), ("POST", b'{"kind": "Job", "apiVersion": "batch/v1"}', 400)]
)
def test_a_review_of_oneself_is_created_and_of_its_kind(server, method, body, code):
    with pytest.raises(ApiError) as refused:
        server.serve(Request(method, "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, body))
    assert refused.value.code == code


def test_nothing_else_is_allowed(limited, server, world):
    limited.create_job(manifest())
    pod = world.pod["metadata"]["name"]
    forbidden = [
        (lambda: limited.get_object("/api/v1/namespaces/training/pods/a"), 'pods "a" is forbidden: User '
         '"300000000000000000" cannot get resource "pods" in API group "" in the namespace "training"'),
        (lambda: list(limited.list_objects("/api/v1/namespaces/training/services")), 'cannot list resource "services"'),
        (lambda: list(limited.read_log(pod, "main")), 'cannot get resource "pods/log" in API group ""'),
        (lambda: list(limited.list_nodes()), 'nodes is forbidden: User "300000000000000000" cannot list resource '
         '"nodes" in API group "" at the cluster scope'),
        (lambda: limited.get_config_map("kube-system", "acs-profile"), 'in the namespace "kube-system"'),
    ]  # fmt: skip

    for call, said in forbidden:
        with pytest.raises(ForbiddenError) as raised:
            call()
        assert said in str(raised.value)
    assert limited.version().minor == 36
    assert limited.get_job("cuda-sample") is not None


def test_another_namespace_is_another_matter(server):
    kubeconfig = server.kubeconfig("default", role=ROLE)
    with (
        closing(KubernetesClient(Connection(lambda: read_kubeconfig(kubeconfig)))) as client,
        pytest.raises(ForbiddenError, match='in the namespace "default"'),
    ):
        client.get_job("cuda-sample")


def test_the_role_is_of_four_resources_of_one_namespace():
    assert {access.namespace for access in ROLE.grants} == {"training"}
    assert {(access.group, access.resource) for access in ROLE.grants} == {
        ("batch", "jobs"),
        ("", "pods"),
        ("", "events"),
        ("", "services"),
    }
    assert read_role(FILE, "other").grants == {
        Access(each.verb, each.group, each.resource, "other") for each in ROLE.grants
    }
    assert ROLE.refusal(Access("list", "", "pods", "training")) == ""
    assert Role("a", frozenset()).refusal(Access("get", "", "/version")) == ""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kind: RoleBinding", "kind: ClusterRoleBinding", "is no Role with its RoleBinding: it has Role, ClusterRole"),
        ("  kind: Role\n", "  kind: ClusterRole\n", "binds another Role"),
        ("verbs: [create,", 'verbs: ["*",', "a rule that is not made of groups, resources and verbs by name"),
        ("resources: [jobs]", "resources: [jobs]\n    resourceNames: [a]", "a rule that is not made of"),
    ],
)
def test_a_manifest_that_grants_in_another_way_is_refused(tmp_path: Path, old, new, message):
    file = tmp_path / "role.yaml"
    file.write_text(FILE.read_text().replace(old, new, 1))

    with pytest.raises(ValueError, match=message):
        read_role(file)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kind: ClusterRoleBinding", "kind: RoleBinding", "no ClusterRole with its ClusterRoleBinding: it has Cluster"),
        ("  kind: ClusterRole\n", "  kind: Role\n", "binds another role"),
        ("verbs: [get]", 'verbs: ["*"]', "a rule that is not made of groups, resources and verbs by name"),
    ],
)
def test_a_cluster_role_that_grants_in_another_way_is_refused(tmp_path: Path, old, new, message):
    file = tmp_path / "nodes.yaml"
    file.write_text((FILE.parent / "nodes.yaml").read_text().replace(old, new, 1))

    with pytest.raises(ValueError, match=message):
        read_cluster_role(file)
