from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.simulated_region import SimulatedRegion, container, gpu

AWSVPC = {"awsvpcConfiguration": {"subnets": ["subnet-1"]}}
ONE = [{"capacityProvider": "g5-spot", "weight": 1}]


def code_of(region: SimulatedRegion, method: str, **request: Any) -> str:
    with pytest.raises(ClientError) as caught:
        getattr(region.ecs, method)(**request)
    return str(caught.value.response["Error"]["Code"])


def member_of(expression: str) -> list[dict[str, str]]:
    return [{"type": "memberOf", "expression": expression}]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        pytest.param({"count": 11}, "InvalidParameterException", id="count-11"),
        pytest.param({"count": 0}, "InvalidParameterException", id="count-0"),
        pytest.param({"startedBy": "a" * 129}, "InvalidParameterException", id="started-by-too-long"),
        pytest.param({"startedBy": "job:1"}, "InvalidParameterException", id="started-by-colon"),
        pytest.param({"clientToken": "t" * 65}, "InvalidParameterException", id="token-too-long"),
        pytest.param({"clientToken": "a b"}, "InvalidParameterException", id="token-space"),
        pytest.param({"clientToken": "é"}, "InvalidParameterException", id="token-not-ascii"),
        pytest.param(
            {"launchType": "EC2", "capacityProviderStrategy": ONE}, "InvalidParameterException", id="both-ways"
        ),
        pytest.param({"launchType": "FOO"}, "InvalidParameterException", id="launch-type"),
        pytest.param({"launchType": "FARGATE"}, "UnsupportedFeatureException", id="fargate"),
        pytest.param(
            {"capacityProviderStrategy": [{"capacityProvider": "nope"}]}, "InvalidParameterException", id="provider"
        ),
        pytest.param(
            {"capacityProviderStrategy": [*ONE, *ONE]}, "InvalidParameterException", id="provider-named-twice"
        ),
        pytest.param({"taskDefinition": "nope"}, "ClientException", id="unknown-family"),
        pytest.param({"taskDefinition": "train:9"}, "ClientException", id="unknown-revision"),
        pytest.param({"taskDefinition": "train:x"}, "InvalidParameterException", id="revision-no-number"),
        pytest.param({"cluster": "other"}, "ClusterNotFoundException", id="unknown-cluster"),
        pytest.param({"networkConfiguration": AWSVPC}, "InvalidParameterException", id="network-not-wanted"),
        pytest.param({"taskDefinition": "vpc"}, "InvalidParameterException", id="network-wanted"),
        pytest.param(
            {"overrides": {"containerOverrides": [{"name": "nope"}]}}, "InvalidParameterException", id="container"
        ),
        pytest.param(
            {"overrides": {"containerOverrides": [{"name": "main", "command": ["x" * 8_192]}]}},
            "InvalidParameterException",
            id="overrides-too-long",
        ),
        pytest.param(
            {"overrides": {"containerOverrides": [{"name": "main", "resourceRequirements": gpu("two")}]}},
            "InvalidParameterException",
            id="gpu-value",
        ),
        pytest.param({"placementConstraints": member_of("garbage")}, "InvalidParameterException", id="expression"),
        pytest.param(
            {"placementConstraints": member_of("attribute:a == " + "x" * 2_000)},
            "InvalidParameterException",
            id="expression-too-long",
        ),
        pytest.param(
            {"placementConstraints": member_of("attribute:a exists") * 11},
            "InvalidParameterException",
            id="constraints-11",
        ),
        pytest.param(
            {"taskDefinition": "guarded", "placementConstraints": member_of("attribute:a exists") * 10},
            "InvalidParameterException",
            id="constraints-11-with-the-definition's",
        ),
        pytest.param({"placementConstraints": [{"type": "near"}]}, "InvalidParameterException", id="constraint-type"),
        pytest.param({"placementStrategy": [{"type": "best"}]}, "InvalidParameterException", id="strategy-type"),
        pytest.param({"group": "family:other"}, "InvalidParameterException", id="reserved-group"),
        pytest.param({"tags": [{"key": "a"}, {"key": "a"}]}, "InvalidParameterException", id="same-tag"),
        pytest.param({"tags": [{"key": "aws:x"}]}, "InvalidParameterException", id="reserved-tag"),
        pytest.param(
            {"tags": [{"key": str(n), "value": ""} for n in range(51)]}, "InvalidParameterException", id="tags-51"
        ),
        pytest.param({"launchType": "EC2"}, "InvalidParameterException", id="no-instances"),
    ],
)
def test_run_task_refuses(region: SimulatedRegion, request_: dict[str, Any], code: str) -> None:
    region.provider()
    region.register()
    region.register("vpc", networkMode="awsvpc")
    region.register("guarded", placementConstraints=member_of("attribute:b exists"))

    request = {"cluster": "c", "taskDefinition": "train", "capacityProviderStrategy": ONE, **request_}
    if "launchType" in request_ and "capacityProviderStrategy" not in request_:
        del request["capacityProviderStrategy"]

    assert code_of(region, "run_task", **request) == code
    assert region.ecs.list_tasks(cluster="c")["taskArns"] == []


def test_an_override_at_the_limit_of_characters_is_accepted(region: SimulatedRegion) -> None:
    region.provider()
    region.register()
    frame = len('{"containerOverrides":[{"name":"main","command":[""]}]}')

    overrides = {"containerOverrides": [{"name": "main", "command": ["é" * (8_192 - frame)]}]}

    assert region.run("g5-spot", overrides=overrides)["tasks"]


@pytest.mark.parametrize(
    ("containers", "members", "code"),
    [
        pytest.param([], {}, "ClientException", id="no-container"),
        pytest.param([container(image="")], {}, "ClientException", id="no-image"),
        pytest.param([{"name": "main", "image": "i"}], {}, "ClientException", id="no-memory"),
        pytest.param([container(memory=4)], {}, "ClientException", id="memory-below-6-mib"),
        pytest.param([container(memoryReservation=4_096)], {}, "ClientException", id="reservation-above-memory"),
        pytest.param([container(), container()], {}, "ClientException", id="same-name"),
        pytest.param([container(essential=False)], {}, "ClientException", id="nothing-essential"),
        pytest.param([container(resourceRequirements=gpu("0"))], {}, "ClientException", id="gpu-0"),
        pytest.param([container(resourceRequirements=gpu("1.5"))], {}, "ClientException", id="gpu-fraction"),
        pytest.param(
            [container(resourceRequirements=[{"type": "NeuronDevice", "value": "ALL"}])],
            {},
            "ClientException",
            id="neuron",
        ),
        pytest.param([container(portMappings=[{"containerPort": 70_000}])], {}, "ClientException", id="port"),
        pytest.param(
            [container(portMappings=[{"containerPort": 80, "hostPort": 81}])],
            {"networkMode": "host"},
            "ClientException",
            id="host-mode-ports-differ",
        ),
        pytest.param(
            [container(portMappings=[{"containerPort": 80, "hostPort": 81}, {"containerPort": 82, "hostPort": 81}])],
            {},
            "ClientException",
            id="same-host-port",
        ),
        pytest.param(
            [container(logConfiguration={"logDriver": "awslogs", "options": {"awslogs-group": "g"}})],
            {},
            "ClientException",
            id="awslogs-without-region",
        ),
        pytest.param(
            [container(dependsOn=[{"containerName": "db", "condition": "START"}])],
            {},
            "ClientException",
            id="depends-on",
        ),
        pytest.param([container()], {"networkMode": "magic"}, "ClientException", id="network-mode"),
        pytest.param([container()], {"cpu": "much"}, "ClientException", id="cpu"),
        pytest.param([container()], {"placementConstraints": member_of("nope")}, "ClientException", id="expression"),
        pytest.param(
            [container()], {"placementConstraints": [{"type": "distinctInstance"}]}, "ClientException", id="constraint"
        ),
        pytest.param([container()], {"tags": [{"key": "aws:a"}]}, "ClientException", id="tag"),
    ],
)
def test_register_task_definition_refuses(
    region: SimulatedRegion, containers: list[dict[str, Any]], members: dict[str, Any], code: str
) -> None:
    assert code_of(region, "register_task_definition", family="f", containerDefinitions=containers, **members) == code
    assert region.ecs.list_task_definitions()["taskDefinitionArns"] == []


@pytest.mark.parametrize("family", ["bad family!", "a/b", "", "x" * 256])
def test_a_family_has_letters_numbers_underscores_and_hyphens(region: SimulatedRegion, family: str) -> None:
    assert (
        code_of(region, "register_task_definition", family=family, containerDefinitions=[container()])
        == "ClientException"
    )


TASK = "0" * 32


@pytest.mark.parametrize(
    ("method", "request_", "code"),
    [
        ("stop_task", {"cluster": "c", "task": TASK}, "InvalidParameterException"),
        ("stop_task", {"cluster": "c", "task": "short"}, "InvalidParameterException"),
        ("stop_task", {"task": TASK}, "ClusterNotFoundException"),
        ("describe_tasks", {"cluster": "c", "tasks": []}, "InvalidParameterException"),
        ("describe_tasks", {"cluster": "c", "tasks": [TASK] * 101}, "InvalidParameterException"),
        (
            "describe_tasks",
            {"cluster": "c", "tasks": [f"arn:aws:ecs:us-east-1:111122223333:task/other/{TASK}"]},
            "InvalidParameterException",
        ),
        ("list_tasks", {"cluster": "c", "startedBy": "j", "family": "train"}, "InvalidParameterException"),
        ("list_tasks", {"cluster": "c", "startedBy": "j", "launchType": "EC2"}, "InvalidParameterException"),
        ("list_tasks", {"cluster": "c", "desiredStatus": "DONE"}, "InvalidParameterException"),
        ("list_tasks", {"cluster": "c", "maxResults": 101}, "InvalidParameterException"),
        ("list_tasks", {"cluster": "c", "nextToken": "x"}, "InvalidParameterException"),
        ("list_tasks", {"cluster": "c", "serviceName": "s"}, "ServiceNotFoundException"),
        ("list_container_instances", {"cluster": "c", "filter": "nope"}, "InvalidParameterException"),
        (
            "update_container_instances_state",
            {"cluster": "c", "containerInstances": [TASK], "status": "GONE"},
            "InvalidParameterException",
        ),
        ("describe_task_definition", {"taskDefinition": "nope"}, "ClientException"),
        ("deregister_task_definition", {"taskDefinition": "train"}, "InvalidParameterException"),
        ("deregister_task_definition", {"taskDefinition": "train:4"}, "ClientException"),
        ("list_task_definitions", {"sort": "UP"}, "InvalidParameterException"),
        ("list_task_definitions", {"status": "GONE"}, "InvalidParameterException"),
        (
            "create_capacity_provider",
            {"name": "ecs-x", "autoScalingGroupProvider": {"autoScalingGroupArn": "arn"}},
            "ClientException",
        ),
        (
            "create_capacity_provider",
            {"name": "x", "autoScalingGroupProvider": {"autoScalingGroupArn": "arn"}},
            "ClientException",
        ),
        (
            "put_cluster_capacity_providers",
            {"cluster": "c", "capacityProviders": ["nope"], "defaultCapacityProviderStrategy": []},
            "InvalidParameterException",
        ),
        ("list_tags_for_resource", {"resourceArn": "nope"}, "InvalidParameterException"),
        ("make_coffee", {}, "UnknownOperationException"),
    ],
)
def test_other_actions_refuse(region: SimulatedRegion, method: str, request_: dict[str, Any], code: str) -> None:
    region.register()

    assert code_of(region, method, **request_) == code


def test_a_parameter_of_the_wrong_type_is_refused(region: SimulatedRegion) -> None:
    assert code_of(region, "list_tasks", cluster="c", maxResults="many") == "ParamValidationError"


def test_a_provider_that_another_cluster_uses_cannot_be_associated(region: SimulatedRegion) -> None:
    region.provider()
    region.ecs.create_cluster(clusterName="d")

    code = code_of(
        region,
        "put_cluster_capacity_providers",
        cluster="d",
        capacityProviders=["g5-spot"],
        defaultCapacityProviderStrategy=[],
    )

    assert code == "InvalidParameterException"


def test_a_provider_with_tasks_cannot_be_removed(region: SimulatedRegion) -> None:
    region.provider()
    region.register()
    region.run_one("g5-spot")

    code = code_of(
        region, "put_cluster_capacity_providers", cluster="c", capacityProviders=[], defaultCapacityProviderStrategy=[]
    )

    assert code == "ResourceInUseException"


def test_the_501st_waiting_task_is_refused(region: SimulatedRegion) -> None:
    region.simulator.limits.enabled = False
    region.provider()
    region.register()
    for _ in range(50):
        region.run("g5-spot", count=10)

    code = code_of(region, "run_task", cluster="c", taskDefinition="train", capacityProviderStrategy=ONE)

    assert code == "ClientException"
    arn = region.ecs.list_tasks(cluster="c", maxResults=1)["taskArns"][0]
    region.ecs.stop_task(cluster="c", task=arn)
    assert region.run("g5-spot")["tasks"]
