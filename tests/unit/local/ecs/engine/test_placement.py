from typing import Any

import pytest

from fakes.simulated_region import SimulatedRegion, container, gpu, member_of
from relaunch_local.ecs import Script


def test_a_task_takes_cpu_memory_gpus_and_ports_and_gives_them_back(region: SimulatedRegion) -> None:
    ports = [{"containerPort": 80, "hostPort": 8_080}, {"containerPort": 53, "hostPort": 5_353, "protocol": "udp"}]
    region.register("train", container(portMappings=ports, resourceRequirements=gpu()))
    instance_id = region.instance()
    before = region.remaining(instance_id)

    arn = region.run_one()
    taken = region.remaining(instance_id)
    gpu_ids = region.task(arn)["containers"][0]["gpuIds"]
    region.wait_for(arn, "STOPPED")

    assert before["CPU"] - taken["CPU"] == 1_024
    assert before["MEMORY"] - taken["MEMORY"] == 2_048
    assert (before["GPU"], taken["GPU"]) == (gpu_ids, [])
    assert "8080" in taken["PORTS"]
    assert taken["PORTS_UDP"] == ["5353"]
    assert region.remaining(instance_id) == before
    assert region.processes.started[0].environment["NVIDIA_VISIBLE_DEVICES"] == ",".join(gpu_ids)


def test_less_memory_is_registered_than_the_machine_has(region: SimulatedRegion) -> None:
    assert 15_000 < region.remaining(region.instance())["MEMORY"] < 16_384


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        pytest.param(container(cpu=4_097), "RESOURCE:CPU", id="cpu"),
        pytest.param(container(memory=16_384), "RESOURCE:MEMORY", id="memory-the-agent-keeps"),
        pytest.param(container(resourceRequirements=gpu(2)), "RESOURCE:GPU", id="gpu"),
        pytest.param(container(portMappings=[{"containerPort": 22, "hostPort": 22}]), "RESOURCE:PORTS", id="ssh"),
        pytest.param(container(portMappings=[{"containerPort": 80, "hostPort": 51_678}]), "RESOURCE:PORTS", id="agent"),
        pytest.param(container(logConfiguration={"logDriver": "splunk"}), "ATTRIBUTE", id="log-driver"),
    ],
)
def test_what_does_not_fit_is_named_in_failures(
    region: SimulatedRegion, definition: dict[str, Any], reason: str
) -> None:
    region.register("train", definition)
    instance_id = region.instance()

    answer = region.run()

    arn = region.simulator.instance(instance_id).arn
    assert (answer["tasks"], answer["failures"]) == ([], [{"arn": arn, "reason": reason}])


def test_another_architecture_is_an_attribute_that_lacks(region: SimulatedRegion) -> None:
    region.register(runtimePlatform={"cpuArchitecture": "ARM64"})
    region.instance()
    assert region.run()["failures"][0]["reason"] == "ATTRIBUTE"

    region.instance("m7g.large")
    assert region.run()["tasks"]


def test_a_disconnected_agent_is_named_in_failures(region: SimulatedRegion) -> None:
    region.register()
    region.simulator.set_agent(region.instance(), connected=False)

    assert region.run()["failures"][0]["reason"] == "AGENT"


def test_as_many_tasks_run_as_fit(region: SimulatedRegion) -> None:
    region.register("train", container(resourceRequirements=gpu()))
    region.instance("g5.12xlarge")

    answer = region.run(count=6)

    assert len(answer["tasks"]) == 4
    assert [each["reason"] for each in answer["failures"]] == ["RESOURCE:GPU"] * 2
    pinned = [gpu_id for task in answer["tasks"] for gpu_id in region.task(task["taskArn"])["containers"][0]["gpuIds"]]
    assert len(set(pinned)) == 4


def test_all_gpus_need_an_instance_to_themselves(region: SimulatedRegion) -> None:
    region.register("one", container(resourceRequirements=gpu()))
    region.register("all", container(resourceRequirements=gpu("ALL")))
    region.instance("g5.12xlarge")
    first = region.run_one(taskDefinition="all")

    assert len(region.task(first)["containers"][0]["gpuIds"]) == 4
    assert region.run(taskDefinition="one")["failures"][0]["reason"] == "RESOURCE:GPU"
    region.wait_for(first, "STOPPED")
    region.run_one(taskDefinition="one")
    assert region.run(taskDefinition="all")["failures"][0]["reason"] == "RESOURCE:GPU"


def test_the_override_of_a_gpu_count_replaces_the_definitions(region: SimulatedRegion) -> None:
    region.register("train", container(resourceRequirements=gpu()))
    region.instance("g5.12xlarge")

    arn = region.run_one(overrides={"containerOverrides": [{"name": "main", "resourceRequirements": gpu(3)}]})

    assert len(region.task(arn)["containers"][0]["gpuIds"]) == 3


def test_a_fixed_host_port_is_there_once_and_a_dynamic_one_often(region: SimulatedRegion) -> None:
    region.register("fixed", container(portMappings=[{"containerPort": 80, "hostPort": 48_620}]))
    region.register("dynamic", container(cpu=128, portMappings=[{"containerPort": 80}]))
    region.instance()
    region.run_one(taskDefinition="fixed")

    assert region.run(taskDefinition="fixed")["failures"][0]["reason"] == "RESOURCE:PORTS"
    tasks = region.run(taskDefinition="dynamic", count=2)["tasks"]
    bindings = [region.task(task["taskArn"])["containers"][0]["networkBindings"][0]["hostPort"] for task in tasks]
    assert bindings == [32_768, 32_769]


def test_a_constraint_chooses_the_instance(region: SimulatedRegion) -> None:
    region.register()
    region.instance()
    other = region.instance("g5.12xlarge", zone="us-east-1b", attributes={"stack": "prod"})
    expression = f"ec2InstanceId == {other} and attribute:ecs.instance-type == g5.12xlarge and attribute:stack == prod"

    arn = region.run_one(placementConstraints=member_of(expression))

    assert region.instance_of(arn) == other
    assert region.task(arn)["availabilityZone"] == "us-east-1b"


def test_a_constraint_of_the_definition_counts_too(region: SimulatedRegion) -> None:
    expression = "attribute:ecs.instance-type == g5.12xlarge"
    region.register(placementConstraints=member_of(expression))
    region.instance()

    assert region.run()["failures"] == [{"reason": "MemberOf placement constraint unsatisfied."}]


def test_distinct_instances_are_distinct_for_a_group(region: SimulatedRegion) -> None:
    region.register()
    region.instance()
    constraint = [{"type": "distinctInstance"}]
    region.run_one(placementConstraints=constraint)

    assert region.run(placementConstraints=constraint)["failures"]
    assert region.run(placementConstraints=constraint, group="other")["tasks"]


@pytest.mark.parametrize(
    ("strategy", "instances"),
    [
        ([{"type": "binpack", "field": "memory"}], 1),
        ([{"type": "spread", "field": "instanceId"}], 2),
        ([{"type": "spread", "field": "attribute:ecs.availability-zone"}], 2),
        ([{"type": "random"}], 1),
    ],
)
def test_a_strategy_orders_what_fits(region: SimulatedRegion, strategy: list[dict[str, str]], instances: int) -> None:
    region.register()
    region.instance(zone="us-east-1a")
    region.instance(zone="us-east-1b")

    tasks = region.run(count=2, placementStrategy=strategy)["tasks"]

    assert len({task["containerInstanceArn"] for task in tasks}) == instances


def test_draining_takes_no_new_tasks_and_leaves_standalone_tasks_alone(region: SimulatedRegion) -> None:
    region.register()
    region.script = lambda _spec: Script(runtime_seconds=None)
    instance_id = region.instance()
    arn = region.run_one()
    instance_arn = region.simulator.instance(instance_id).arn

    answer = region.ecs.update_container_instances_state(
        cluster="c", containerInstances=[instance_arn], status="DRAINING"
    )
    region.clock.advance(3_000)

    assert answer["containerInstances"][0]["status"] == "DRAINING"
    assert region.run()["failures"] == [{"reason": "NO ACTIVE INSTANCES"}]
    assert region.task(arn)["lastStatus"] == "RUNNING"
    assert region.ecs.list_container_instances(cluster="c", status="ACTIVE")["containerInstanceArns"] == []


def test_an_instance_is_found_by_its_ec2_id_and_its_tasks_by_the_instance(region: SimulatedRegion) -> None:
    region.register()
    instance_id = region.instance()
    region.instance()
    arn = region.run_one(placementConstraints=member_of(f"ec2InstanceId == {instance_id}"))

    found = region.ecs.list_container_instances(cluster="c", filter=f"ec2InstanceId == {instance_id}")
    (instance_arn,) = found["containerInstanceArns"]

    assert region.ecs.list_tasks(cluster="c", containerInstance=instance_arn)["taskArns"] == [arn]
    view = region.ecs.describe_container_instances(cluster="c", containerInstances=[instance_arn, "0" * 32])
    assert view["containerInstances"][0]["ec2InstanceId"] == instance_id
    assert view["failures"][0]["reason"] == "MISSING"


def test_awsvpc_tasks_have_an_interface(region: SimulatedRegion) -> None:
    region.register(networkMode="awsvpc")
    region.instance()

    arn = region.run_one(networkConfiguration={"awsvpcConfiguration": {"subnets": ["subnet-1"]}})

    assert region.task(arn)["attachments"][0]["type"] == "ElasticNetworkInterface"


def on(instance_id: str, instance_type: str = "g5.xlarge") -> list[dict[str, str]]:
    return member_of(f"ec2InstanceId == {instance_id} and attribute:ecs.instance-type == {instance_type}")


def test_the_launch_type_ec2_considers_the_machines_of_capacity_providers_too(offered: SimulatedRegion) -> None:
    offered.register("train")
    first = offered.run_one("g5-spot")
    offered.wait_for(first, "RUNNING")
    of_provider = offered.instance_of(first)
    own = offered.instance()

    somewhere = offered.run_one()

    assert offered.instance_of(somewhere) == of_provider
    assert offered.instance_of(offered.run_one(placementConstraints=on(own))) == own


def test_a_task_for_one_instance_is_placed_there_or_fails_at_once(region: SimulatedRegion) -> None:
    region.register("train", container(resourceRequirements=gpu()))
    instance_id = region.instance()
    region.instance()
    arn = region.simulator.instance(instance_id).arn
    assert region.instance_of(region.run_one(placementConstraints=on(instance_id))) == instance_id

    full = region.run(placementConstraints=on(instance_id))
    other_type = region.run(placementConstraints=on(instance_id, "g5.12xlarge"))
    unknown = region.run(placementConstraints=on("i-0123456789abcdef0"))

    assert (full["tasks"], full["failures"]) == ([], [{"arn": arn, "reason": "RESOURCE:GPU"}])
    unsatisfied = [{"reason": "MemberOf placement constraint unsatisfied."}]
    assert other_type["failures"] == unknown["failures"] == unsatisfied
