import io
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from relaunch_local.demo.ack_story import lose_node
from relaunch_local.demo.acs_story import release
from relaunch_local.demo.pods import evict
from relaunch_local.demo.recorder import Recorder
from relaunch_local.demo.screen import Screen
from relaunch_local.demo.session import Session, UnmetExpectationError
from relaunch_local.ecs.clock import Clock
from relaunch_local.ecs.processes.port import Script, ScriptedProcesses
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.stack.alibaba_cluster import NAMESPACE


@pytest.mark.parametrize("take_away", [evict, lose_node, release])
def test_a_pod_that_has_ended_is_left_alone_and_its_end_is_said(take_away: Callable[..., int]) -> None:
    clock = Clock()
    cluster = KubernetesCluster(clock, ScriptedProcesses(clock, lambda _: Script(runtime_seconds=10.0)))
    cluster.add_node("gpu-1")
    pod = {"containers": [{"name": "main", "image": "train"}], "restartPolicy": "Never"}
    job = {"metadata": {"name": "train"}, "spec": {"backoffLimit": 0, "template": {"spec": pod}}}
    cluster.create_job(NAMESPACE, {"apiVersion": "batch/v1", "kind": "Job", **job})
    clock.advance(60)
    (ended,) = cluster.state.all("pods", NAMESPACE)
    local: Any = SimpleNamespace(alibaba=SimpleNamespace(cluster=cluster))
    connection: Any = None
    outside: Any = None
    session = Session(local, connection, Screen(Console(file=io.StringIO())), Recorder(list), 0.0, outside)

    with pytest.raises(UnmetExpectationError, match="runs until something happens to it, but it is Succeeded before"):
        take_away(session, "demo-1", ended)

    assert cluster.state.all("pods", NAMESPACE) == [ended]
    assert [each["metadata"]["name"] for each in cluster.state.all("nodes")] == ["gpu-1"]
