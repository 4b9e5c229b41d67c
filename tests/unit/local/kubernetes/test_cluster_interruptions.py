"""Jobs that are suspended, nodes cut off, tainted or deleted for a while, and pods that old servers replace."""

from collections.abc import Callable

import pytest

from relaunch_local.ecs.processes.port import Script
from unit.local.kubernetes.conftest import NAMESPACE, World

SUSPENDED = [("Suspended", "JobSuspended")]


def suspend(world: World, *, value: bool) -> None:
    world.cluster.patch_job(NAMESPACE, "cuda-sample", {"spec": {"suspend": value}})


def test_a_job_that_is_created_suspended_has_no_pod_and_no_time_until_it_goes_on(world: World) -> None:
    world.create(suspend=True, activeDeadlineSeconds=100)
    world.clock.advance(200)
    waiting = (world.pods(), world.conditions(), "startTime" in world.job()["status"])
    world.script = Script(runtime_seconds=500)
    suspend(world, value=False)
    world.clock.advance(99)
    running = world.pod["status"]["phase"]
    world.clock.advance(200)

    assert waiting == ([], SUSPENDED, False)
    assert running == "Running"
    assert ("Failed", "DeadlineExceeded") in world.conditions()


def test_a_server_that_does_not_know_suspend_drops_it(make_world: Callable[..., World]) -> None:
    world = make_world(minor=20)
    world.create(suspend=True)
    world.clock.advance(20)
    suspend(world, value=True)
    world.clock.advance(20)

    assert world.pod["status"]["phase"] == "Running"
    assert "suspend" not in world.job()["spec"]


@pytest.mark.parametrize("fails", [False, True])
def test_a_suspension_ends_the_pod_which_counts_only_if_it_is_seen_to_fail(world: World, *, fails: bool) -> None:
    world.cluster._jobs.fails_suspended = fails
    rule = {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}
    world.script = Script(runtime_seconds=500)
    world.create(podFailurePolicy={"rules": [rule]})
    world.clock.advance(60)
    suspend(world, value=True)
    world.clock.advance(60)
    ended = (world.pods(), ("Failed", "PodFailurePolicy") in world.conditions())
    suspend(world, value=False)
    world.clock.advance(60)

    assert ended == ([], fails)
    assert len(world.pods()) == (0 if fails else 1)


def test_a_job_without_parallelism_makes_no_pod_when_it_goes_on(world: World) -> None:
    world.create(suspend=True)
    world.cluster.patch_job(NAMESPACE, "cuda-sample", {"spec": {"parallelism": 0, "activeDeadlineSeconds": 1}})
    suspend(world, value=False)
    world.clock.advance(60)

    assert world.pods() == []
    assert ("Failed", "DeadlineExceeded") in world.conditions()


@pytest.mark.parametrize("seconds", [100, 400])
def test_what_runs_on_a_node_that_is_cut_off_goes_on_and_is_heard_of_when_it_is_back(
    make_world: Callable[..., World], seconds: int
) -> None:
    world = make_world()
    world.script = Script(runtime_seconds=50)
    rule = {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}
    world.create(backoffLimit=0, podFailurePolicy={"rules": [rule]})
    world.clock.advance(20)
    world.cluster.cut_off_node("gpu-1", for_seconds=seconds)
    world.clock.advance(90)
    unheard = world.pod["status"]["phase"]
    world.clock.advance(seconds)

    assert unheard == "Running"
    assert ("Complete" in dict(world.conditions())) is True


def test_a_pod_that_is_deleted_and_may_not_be_replaced_fails_its_job_once_it_ends(make_world):
    world = make_world(minor=20)
    world.script = Script(runtime_seconds=None)
    world.create()
    world.clock.advance(10)
    world.cluster.state.add("resourcequotas", NAMESPACE, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}})
    world.cluster.delete_pod(NAMESPACE, world.pod["metadata"]["name"])
    world.clock.advance(120)

    # As the real server of that version does (tests/control_plane/test_job_life.py).
    assert world.pods() == []
    assert world.conditions()[-1] == ("Failed", "BackoffLimitExceeded")


def test_a_replacement_of_a_pod_that_is_gone_and_was_refused_is_made_once_it_may_be(make_world):
    world = make_world(minor=20)
    world.script = Script(runtime_seconds=None, sigterm_delay_seconds=None)
    world.create()
    world.clock.advance(10)
    name = world.pod["metadata"]["name"]
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}
    world.cluster.state.add("resourcequotas", NAMESPACE, quota)
    world.cluster.delete_pod(NAMESPACE, name, grace_seconds=0)
    world.clock.advance(120)
    assert world.pods() == []

    world.cluster.state.remove("resourcequotas", quota)
    world.clock.advance(3_600)

    assert world.pod["metadata"]["name"] != name


def test_a_node_whose_taint_is_taken_off_takes_pods_again(world: World) -> None:
    world.cluster.taint_node("gpu-1", "karpenter.sh/disrupted")
    world.create()
    world.clock.advance(5)
    assert "nodeName" not in world.pod["spec"]

    world.cluster.untaint_node("gpu-1", "karpenter.sh/disrupted")

    assert world.pod["spec"]["nodeName"] == "gpu-1"


def test_a_node_with_a_finalizer_is_there_with_its_pods_until_it_is_removed(world: World) -> None:
    world.script = Script(runtime_seconds=None)
    world.create()
    world.clock.advance(1)
    for _ in range(2):
        world.cluster.delete_node("gpu-1")
        world.clock.advance(30)

    node = world.cluster.state.get("nodes", "", "gpu-1")
    assert node["metadata"]["deletionTimestamp"] < world.cluster.state.now()
    assert world.pod["status"]["phase"] == "Running"
