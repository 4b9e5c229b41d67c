from typing import Any

import pytest

from fakes.ecs_region import EcsWorld, container, gpu
from relaunch_local.ecs import Script


def test_a_task_takes_cpu_memory_gpus_and_ports_and_gives_them_back(world: EcsWorld) -> None:
    ports = [{"containerPort": 80, "hostPort": 8_080}, {"containerPort": 53, "hostPort": 5_353, "protocol": "udp"}]
    world.register("train", container(portMappings=ports, resourceRequirements=gpu()))
    instance_id = world.instance()
    before = world.remaining(instance_id)

    arn = world.run_one()
    taken = world.remaining(instance_id)
    gpu_ids = world.task(arn)["containers"][0]["gpuIds"]
    world.wait_for(arn, "STOPPED")

    assert before["CPU"] - taken["CPU"] == 1_024
    assert before["MEMORY"] - taken["MEMORY"] == 2_048
    assert (before["GPU"], taken["GPU"]) == (gpu_ids, [])
    assert "8080" in taken["PORTS"]
    assert taken["PORTS_UDP"] == ["5353"]
    assert world.remaining(instance_id) == before
    assert world.processes.started[0].environment["NVIDIA_VISIBLE_DEVICES"] == ",".join(gpu_ids)


def test_less_memory_is_registered_than_the_machine_has(world: EcsWorld) -> None:
    assert 15_000 < world.remaining(world.instance())["MEMORY"] < 16_384


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
def test_what_does_not_fit_is_named_in_failures(world: EcsWorld, definition: dict[str, Any], reason: str) -> None:
    world.register("train", definition)
    instance_id = world.instance()

    answer = world.run()

    arn = world.simulator.host(instance_id).arn
    assert (answer["tasks"], answer["failures"]) == ([], [{"arn": arn, "reason": reason}])


def test_another_architecture_is_an_attribute_that_lacks(world: EcsWorld) -> None:
    world.register(runtimePlatform={"cpuArchitecture": "ARM64"})
    world.instance()
    assert world.run()["failures"][0]["reason"] == "ATTRIBUTE"

    world.instance("m7g.large")
    assert world.run()["tasks"]


def test_a_disconnected_agent_is_named_in_failures(world: EcsWorld) -> None:
    world.register()
    world.simulator.set_agent(world.instance(), connected=False)

    assert world.run()["failures"][0]["reason"] == "AGENT"


def test_as_many_tasks_run_as_fit(world: EcsWorld) -> None:
    world.register("train", container(resourceRequirements=gpu()))
    world.instance("g5.12xlarge")

    answer = world.run(count=6)

    assert len(answer["tasks"]) == 4
    assert [each["reason"] for each in answer["failures"]] == ["RESOURCE:GPU"] * 2
    pinned = [gpu_id for task in answer["tasks"] for gpu_id in world.task(task["taskArn"])["containers"][0]["gpuIds"]]
    assert len(set(pinned)) == 4


def test_all_gpus_need_an_instance_to_themselves(world: EcsWorld) -> None:
    world.register("one", container(resourceRequirements=gpu()))
    world.register("all", container(resourceRequirements=gpu("ALL")))
    world.instance("g5.12xlarge")
    first = world.run_one(taskDefinition="all")

    assert len(world.task(first)["containers"][0]["gpuIds"]) == 4
    assert world.run(taskDefinition="one")["failures"][0]["reason"] == "RESOURCE:GPU"
    world.wait_for(first, "STOPPED")
    world.run_one(taskDefinition="one")
    assert world.run(taskDefinition="all")["failures"][0]["reason"] == "RESOURCE:GPU"


def test_the_override_of_a_gpu_count_replaces_the_definitions(world: EcsWorld) -> None:
    world.register("train", container(resourceRequirements=gpu()))
    world.instance("g5.12xlarge")

    arn = world.run_one(overrides={"containerOverrides": [{"name": "main", "resourceRequirements": gpu(3)}]})

    assert len(world.task(arn)["containers"][0]["gpuIds"]) == 3


def test_a_fixed_host_port_is_there_once_and_a_dynamic_one_often(world: EcsWorld) -> None:
    world.register("fixed", container(portMappings=[{"containerPort": 80, "hostPort": 48_620}]))
    world.register("dynamic", container(cpu=128, portMappings=[{"containerPort": 80}]))
    world.instance()
    world.run_one(taskDefinition="fixed")

    assert world.run(taskDefinition="fixed")["failures"][0]["reason"] == "RESOURCE:PORTS"
    tasks = world.run(taskDefinition="dynamic", count=2)["tasks"]
    bindings = [world.task(task["taskArn"])["containers"][0]["networkBindings"][0]["hostPort"] for task in tasks]
    assert bindings == [32_768, 32_769]


def test_a_constraint_chooses_the_instance(world: EcsWorld) -> None:
    world.register()
    world.instance()
    other = world.instance("g5.12xlarge", zone="us-east-1b", attributes={"stack": "prod"})
    expression = f"ec2InstanceId == {other} and attribute:ecs.instance-type == g5.12xlarge and attribute:stack == prod"

    arn = world.run_one(placementConstraints=[{"type": "memberOf", "expression": expression}])

    assert world.instance_of(arn) == other
    assert world.task(arn)["availabilityZone"] == "us-east-1b"


def test_a_constraint_of_the_definition_counts_too(world: EcsWorld) -> None:
    expression = "attribute:ecs.instance-type == g5.12xlarge"
    world.register(placementConstraints=[{"type": "memberOf", "expression": expression}])
    world.instance()

    assert world.run()["failures"] == [{"reason": "MemberOf placement constraint unsatisfied."}]


def test_distinct_instances_are_distinct_for_a_group(world: EcsWorld) -> None:
    world.register()
    world.instance()
    constraint = [{"type": "distinctInstance"}]
    world.run_one(placementConstraints=constraint)

    assert world.run(placementConstraints=constraint)["failures"]
    assert world.run(placementConstraints=constraint, group="other")["tasks"]


@pytest.mark.parametrize(
    ("strategy", "instances"),
    [
        ([{"type": "binpack", "field": "memory"}], 1),
        ([{"type": "spread", "field": "instanceId"}], 2),
        ([{"type": "spread", "field": "attribute:ecs.availability-zone"}], 2),
        ([{"type": "random"}], 1),
    ],
)
def test_a_strategy_orders_what_fits(world: EcsWorld, strategy: list[dict[str, str]], instances: int) -> None:
    world.register()
    world.instance(zone="us-east-1a")
    world.instance(zone="us-east-1b")

    tasks = world.run(count=2, placementStrategy=strategy)["tasks"]

    assert len({task["containerInstanceArn"] for task in tasks}) == instances


def test_draining_takes_no_new_tasks_and_leaves_standalone_tasks_alone(world: EcsWorld) -> None:
    world.register()
    world.script = lambda _spec: Script(runtime_seconds=None)
    instance_id = world.instance()
    arn = world.run_one()
    host_arn = world.simulator.host(instance_id).arn

    answer = world.ecs.update_container_instances_state(cluster="c", containerInstances=[host_arn], status="DRAINING")
    world.clock.advance(3_000)

    assert answer["containerInstances"][0]["status"] == "DRAINING"
    assert world.run()["failures"] == [{"reason": "NO ACTIVE INSTANCES"}]
    assert world.task(arn)["lastStatus"] == "RUNNING"
    assert world.ecs.list_container_instances(cluster="c", status="ACTIVE")["containerInstanceArns"] == []


def test_an_instance_is_found_by_its_ec2_id_and_its_tasks_by_the_instance(world: EcsWorld) -> None:
    world.register()
    instance_id = world.instance()
    world.instance()
    arn = world.run_one(placementConstraints=[{"type": "memberOf", "expression": f"ec2InstanceId == {instance_id}"}])

    found = world.ecs.list_container_instances(cluster="c", filter=f"ec2InstanceId == {instance_id}")
    (host_arn,) = found["containerInstanceArns"]

    assert world.ecs.list_tasks(cluster="c", containerInstance=host_arn)["taskArns"] == [arn]
    view = world.ecs.describe_container_instances(cluster="c", containerInstances=[host_arn, "0" * 32])
    assert view["containerInstances"][0]["ec2InstanceId"] == instance_id
    assert view["failures"][0]["reason"] == "MISSING"


def test_awsvpc_tasks_have_an_interface(world: EcsWorld) -> None:
    world.register(networkMode="awsvpc")
    world.instance()

    arn = world.run_one(networkConfiguration={"awsvpcConfiguration": {"subnets": ["subnet-1"]}})

    assert world.task(arn)["attachments"][0]["type"] == "ElasticNetworkInterface"
