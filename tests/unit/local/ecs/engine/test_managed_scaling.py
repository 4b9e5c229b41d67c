from datetime import timedelta
from typing import Any

import pytest

from fakes.simulated_region import SimulatedRegion, container, gpu, member_of
from relaunch_local.ecs import Purchase, Script, Timing


def launched(region: SimulatedRegion) -> int:
    return len(region.simulator.instances.bill)


def test_the_first_scale_out_from_zero_starts_two_machines(offered: SimulatedRegion) -> None:
    arn = offered.run_one("g5-spot")

    assert offered.task(arn)["lastStatus"] == "PROVISIONING"
    offered.clock.advance(59)
    assert launched(offered) == 0
    offered.clock.advance(1)
    assert launched(offered) == 2
    task = offered.wait_for(arn, "RUNNING")
    assert (task["capacityProviderName"], task["launchType"]) == ("g5-spot", "EC2")


def test_a_group_of_at_most_one_starts_one(region: SimulatedRegion) -> None:
    region.provider(max_size=1)
    region.register()
    arn = region.run_one("g5-spot")

    region.wait_for(arn, "RUNNING")

    assert launched(region) == 1


def test_as_many_machines_start_as_the_waiting_tasks_need(region: SimulatedRegion) -> None:
    region.provider(max_size=10)
    region.register("train", container(cpu=2_048))

    arns = [task["taskArn"] for task in region.run("g5-spot", count=7)["tasks"]]
    for arn in arns:
        region.wait_for(arn, "RUNNING")

    assert launched(region) == 4
    assert {instance.zone for instance in region.simulator.instances.by_id.values()} == {"us-east-1a", "us-east-1b"}


def test_the_largest_size_holds_and_the_rest_waits_for_its_turn(region: SimulatedRegion) -> None:
    region.provider(max_size=2)
    region.register("train", container(resourceRequirements=gpu()))
    arns = [task["taskArn"] for task in region.run("g5-spot", count=3)["tasks"]]

    region.wait_for(arns[0], "RUNNING")
    assert region.task(arns[2])["lastStatus"] == "PROVISIONING"
    region.wait_for(arns[2], "RUNNING")

    assert launched(region) == 2


@pytest.mark.parametrize(
    ("definition", "constraints"),
    [
        pytest.param(container(cpu=8_192), [], id="larger-than-the-type"),
        pytest.param(
            container(),
            member_of("attribute:ecs.instance-type == g5.2xlarge"),
            id="constraint-the-group-never-meets",
        ),
    ],
)
def test_a_task_that_fits_no_machine_of_the_group_starts_none_and_times_out(
    region: SimulatedRegion, definition: dict[str, Any], constraints: list[dict[str, str]]
) -> None:
    region.provider()
    region.register("train", definition)
    arn = region.run_one("g5-spot", placementConstraints=constraints)

    task = region.wait_for(arn, "STOPPED")

    assert launched(region) == 0
    assert task["stopCode"] == "TaskFailedToStart"
    assert task["stoppedReason"] == "TaskFailedToStart: EMPTY CAPACITY PROVIDER"
    assert task["stoppedAt"] - task["createdAt"] == timedelta(minutes=15)


def test_a_wait_in_vain_for_a_busy_machine_says_what_was_short(region: SimulatedRegion) -> None:
    region.provider(max_size=1)
    region.register("train", container(resourceRequirements=gpu()))
    region.script = lambda _spec: Script(runtime_seconds=None)
    first, second = [task["taskArn"] for task in region.run("g5-spot", count=2)["tasks"]]
    region.wait_for(first, "RUNNING")

    assert region.wait_for(second, "STOPPED")["stoppedReason"] == "TaskFailedToStart: RESOURCE:GPU"


def test_out_of_capacity_is_retried_and_said(offered: SimulatedRegion) -> None:
    offered.simulator.set_capacity("g5.xlarge", Purchase.SPOT, 0)
    arn = offered.run_one("g5-spot")

    offered.clock.advance(300)
    assert (launched(offered), offered.task(arn)["lastStatus"]) == (0, "PROVISIONING")
    details = offered.details("EC2 Instance Launch Unsuccessful")
    assert "InsufficientInstanceCapacity" in details[0]["StatusMessage"]
    offered.simulator.set_capacity("g5.xlarge", Purchase.SPOT, None)

    offered.wait_for(arn, "RUNNING")


def test_capacity_of_one_zone_is_used_when_the_other_has_none(offered: SimulatedRegion) -> None:
    offered.simulator.set_capacity("g5.xlarge", Purchase.SPOT, 0, zone="us-east-1a")

    arn = offered.run_one("g5-spot")

    assert offered.wait_for(arn, "RUNNING")["availabilityZone"] == "us-east-1b"


def test_when_nobody_waits_any_more_nothing_more_is_tried(offered: SimulatedRegion) -> None:
    offered.simulator.set_capacity("g5.xlarge", Purchase.SPOT, 0)
    arn = offered.run_one("g5-spot")
    offered.clock.advance(90)
    offered.ecs.stop_task(cluster="c", task=arn)
    offered.clock.advance(300)

    assert offered.clock.next_due_at() is None


def test_idle_machines_go_and_the_bill_says_what_they_cost() -> None:
    region = SimulatedRegion(price_of=lambda _type, _zone, purchase: 0.4 if purchase is Purchase.SPOT else 1.0)
    region.provider(max_size=1)
    region.register()
    arn = region.run_one("g5-spot")
    stopped_at = region.wait_for(arn, "STOPPED")["stoppedAt"]

    region.clock.advance(1_000)

    (line,) = region.simulator.instances.bill
    assert line.terminated_at == stopped_at + timedelta(seconds=900 + 20)
    hours = (line.terminated_at - line.launched_at) / timedelta(hours=1)
    assert line.cost_usd(region.clock.now()) == pytest.approx(0.4 * hours)
    assert region.ecs.list_container_instances(cluster="c")["containerInstanceArns"] == []
    assert region.clock.next_due_at() is None


def test_a_group_keeps_its_least_size(region: SimulatedRegion) -> None:
    region.provider(min_size=1)
    region.clock.advance(4_000)

    assert len(region.ecs.list_container_instances(cluster="c")["containerInstanceArns"]) == 1
    region.register()
    assert region.wait_for(region.run_one("g5-spot"), "RUNNING")


def test_without_managed_scaling_a_task_that_does_not_fit_is_a_failure(region: SimulatedRegion) -> None:
    region.register()
    from_api = region.simulator.clusters
    region.provider("managed", min_size=1)
    group = next(iter(from_api.providers.values())).group
    from_api.providers["managed"].settings["managedScaling"] = {"status": "DISABLED"}

    assert group.spec.min_size == 1
    assert region.run("managed")["failures"] == [{"reason": "NO ACTIVE INSTANCES"}]
    region.clock.advance(120)
    assert region.run("managed")["tasks"][0]["lastStatus"] == "PENDING"


def test_tasks_are_shared_out_by_base_and_weight(region: SimulatedRegion) -> None:
    region.provider("a")
    region.provider("b", purchase=Purchase.ON_DEMAND)
    region.register()
    strategy = [
        {"capacityProvider": "a", "weight": 3},
        {"capacityProvider": "b", "weight": 1, "base": 2},
    ]

    answer = region.ecs.run_task(cluster="c", taskDefinition="train", count=10, capacityProviderStrategy=strategy)

    names = [task["capacityProviderName"] for task in answer["tasks"]]
    assert (names.count("a"), names.count("b")) == (6, 4)


def test_the_clusters_default_strategy_is_used_when_a_request_names_none(region: SimulatedRegion) -> None:
    region.provider()
    region.ecs.put_cluster_capacity_providers(
        cluster="c",
        capacityProviders=["g5-spot"],
        defaultCapacityProviderStrategy=[{"capacityProvider": "g5-spot", "weight": 1}],
    )
    region.register()

    answer = region.ecs.run_task(cluster="c", taskDefinition="train")

    assert answer["tasks"][0]["capacityProviderName"] == "g5-spot"


def test_a_waiting_task_takes_what_another_gives_back() -> None:
    region = SimulatedRegion(timing=Timing(provisioning_timeout=1_800.0))
    region.provider(max_size=1)
    region.register("train", container(resourceRequirements=gpu()))
    first, second = [task["taskArn"] for task in region.run("g5-spot", count=2)["tasks"]]

    stopped = region.wait_for(first, "STOPPED")
    assert region.task(second)["lastStatus"] == "PENDING"

    assert region.wait_for(second, "STOPPED")["containerInstanceArn"] == stopped["containerInstanceArn"]
