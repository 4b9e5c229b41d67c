"""Pods whose container runtime, or node, was restarted under them, as a cluster shows them."""

from collections.abc import Callable
from typing import Any

import pytest

from relaunch_local.ecs.processes.port import Script
from unit.local.kubernetes.conftest import NAMESPACE, World, manifest

FOREVER = Script(runtime_seconds=None)
NO_GPU: dict[str, Any] = {}
MESSAGE = (
    "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
    "aliyun.com/gpu-core.percentage, which is unexpected"
)


def run(world: World, *, init: list[dict[str, Any]] | None = None, **options: Any) -> None:
    world.script = FOREVER
    job = manifest(**options)
    if init is not None:
        job["spec"]["template"]["spec"]["initContainers"] = init
    world.cluster.create_job(NAMESPACE, job)
    world.clock.advance(5)


def ended(world: World, kind: str = "containerStatuses") -> dict[str, Any]:
    (status,) = world.pod["status"][kind]
    found = status["state"]["terminated"]
    return {key: found[key] for key in ("exitCode", "reason")}


def test_a_container_that_its_runtime_loses_has_ended_with_255_for_unknown(world: World) -> None:
    run(world)

    world.cluster.restart_runtime("gpu-1")

    assert world.pod["status"]["phase"] == "Failed"
    assert ended(world) == {"exitCode": 255, "reason": "Unknown"}
    assert world.conditions()[-1] == ("Failed", "BackoffLimitExceeded")
    assert [each["reason"] for each in world.cluster.state.all("events") if each["reason"] == "Killing"] == []


def test_a_sidecar_that_its_runtime_loses_with_the_program_is_not_ended_by_the_kubelet(world: World) -> None:
    run(world, init=[{"name": "metrics", "image": "otel:1", "restartPolicy": "Always"}])

    world.cluster.restart_runtime("gpu-1")

    assert ended(world) == {"exitCode": 255, "reason": "Unknown"}
    assert [each["reason"] for each in world.cluster.state.all("events") if each["reason"] == "Killing"] == []


def test_an_init_container_that_its_runtime_loses_fails_the_pod(world: World) -> None:
    run(world, init=[{"name": "sync", "image": "git-sync:4"}])

    world.cluster.restart_runtime("gpu-1")

    assert world.pod["status"]["phase"] == "Failed"
    assert ended(world, "initContainerStatuses") == {"exitCode": 255, "reason": "Unknown"}


def test_pods_of_other_nodes_and_those_that_have_ended_or_wait_stay_as_they_are(world: World) -> None:
    world.create()
    world.clock.advance(100)
    world.cluster.missing_images.add("registry.example/train:1")
    world.create("waits")
    world.clock.advance(5)
    before = [(each["status"]["phase"], each["status"]["containerStatuses"]) for each in world.pods()]

    world.cluster.restart_runtime("gpu-1")
    world.cluster.restart_runtime("another")

    assert [(each["status"]["phase"], each["status"]["containerStatuses"]) for each in world.pods()] == before


@pytest.mark.parametrize(("minor", "limits"), [(36, NO_GPU), (24, None)], ids=["without a GPU", "an old kubelet"])
def test_a_pod_of_a_node_that_is_rebooted_stays_until_it_is_back_and_has_failed_then(
    make_world: Callable[..., World], minor: int, limits: dict[str, Any] | None
) -> None:
    world = make_world(minor=minor)
    run(world, limits=limits)

    world.cluster.reboot_node("gpu-1", for_seconds=90)
    world.clock.advance(89)
    unheard = world.pod["status"]["phase"]
    world.clock.advance(2)

    assert unheard == "Running"
    assert world.pod["status"]["phase"] == "Failed"
    assert ended(world) == {"exitCode": 255, "reason": "Unknown"}


@pytest.mark.parametrize("minor", [25, 36])
def test_a_kubelet_that_knows_no_devices_yet_rejects_a_pod_that_had_some(
    make_world: Callable[..., World], minor: int
) -> None:
    world = make_world(minor=minor)
    run(world)

    world.cluster.reboot_node("gpu-1")
    world.clock.advance(121)

    status = world.pod["status"]
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "UnexpectedAdmissionError", MESSAGE)
    assert "containerStatuses" not in status
    assert world.conditions()[-1] == ("Failed", "BackoffLimitExceeded")


def test_a_pod_that_is_deleted_while_its_node_boots_is_gone_once_it_is_back(world: World) -> None:
    run(world, limits=NO_GPU)

    world.cluster.reboot_node("gpu-1", for_seconds=90)
    world.cluster.delete_pod(NAMESPACE, world.pod["metadata"]["name"])
    world.clock.advance(60)
    meanwhile = len(world.pods())
    world.clock.advance(60)

    assert meanwhile == 1
    assert world.pods() == []


def test_a_node_that_takes_too_long_to_boot_loses_its_pods_to_the_taint(world: World) -> None:
    run(world, limits=NO_GPU)

    world.cluster.reboot_node("gpu-1", for_seconds=400)
    world.clock.advance(310)
    assert "deletionTimestamp" in world.pod["metadata"]
    world.clock.advance(100)

    assert world.pods() == []


def test_what_is_placed_on_a_node_while_it_boots_starts_there(world: World) -> None:
    run(world, limits=NO_GPU)
    world.cluster.reboot_node("gpu-1", for_seconds=90)
    world.create("later", limits=NO_GPU)
    world.clock.advance(60)
    waiting = [each["status"]["phase"] for each in world.pods()]
    world.clock.advance(60)

    assert waiting == ["Running", "Pending"]
    assert [each["status"]["phase"] for each in world.pods()] == ["Failed", "Running"]
