"""The nodes that have room for a job's pod are named while it has none, if the caller may see them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.ack_cluster import NAMESPACE, AckCluster, serving_ack_cluster
from fakes.builders import make_attempt, make_definition, make_job, make_placement
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch_cli.job_nodes import find_node_fits
from relaunch_local.kubernetes.role import read_role
from relaunch_local.stack.alibaba_cluster import ROLE


@pytest.fixture
def ack() -> Iterator[AckCluster]:
    with serving_ack_cluster() as cluster:
        cluster.add_node("n1")
        cluster.add_node("n2", {})
        metadata = {"name": "resnet-1-1-x", "labels": {"relaunch/task": "resnet-1-1"}}
        cluster.add("pods", NAMESPACE, {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "i"}]}})
        yield cluster


@pytest.fixture(autouse=True)
def kubeconfig(ack: AckCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "kubeconfig"
    file.write_text(ack.server.kubeconfig(NAMESPACE))
    monkeypatch.setenv("KUBECONFIG", str(file))
    return file


@pytest.fixture
def pending() -> Job:
    gpu = GpuRequirement(memory_mib=2048, compute_percent=30)
    definition = replace(
        make_definition(),
        target=Target.ACK,
        kubernetes=KubernetesWorkload("i"),
        accelerator=AcceleratorRequirement(gpu=gpu),
    )
    attempt = make_attempt(placement=make_placement(task_id="resnet-1-1"))
    return replace(make_job(), definition=definition, state=JobState.LAUNCHING, attempt=attempt)


def test_a_pod_without_a_node_is_told_where_it_would_fit(pending):
    assert [(each.node, each.fits) for each in find_node_fits(pending)] == [("n1", True), ("n2", False)]


def test_a_cluster_without_the_pod_tells_nothing(pending):
    elsewhere = replace(pending, attempt=make_attempt(placement=make_placement(task_id="resnet-1-2")))

    assert find_node_fits(elsewhere) == ()


def test_a_pod_with_a_node_and_a_job_that_waits_need_none(pending):
    placed = replace(pending, attempt=replace(pending.attempt, node="n1"))

    assert find_node_fits(placed) == find_node_fits(replace(pending, state=JobState.WAITING)) == ()
    assert find_node_fits(make_job(state=JobState.LAUNCHING, attempt=make_attempt())) == ()


def test_whoever_may_not_see_nodes_or_has_no_kubeconfig_is_told_nothing(ack, kubeconfig, pending):
    kubeconfig.write_text(ack.server.kubeconfig(NAMESPACE, role=read_role(ROLE)))
    assert find_node_fits(pending) == ()

    kubeconfig.unlink()
    assert find_node_fits(pending) == ()
