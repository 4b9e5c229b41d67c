from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.simulated_region import SimulatedRegion, container
from relaunch_local.ecs import Purchase, Script, Timing

HOUR = 3_600


@pytest.fixture
def running(region: SimulatedRegion) -> SimulatedRegion:
    region.register()
    region.instance("g5.12xlarge")
    region.script = lambda _spec: Script(runtime_seconds=None)
    return region


def token_run(region: SimulatedRegion, **members: Any) -> str:
    return region.run_one(clientToken="job-1-attempt-1", **members)


def test_the_same_request_answers_the_same_task(running: SimulatedRegion) -> None:
    first = token_run(running)
    running.clock.advance(600)

    assert token_run(running) == first
    assert running.ecs.list_tasks(cluster="c")["taskArns"] == [first]


def test_the_same_request_answers_the_same_task_though_its_revision_is_inactive_by_now(
    running: SimulatedRegion,
) -> None:
    first = token_run(running, taskDefinition="train:1")
    running.ecs.deregister_task_definition(taskDefinition="train:1")

    assert token_run(running, taskDefinition="train:1") == first


def test_other_parameters_are_a_conflict_that_names_the_task(running: SimulatedRegion) -> None:
    first = token_run(running)

    with pytest.raises(ClientError) as caught:
        token_run(running, startedBy="somebody-else")

    response: Any = caught.value.response
    assert response["Error"]["Code"] == "ConflictException"
    assert response["resourceIds"] == [first]


def test_a_token_is_known_in_its_cluster_only(running: SimulatedRegion) -> None:
    running.ecs.create_cluster(clusterName="d")
    running.simulator.launch_instance("g5.xlarge", Purchase.SPOT, "us-east-1a", cluster="d")
    running.clock.advance(120)
    first = token_run(running)

    assert token_run(running, cluster="d") != first


def test_a_token_lives_for_an_hour_after_its_task(running: SimulatedRegion) -> None:
    first = token_run(running)
    running.wait_for(first, "RUNNING")
    running.ecs.stop_task(cluster="c", task=first)
    running.wait_for(first, "STOPPED")

    running.clock.advance(HOUR - 1)
    assert token_run(running) == first
    running.clock.advance(2)
    assert token_run(running) != first


def test_a_token_lives_for_24_hours_at_most(running: SimulatedRegion) -> None:
    first = token_run(running)

    running.clock.advance(24 * HOUR - 1)
    assert token_run(running) == first
    running.clock.advance(1)
    assert token_run(running) != first


def test_a_task_that_stops_late_does_not_prolong_its_token(running: SimulatedRegion) -> None:
    first = token_run(running)
    running.clock.advance(24 * HOUR - 600)
    running.ecs.stop_task(cluster="c", task=first)

    running.clock.advance(600)

    assert token_run(running) != first


def test_failures_are_replayed(region: SimulatedRegion) -> None:
    region.register("train", container(cpu=8_192))
    region.instance()
    first = region.run(clientToken="t")

    region.instance("g5.12xlarge")

    assert region.run(clientToken="t") == first
    assert first["failures"][0]["reason"] == "RESOURCE:CPU"
    region.clock.advance(HOUR)
    assert region.run(clientToken="t")["tasks"]


def test_a_refused_request_leaves_its_token_unused(running: SimulatedRegion) -> None:
    with pytest.raises(ClientError):
        token_run(running, count=11)

    assert token_run(running)


def test_tokens_that_are_over_are_forgotten() -> None:
    region = SimulatedRegion(timing=Timing(), throttling=False)
    region.register("train", container(cpu=64, memory=64))
    region.instance()
    region.script = lambda _spec: Script(runtime_seconds=1.0)
    for number in range(30):
        region.run_one(clientToken=f"t{number}")
    region.clock.advance(2 * HOUR)
    region.run_one(clientToken="last")

    assert len(region.simulator.tokens) == 1


def test_a_token_that_is_used_again_lives_its_own_life(running: SimulatedRegion) -> None:
    first = token_run(running)
    running.ecs.stop_task(cluster="c", task=first)
    running.clock.advance(2 * HOUR)
    second = token_run(running)

    running.clock.advance(23 * HOUR)

    assert token_run(running) == second
    assert second != first
