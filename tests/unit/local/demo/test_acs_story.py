"""The steps of ACS's document, against a cluster that is served."""

import io
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from relaunch.core.definitions.targets import Target
from relaunch_local.demo import pods
from relaunch_local.demo.acs_story import set_default_driver
from relaunch_local.demo.recorder import Recorder
from relaunch_local.demo.screen import Screen
from relaunch_local.demo.session import Session
from relaunch_local.stack.alibaba_cluster import NAMESPACE, VIRTUAL_NODE, AlibabaCluster, running_cluster


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[AlibabaCluster, Session, io.StringIO]]:
    shown = io.StringIO()
    with running_cluster(Target.ACS, 1.0) as alibaba:
        file = alibaba.write_kubeconfig(tmp_path / "kubeconfig")
        local: Any = SimpleNamespace(alibaba=alibaba, environment=lambda: {"KUBECONFIG": str(file)})
        nothing: Any = None
        session = Session(local, nothing, Screen(Console(file=shown, width=120)), Recorder(list), 0.0, nothing)
        yield alibaba, session, shown


def test_the_default_driver_is_set_by_the_command_and_shown_as_it_is_stored(served) -> None:
    alibaba, session, shown = served

    set_default_driver(session)

    stored = alibaba.cluster.state.get("configmaps", "kube-system", "acs-profile")["data"]
    assert '"alibabacloud.com/gpu-driver-version": "1.5.0"' in stored["selectors"]
    assert stored["vpcId"]
    assert "pods with alibabacloud.com/compute-class=gpu-hpn get alibabacloud.com/gpu-driver-version=1.5.0" in " ".join(
        shown.getvalue().split()
    )


def test_a_table_is_printed_as_kubectl_does(served) -> None:
    alibaba, session, shown = served
    pod = {"containers": [{"name": "main", "image": "train"}], "restartPolicy": "Never", "schedulerName": "nobody"}
    template = {"metadata": {"labels": {"app": "demo"}}, "spec": pod}
    job = {"metadata": {"name": "demo-1-1"}, "spec": {"template": template}}
    alibaba.cluster.create_job(NAMESPACE, {"apiVersion": "batch/v1", "kind": "Job", **job})

    pods.show_objects(session, "pods", "app=demo")
    pods.show_objects(session, "nodes")

    lines = shown.getvalue().splitlines()
    assert lines[0].endswith("$ kubectl get pod -l app=demo")
    assert lines[1].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert lines[2].split()[1:4] == ["0/1", "Pending", "0"]
    assert lines[5].split()[:2] == [VIRTUAL_NODE, "Ready"]
