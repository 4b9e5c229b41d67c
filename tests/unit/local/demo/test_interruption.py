"""Nothing is taken away from a training that has ended: the stories say that it had, and do nothing."""

import io
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from relaunch_local.demo.ack_story import evict, lose_node
from relaunch_local.demo.interruption import interrupt, terminate
from relaunch_local.demo.recorder import Recorder
from relaunch_local.demo.screen import Screen
from relaunch_local.demo.session import Session, UnmetExpectationError
from relaunch_local.ecs.clock import Clock
from relaunch_local.ecs.processes.port import Script, ScriptedProcesses
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.stack.ack_cluster import NAMESPACE

JOB = "demo-1"


def make_session(**local: Any) -> Session:
    world: Any = SimpleNamespace(**local)
    connection: Any = None
    return Session(world, connection, Screen(Console(file=io.StringIO())), Recorder(list), 0.0)


@pytest.mark.parametrize("take_away", [evict, lose_node])
def test_a_pod_that_has_ended_is_left_alone(take_away: Callable[..., int]) -> None:
    clock = Clock()
    cluster = KubernetesCluster(clock, ScriptedProcesses(clock, lambda _: Script(runtime_seconds=10.0)))
    cluster.add_node("gpu-1")
    pod = {"containers": [{"name": "main", "image": "train"}], "restartPolicy": "Never"}
    spec = {"backoffLimit": 0, "template": {"spec": pod}}
    cluster.create_job(
        NAMESPACE, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": spec}
    )
    clock.advance(60)
    (ended,) = cluster.state.all("pods", NAMESPACE)

    with pytest.raises(UnmetExpectationError, match="runs until something happens to it, but it is Succeeded before"):
        take_away(make_session(ack=SimpleNamespace(cluster=cluster)), JOB, ended)

    assert cluster.state.all("pods", NAMESPACE) == [ended]
    assert [each["metadata"]["name"] for each in cluster.state.all("nodes")] == ["gpu-1"]


@pytest.mark.parametrize("take_away", [interrupt, terminate])
def test_the_machine_of_a_task_that_has_ended_is_left_alone(take_away: Callable[..., object]) -> None:
    # It has no method that takes a machine away.
    session = make_session(simulator=SimpleNamespace(clock=Clock()))
    for status in ("RUNNING", "STOPPED"):
        session.recorder.events.append(
            {"source": "aws.ecs", "detail": {"startedBy": f"{JOB}/1", "lastStatus": status}},
        )

    with pytest.raises(UnmetExpectationError, match="runs until something happens to it, but it is STOPPED before"):
        take_away(session, JOB, "i-1")

    assert session.recorder.actions == []
