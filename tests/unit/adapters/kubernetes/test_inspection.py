"""What a cluster tells whoever may read it, by the local API server."""

import base64
import gzip
from collections.abc import Iterator
from contextlib import closing

import pytest

from fakes.ack_cluster import NAMESPACE, RAM_ID, SYSTEM, AckCluster, daemon_set, serving_ack_cluster
from fakes.ack_cluster import release as made_release
from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.connection import Connection
from relaunch.adapters.kubernetes.api.kubeconfig import read_kubeconfig
from relaunch.adapters.kubernetes.inspection import ClusterInspection
from relaunch.core.kubernetes.ack import GPU_COMPUTE, GPU_COUNT, GPU_MEMORY
from relaunch.core.kubernetes.card_annotations import CARD_INDEX
from relaunch.core.kubernetes.node_fit import CardUse, PodUse

CHART = "ack-ai-installer"


@pytest.fixture
def ack() -> Iterator[AckCluster]:
    with serving_ack_cluster() as cluster:
        yield cluster


@pytest.fixture
def inspection(ack: AckCluster) -> Iterator[ClusterInspection]:
    access = read_kubeconfig(ack.server.kubeconfig(NAMESPACE))
    with closing(KubernetesClient(Connection(lambda: access, NAMESPACE))) as client:
        yield ClusterInspection(client)


def test_nodes_have_what_their_pods_leave_of_them(ack, inspection):
    ack.add_node("n1")
    ack.add_node("n2", {})
    ack.add_pod("a", "n1", {GPU_MEMORY: "2", GPU_COMPUTE: "30", "cpu": "500m"}, **{CARD_INDEX: "1"})
    ack.add_pod("b", "n1", {GPU_MEMORY: "4", GPU_COMPUTE: "5"}, **{CARD_INDEX: "unknown"})
    ack.add_pod("over", "n1", {GPU_MEMORY: "9"})
    ack.cluster.state.get("pods", "others", "over")["status"]["phase"] = "Succeeded"

    first, second = inspection.gpu_nodes()

    assert first.allocatable == {GPU_COUNT: 4, GPU_MEMORY: 60, GPU_COMPUTE: 400}
    assert list(first.pods) == [
        PodUse({GPU_MEMORY: 2, GPU_COMPUTE: 30}, {1: CardUse(2, 30)}),
        PodUse({GPU_MEMORY: 4, GPU_COMPUTE: 5}),
    ]
    assert (second.allocatable, list(second.pods)) == ({"nvidia.com/gpu": 4}, [])


def test_a_large_count_may_be_written_in_thousands(ack, inspection):
    ack.add_node("n1")["status"]["allocatable"][GPU_COMPUTE] = "1k"

    (node,) = inspection.gpu_nodes()

    assert node.allocatable[GPU_COMPUTE] == 1000


@pytest.mark.parametrize(
    ("spec", "ready", "refuses"),
    [
        ({}, "True", ""),
        ({}, "Unknown", "it is not ready"),
        ({"unschedulable": True}, "True", "it takes no new pods (cordoned)"),
        (
            {"taints": [{"key": "gpu", "value": "vip", "effect": "NoSchedule"}]},
            "True",
            "gpu=vip:NoSchedule",
        ),
        ({"taints": [{"key": "gpu", "value": "vip", "effect": "PreferNoSchedule"}]}, "True", ""),
    ],
)
def test_a_node_that_takes_no_pods_says_why(ack, inspection, spec, ready, refuses):
    node = ack.add_node("n1")
    node["spec"] = spec
    node["status"]["conditions"][0]["status"] = ready

    (found,) = inspection.gpu_nodes()
    assert found.refuses + "".join(map(str, found.taints)) == refuses


def test_the_chart_is_that_of_the_newest_release(ack, inspection):
    assert inspection.chart_version(CHART) == "1.12.1"

    ack.add("secrets", SYSTEM, made_release("1.13.0", 10))
    ack.add("secrets", SYSTEM, made_release("1.12.9", 9))

    odd = made_release("1.14.0", 11)
    odd["metadata"]["labels"]["version"] = "eleven"
    ack.add("secrets", SYSTEM, odd)

    assert inspection.chart_version(CHART) == "1.13.0"
    assert inspection.chart_version("another") is None


def packed(content: bytes) -> str:
    return base64.b64encode(base64.b64encode(content)).decode()


@pytest.mark.parametrize(
    "release",
    [
        pytest.param("no base64", id="no-base64"),
        pytest.param(packed(b"not compressed"), id="not-compressed"),
        pytest.param(packed(gzip.compress(b"no JSON", mtime=0)), id="no-json"),
        pytest.param(packed(gzip.compress(b'{"chart": {}}', mtime=0)), id="no-version"),
        pytest.param(packed(gzip.compress(b"[]", mtime=0)), id="no-object"),
        pytest.param(packed(gzip.compress(b"[" * 100_000, mtime=0)), id="too-deep"),
    ],
)
def test_a_release_that_cannot_be_read_has_no_version(ack, inspection, release):
    ack.cluster.state.get("secrets", SYSTEM, f"sh.helm.release.v1.{CHART}.v1")["data"]["release"] = release

    assert inspection.chart_version(CHART) == ""


def test_versions_are_those_of_images_with_the_word_in_their_name(ack, inspection):
    other = daemon_set("registry.example/cgpu/fluentd:9.9.9")
    other["metadata"]["name"] = "logs"
    ack.add("daemonsets", SYSTEM, other)

    assert inspection.image_versions("cgpu") == ["v1.5.10"]


def test_the_namespace_the_role_and_whom_it_is_given_to_are_read(ack, inspection):
    assert inspection.namespace_labels(NAMESPACE) == {}
    assert inspection.namespace_labels("research") is None
    rules = inspection.role_rules(NAMESPACE, "relaunch")
    assert any(each.allows("batch", "jobs", "patch") for each in rules)
    assert not any(each.allows("", "secrets", "get") for each in rules)
    assert inspection.role_rules(NAMESPACE, "another") is None
    assert inspection.subjects_of(NAMESPACE, "relaunch") == [RAM_ID]
    assert inspection.subjects_of(NAMESPACE, "another") == []


def test_who_asks_is_told_by_servers_since_1_28_that_let_everybody_ask(ack, inspection):
    assert inspection.own_name() == RAM_ID
    ack.server.forbidden.add(("create", "selfsubjectreviews"))
    assert inspection.own_name() == ""
    ack.server.forbidden.clear()
    ack.cluster.minor = 27
    assert inspection.own_name() == ""
