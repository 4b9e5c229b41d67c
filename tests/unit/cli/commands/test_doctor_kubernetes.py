"""doctor of any cluster, on the local API server: silent on a whole one, each fault found with what to do."""

# ruff: noqa: E501 - one case a line

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.cli_session import Outcome, flat, invoke
from relaunch_local.ecs.clock import Clock
from relaunch_local.ecs.processes.port import Script, ScriptedProcesses
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.server import KubernetesServer
from relaunch_local.repository import REPOSITORY

LABELS = {"nvidia.com/gpu.product": "NVIDIA-A10G", "eks.amazonaws.com/capacityType": "SPOT"}
MANIFESTS = REPOSITORY / "infrastructure" / "kubernetes"


class Cluster:
    """A cluster with everything that jobs need, which a test takes parts of away."""

    def __init__(self, server: KubernetesServer) -> None:
        self.server = server
        state = self.state = server.cluster.state
        server.cluster.add_node("ip-10-0-0-1", gpus=4, labels=LABELS, extended={"nvidia.com/mig-1g.5gb": "7"})
        state.add("namespaces", "", {"kind": "Namespace", "metadata": {"name": "training"}})
        for file, kinds, namespace in (
            ("role.yaml", ("roles", "rolebindings"), "training"),
            ("nodes.yaml", ("clusterroles", "clusterrolebindings"), ""),
        ):
            for resource, manifest in zip(kinds, yaml.safe_load_all((MANIFESTS / file).read_text()), strict=True):
                state.add(resource, namespace, manifest)
        # A RAM role, which the file names, may have another name.
        state.get("rolebindings", "training", "relaunch")["subjects"] = [{"kind": "Group", "name": "relaunch"}]

    def remove(self, resource: str, namespace: str, name: str) -> None:
        self.state.remove(resource, self.state.get(resource, namespace, name))

    def restrict(self) -> None:
        self.state.get("clusterroles", "", "relaunch-nodes")["rules"][0]["verbs"] = ["list"]

    def outdate(self) -> None:
        """Let the Role be that of before there were jobs of several nodes."""
        role = self.state.get("roles", "training", "relaunch")
        role["rules"] = [
            each for each in role["rules"] if each["verbs"] != ["delete"] and each["resources"] != ["services"]
        ]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    clock = Clock()
    server = KubernetesServer(KubernetesCluster(clock, ScriptedProcesses(clock, lambda _: Script())))
    server.start()
    yield Cluster(server)
    server.close()


@pytest.fixture
def doctor(cluster: Cluster, tmp_path: Path) -> Callable[..., Outcome]:
    file = tmp_path / "kubeconfig"
    file.write_text(cluster.server.kubeconfig("training"))
    return partial(invoke, "doctor", "--target", "kubernetes", "--kubeconfig", str(file))


def checks_of(result: Outcome) -> dict[str, Any]:
    return {each["name"]: each for each in result.document["checks"]}


def test_a_whole_cluster_has_no_problem(doctor):
    shown = doctor(columns=120)
    checks = checks_of(doctor("--json"))

    assert shown.exit_code == 0
    assert {each["verdict"] for each in checks.values()} == {"ok"}
    assert list(checks) == [
        "cluster version",
        "GPUs",
        "GPU models",
        "spot",
        "node warnings",
        "namespace",
        "role",
        "jobs with nodes",
    ]
    assert checks["GPUs"]["text"] == "4 nvidia.com/gpu, 7 nvidia.com/mig-1g.5gb on 1 node"
    assert checks["node warnings"]["text"] == "relaunch-nodes is given to 300000000000000000"
    assert flat(shown.stdout).endswith("no problem in 8 checks")


@pytest.mark.parametrize(
    ("damage", "name", "expected"),
    [
        (lambda each: each.remove("clusterroles", "", "relaunch-nodes"), "node warnings", ("unknown", "there is no ClusterRole relaunch-nodes: that a node is taken away, its pods alone tell", "kubectl apply -f infrastructure/kubernetes/nodes.yaml")),
        (lambda each: each.remove("clusterrolebindings", "", "relaunch-nodes"), "node warnings", ("unknown", "no ClusterRoleBinding gives anybody the ClusterRole", "kubectl apply -f infrastructure/kubernetes/nodes.yaml")),
        (lambda each: each.restrict(), "node warnings", ("unknown", "the ClusterRole relaunch-nodes does not allow get nodes", "kubectl apply -f infrastructure/kubernetes/nodes.yaml")),
        (lambda each: each.server.forbidden.add(("get", "clusterroles")), "node warnings", ("unknown", "this user has no permission to read ClusterRoles", "kubectl apply -f infrastructure/kubernetes/reader.yaml")),
        (lambda each: each.remove("namespaces", "", "training"), "namespace", ("problem", "there is no namespace training", "kubectl create namespace training")),
        (lambda each: each.outdate(), "jobs with nodes", ("unknown", "the Role relaunch does not allow delete jobs, create services, delete services, get services, for which", "kubectl apply -f infrastructure/kubernetes/role.yaml")),
        (lambda each: setattr(each.server.cluster, "minor", 23), "jobs with nodes", ("unknown", "jobs with `nodes` are refused: they need Kubernetes 1.24, and this is v1.23.2", None)),
        (lambda each: each.remove("roles", "training", "relaunch"), "role", ("problem", "there is no Role relaunch", "kubectl apply -f infrastructure/kubernetes/role.yaml")),
    ],
)  # fmt: skip
def test_each_fault_is_found_with_what_to_do(cluster, doctor, damage, name, expected):
    verdict, text, to_do = expected
    damage(cluster)

    result = doctor("--json")

    check = checks_of(result)[name]
    assert (check["verdict"], check["to_do"]) == (verdict, to_do)
    assert check["text"].startswith(text)
    assert {each["verdict"] for each in result.document["checks"] if each["name"] != name} == {"ok"}
    assert result.exit_code == (2 if verdict == "problem" else 0)


def test_without_nodes_that_may_be_read_or_have_gpus_nothing_is_said_of_them(cluster, doctor):
    cluster.remove("nodes", "", "ip-10-0-0-1")
    assert checks_of(doctor("--json"))["GPUs"]["text"] == "of 0 nodes none offers nvidia.com/gpu now"

    cluster.server.forbidden.add(("list", "nodes"))
    check = checks_of(doctor("--json"))["GPUs"]
    assert (check["verdict"], check["to_do"]) == ("unknown", "kubectl apply -f infrastructure/kubernetes/reader.yaml")
