"""`plan --fit` says on which nodes of the caller's cluster a pod fits, and why not on others."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.ack_cluster import NAMESPACE, AckCluster, serving_ack_cluster
from fakes.cli_session import flat, invoke
from relaunch.core.kubernetes.ack import GPU_COMPUTE, GPU_MEMORY
from relaunch.core.kubernetes.card_annotations import ALLOCATION
from relaunch_local.kubernetes.role import read_role
from relaunch_local.stack.alibaba_cluster import ROLE

ASKED = ("plan", "--target", "ack", "--image", "i", "--gpu", "1", "--gpu-memory", "2GiB", "--compute-percent", "30")


@pytest.fixture
def ack() -> Iterator[AckCluster]:
    with serving_ack_cluster() as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def kubeconfig(ack: AckCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "kubeconfig"
    file.write_text(ack.server.kubeconfig(NAMESPACE))
    monkeypatch.setenv("KUBECONFIG", str(file))
    return file


def test_nodes_are_shown_in_the_order_in_which_the_pod_would_go_to_them(ack):
    for name in ("empty", "used", "full"):
        ack.add_node(name)
    ack.add_node("whole", {})
    ack.add_pod("a", "used", {GPU_MEMORY: "4", GPU_COMPUTE: "40"}, **{ALLOCATION: '{"0":{"0":4}}'})
    ack.add_pod("b", "full", {GPU_MEMORY: "60", GPU_COMPUTE: "400"})

    result, document = invoke(*ASKED, "--fit", columns=160), invoke(*ASKED, "--fit", "--json").document

    shown = flat(result.stdout)
    assert "not asked" not in shown
    assert "fits now on 2 of 4 nodes, first on used" in shown
    assert "0 of 60 aliyun.com/gpu-mem are free, 2 are asked for" in shown
    nodes = document["plans"][0]["nodes"]
    assert [(each["node"], each["fits"]) for each in nodes] == [
        *(("used", True), ("empty", True)),
        *(("full", False), ("whole", False)),
    ]
    assert nodes[0]["free"] == {GPU_MEMORY: 56, GPU_COMPUTE: 360}
    assert nodes[3]["reason"].startswith("the label ack.node.gpu.schedule=core_mem is asked for")
    assert result.exit_code == 0


def test_a_pod_that_fits_nowhere_would_wait(ack):
    ack.add_node("n1", {})

    assert "fits on none of 1 nodes now: its pod would wait" in flat(invoke(*ASKED, "--fit", columns=160).stdout)


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (2, "4 of 4 pods fit now, on 2 of 3 nodes "),
        (3, "2 of 4 pods fit now, on 2 of 3 nodes: the job would wait"),
    ],
)
def test_the_pods_of_several_nodes_are_counted_on_all_of_them(ack, tmp_path, count, said):
    for name in ("n1", "n2"):
        ack.server.cluster.add_node(name, gpus=4)
    ack.server.cluster.add_node("n3", gpus=1)
    file = tmp_path / "relaunch.yaml"
    llama = {"target": "ack", "nodes": 4, "kubernetes": {"image": "i"}, "accelerator": {"gpu": {"count": count}}}
    file.write_text(json.dumps({"jobs": {"llama": llama}}))

    assert said in f"{flat(invoke('plan', str(file), '--fit', columns=160).stdout)} "


def test_of_class_gpu_of_acs_no_node_can_tell(ack):
    ack.add_node("virtual", {"type": "virtual-kubelet"})
    asked = (
        "plan",
        "--target",
        "acs",
        "--image",
        "i",
        "--gpu",
        "1",
        "--model",
        "T4",
        "--vcpus",
        "4",
        "--memory",
        "16GiB",
    )

    result, document = invoke(*asked, "--fit"), invoke(*asked, "--fit", "--json").document

    assert "no node tells whether it fits" in flat(result.stderr)
    assert document["plans"][0]["nodes"] is None
    assert result.exit_code == 0


def test_without_nodes_it_says_so(ack):
    assert "the cluster has no nodes" in invoke(*ASKED, "--fit").stdout


def test_without_it_the_cluster_is_not_asked(ack):
    document = invoke(*ASKED, "--json").document

    assert document["plans"][0]["nodes"] is None
    assert ack.server.requests == []


def test_whoever_may_not_list_nodes_is_told_so(ack, kubeconfig):
    kubeconfig.write_text(ack.server.kubeconfig(NAMESPACE, role=read_role(ROLE)))

    result = invoke(*ASKED, "--fit")

    assert result.exit_code == 5
    assert "nodes is forbidden" in flat(result.stderr)


def test_it_is_about_kubernetes_only():
    result = invoke("plan", "--gpu", "1", "--offline", "--fit")

    assert result.exit_code == 2
    assert "plan a definition with target kubernetes, ack or acs" in flat(result.stderr)
