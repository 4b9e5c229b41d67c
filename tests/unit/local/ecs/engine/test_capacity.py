from datetime import timedelta
from typing import Any

import pytest

from fakes.ecs_region import EcsWorld, container, gpu
from relaunch_local.ecs import Purchase, Script, Timing


def launched(world: EcsWorld) -> int:
    return len(world.simulator.machines.bill)


def test_the_first_scale_out_from_zero_starts_two_machines(world: EcsWorld) -> None:
    world.provider()
    world.register()
    arn = world.run_one("g5-spot")

    assert world.task(arn)["lastStatus"] == "PROVISIONING"
    world.clock.advance(59)
    assert launched(world) == 0
    world.clock.advance(1)
    assert launched(world) == 2
    task = world.wait_for(arn, "RUNNING")
    assert (task["capacityProviderName"], task["launchType"]) == ("g5-spot", "EC2")


def test_a_group_of_at_most_one_starts_one(world: EcsWorld) -> None:
    world.provider(max_size=1)
    world.register()
    arn = world.run_one("g5-spot")

    world.wait_for(arn, "RUNNING")

    assert launched(world) == 1


def test_as_many_machines_start_as_the_waiting_tasks_need(world: EcsWorld) -> None:
    world.provider(max_size=10)
    world.register("train", container(cpu=2_048))

    arns = [task["taskArn"] for task in world.run("g5-spot", count=7)["tasks"]]
    for arn in arns:
        world.wait_for(arn, "RUNNING")

    assert launched(world) == 4
    assert {host.zone for host in world.simulator.machines.hosts.values()} == {"us-east-1a", "us-east-1b"}


def test_the_largest_size_holds_and_the_rest_waits_for_its_turn(world: EcsWorld) -> None:
    world.provider(max_size=2)
    world.register("train", container(resourceRequirements=gpu()))
    arns = [task["taskArn"] for task in world.run("g5-spot", count=3)["tasks"]]

    world.wait_for(arns[0], "RUNNING")
    assert world.task(arns[2])["lastStatus"] == "PROVISIONING"
    world.wait_for(arns[2], "RUNNING")

    assert launched(world) == 2


@pytest.mark.parametrize(
    ("definition", "members", "reason"),
    [
        pytest.param(container(cpu=8_192), {}, "EMPTY CAPACITY PROVIDER", id="larger-than-the-type"),
        pytest.param(
            container(),
            {"placementConstraints": [{"type": "memberOf", "expression": "attribute:ecs.instance-type == g5.2xlarge"}]},
            "EMPTY CAPACITY PROVIDER",
            id="constraint-the-group-never-meets",
        ),
    ],
)
def test_a_task_that_fits_no_machine_of_the_group_starts_none_and_times_out(
    world: EcsWorld, definition: dict[str, Any], members: dict[str, Any], reason: str
) -> None:
    world.provider()
    world.register("train", definition)
    arn = world.run_one("g5-spot", **members)

    task = world.wait_for(arn, "STOPPED")

    assert launched(world) == 0
    assert task["stopCode"] == "TaskFailedToStart"
    assert task["stoppedReason"] == f"TaskFailedToStart: {reason}"
    assert task["stoppedAt"] - task["createdAt"] == timedelta(minutes=15)


def test_a_wait_in_vain_for_a_busy_machine_says_what_was_short(world: EcsWorld) -> None:
    world.provider(max_size=1)
    world.register("train", container(resourceRequirements=gpu()))
    world.script = lambda _spec: Script(runtime_seconds=None)
    first, second = [task["taskArn"] for task in world.run("g5-spot", count=2)["tasks"]]
    world.wait_for(first, "RUNNING")

    assert world.wait_for(second, "STOPPED")["stoppedReason"] == "TaskFailedToStart: RESOURCE:GPU"


def test_out_of_capacity_is_retried_and_said(world: EcsWorld) -> None:
    world.provider()
    world.register()
    world.simulator.set_capacity("g5.xlarge", Purchase.SPOT, 0)
    arn = world.run_one("g5-spot")

    world.clock.advance(300)
    assert (launched(world), world.task(arn)["lastStatus"]) == (0, "PROVISIONING")
    details = world.details("EC2 Instance Launch Unsuccessful")
    assert "InsufficientInstanceCapacity" in details[0]["StatusMessage"]
    world.simulator.set_capacity("g5.xlarge", Purchase.SPOT, None)

    world.wait_for(arn, "RUNNING")


def test_capacity_of_one_zone_is_used_when_the_other_has_none(world: EcsWorld) -> None:
    world.provider()
    world.register()
    world.simulator.set_capacity("g5.xlarge", Purchase.SPOT, 0, zone="us-east-1a")

    arn = world.run_one("g5-spot")

    assert world.wait_for(arn, "RUNNING")["availabilityZone"] == "us-east-1b"


def test_when_nobody_waits_any_more_nothing_more_is_tried(world: EcsWorld) -> None:
    world.provider()
    world.register()
    world.simulator.set_capacity("g5.xlarge", Purchase.SPOT, 0)
    arn = world.run_one("g5-spot")
    world.clock.advance(90)
    world.ecs.stop_task(cluster="c", task=arn)
    world.clock.advance(300)

    assert world.clock.next_due_at() is None


def test_idle_machines_go_and_the_bill_says_what_they_cost() -> None:
    world = EcsWorld(price_of=lambda _type, _zone, purchase: 0.4 if purchase is Purchase.SPOT else 1.0)
    world.provider(max_size=1)
    world.register()
    arn = world.run_one("g5-spot")
    stopped_at = world.wait_for(arn, "STOPPED")["stoppedAt"]

    world.clock.advance(1_000)

    (line,) = world.simulator.machines.bill
    assert line.terminated_at == stopped_at + timedelta(seconds=900 + 20)
    hours = (line.terminated_at - line.launched_at) / timedelta(hours=1)
    assert line.cost_usd(world.clock.now()) == pytest.approx(0.4 * hours)
    assert world.ecs.list_container_instances(cluster="c")["containerInstanceArns"] == []
    assert world.clock.next_due_at() is None


def test_a_group_keeps_its_least_size(world: EcsWorld) -> None:
    world.provider(min_size=1)
    world.clock.advance(4_000)

    assert len(world.ecs.list_container_instances(cluster="c")["containerInstanceArns"]) == 1
    world.register()
    assert world.wait_for(world.run_one("g5-spot"), "RUNNING")


def test_without_managed_scaling_a_task_that_does_not_fit_is_a_failure(world: EcsWorld) -> None:
    world.register()
    from_api = world.simulator.clusters
    world.provider("managed", min_size=1)
    group = next(iter(from_api.providers.values())).group
    from_api.providers["managed"].settings["managedScaling"] = {"status": "DISABLED"}

    assert group.spec.min_size == 1
    assert world.run("managed")["failures"] == [{"reason": "NO ACTIVE INSTANCES"}]
    world.clock.advance(120)
    assert world.run("managed")["tasks"][0]["lastStatus"] == "PENDING"


def test_tasks_are_shared_out_by_base_and_weight(world: EcsWorld) -> None:
    world.provider("a")
    world.provider("b", purchase=Purchase.ON_DEMAND)
    world.register()
    strategy = [
        {"capacityProvider": "a", "weight": 3},
        {"capacityProvider": "b", "weight": 1, "base": 2},
    ]

    answer = world.ecs.run_task(cluster="c", taskDefinition="train", count=10, capacityProviderStrategy=strategy)

    names = [task["capacityProviderName"] for task in answer["tasks"]]
    assert (names.count("a"), names.count("b")) == (6, 4)


def test_the_clusters_default_strategy_is_used_when_a_request_names_none(world: EcsWorld) -> None:
    world.provider()
    world.ecs.put_cluster_capacity_providers(
        cluster="c",
        capacityProviders=["g5-spot"],
        defaultCapacityProviderStrategy=[{"capacityProvider": "g5-spot", "weight": 1}],
    )
    world.register()

    answer = world.ecs.run_task(cluster="c", taskDefinition="train")

    assert answer["tasks"][0]["capacityProviderName"] == "g5-spot"


def test_a_waiting_task_takes_what_another_gives_back() -> None:
    world = EcsWorld(timing=Timing(provisioning_timeout=1_800.0))
    world.provider(max_size=1)
    world.register("train", container(resourceRequirements=gpu()))
    first, second = [task["taskArn"] for task in world.run("g5-spot", count=2)["tasks"]]

    stopped = world.wait_for(first, "STOPPED")
    assert world.task(second)["lastStatus"] == "PENDING"

    assert world.wait_for(second, "STOPPED")["containerInstanceArn"] == stopped["containerInstanceArn"]
