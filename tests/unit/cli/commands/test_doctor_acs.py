"""doctor of an ACS cluster, on the local API server: silent on a whole one, each fault found with what to do."""

# ruff: noqa: E501 - one case a line

import json
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

PREFIX = "alibabacloud.com/"
T4 = {
    "name": "gpu-t4-driver",
    "objectSelector": {"matchLabels": {f"{PREFIX}compute-class": "gpu", f"{PREFIX}gpu-model-series": "T4"}},
    "effect": {"labels": {f"{PREFIX}gpu-driver-version": "570.133.20"}},
}
RESERVED = {f"{PREFIX}node-type": "reserved", f"{PREFIX}gpu-model-series": "P16EN"}


class Cluster:
    """An ACS cluster with everything that jobs need, which a test takes parts of away."""

    def __init__(self, server: KubernetesServer) -> None:
        self.server = server
        server.user = "300000000000000000"
        state = self.state = server.cluster.state
        server.cluster.add_node("virtual-1", labels={"type": "virtual-kubelet"})
        server.cluster.add_node("cn-wulanchabu-c.cr-1", labels=RESERVED)
        self.set_selectors(json.dumps([T4]))
        state.add("namespaces", "", {"kind": "Namespace", "metadata": {"name": "training"}})
        manifests = yaml.safe_load_all((REPOSITORY / "infrastructure" / "kubernetes" / "role.yaml").read_text())
        for resource, manifest in zip(("roles", "rolebindings"), manifests, strict=True):
            state.add(resource, "training", manifest)

    def set_selectors(self, text: str) -> None:
        document = {"kind": "ConfigMap", "metadata": {"name": "acs-profile", "namespace": "kube-system"}}
        if found := self.state.find("configmaps", "kube-system", "acs-profile"):
            self.state.remove("configmaps", found)
        self.state.add("configmaps", "kube-system", {**document, "data": {"selectors": text, "vpcId": "vpc-1"}})

    def remove(self, resource: str, namespace: str, name: str) -> None:
        self.state.remove(resource, self.state.get(resource, namespace, name))


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
    return partial(invoke, "doctor", "--target", "acs", "--kubeconfig", str(file))


def checks_of(result: Outcome) -> dict[str, Any]:
    return {each["name"]: each for each in result.document["checks"]}


def test_a_whole_cluster_has_no_problem(doctor):
    shown, as_json = doctor(columns=120), doctor("--json")

    checks = checks_of(as_json)
    assert (shown.exit_code, as_json.exit_code) == (0, 0)
    assert {each["verdict"] for each in checks.values()} == {"ok"}
    assert list(checks) == [
        "cluster version",
        "acs-profile gpu-t4-driver",
        "virtual nodes",
        "gpu-hpn nodes",
        "namespace",
        "role",
        "jobs with nodes",
    ]
    assert checks["acs-profile gpu-t4-driver"]["text"] == "driver 570.133.20"
    assert checks["gpu-hpn nodes"]["text"] == "1 of P16EN"
    assert flat(shown.stdout).endswith("no problem in 7 checks")


@pytest.mark.parametrize(
    ("damage", "name", "verdict", "to_do"),
    [
        (lambda each: each.remove("configmaps", "kube-system", "acs-profile"), "acs-profile", "problem", "install acs-virtual-node"),
        (lambda each: each.set_selectors("[{"), "acs-profile", "problem", "kubectl -n kube-system edit configmap acs-profile"),
        (lambda each: each.set_selectors(json.dumps([T4]).replace("570.133.20", "470.1.1")), "acs-profile gpu-t4-driver", "unknown", "compare with ACS's page"),
        (lambda each: each.remove("nodes", "", "virtual-1"), "virtual nodes", "problem", "install acs-virtual-node"),
        (lambda each: each.server.cluster.add_node("ecs-1"), "alibabacloud.com/acs", "unknown", "in each definition for acs"),
        (lambda each: each.remove("namespaces", "", "training"), "namespace", "problem", "kubectl create namespace training"),
        (lambda each: each.remove("roles", "training", "relaunch"), "role", "problem", "kubectl apply -f infrastructure/kubernetes/role.yaml"),
        (lambda each: each.server.forbidden.add(("get", "configmaps")), "acs-profile", "unknown", "kubectl apply -f infrastructure/kubernetes/reader.yaml"),
        (lambda each: each.server.forbidden.add(("list", "nodes")), "virtual nodes", "unknown", "kubectl apply -f infrastructure/kubernetes/reader.yaml"),
    ],
)  # fmt: skip
def test_each_fault_is_found_with_what_to_do(cluster, doctor, damage, name, verdict, to_do):
    damage(cluster)

    result = doctor("--json")

    check = checks_of(result)[name]
    assert check["verdict"] == verdict
    assert check["to_do"].startswith(to_do)
    others = [each for each in result.document["checks"] if each["name"] != name]
    assert {each["verdict"] for each in others} == {"ok"}
    assert result.exit_code == (2 if verdict == "problem" else 0)


def test_a_cluster_that_does_not_answer_is_no_verdict(cluster, doctor):
    cluster.server.close()

    result = doctor()

    assert result.exit_code == 4
    assert "no answer from" in result.stderr
