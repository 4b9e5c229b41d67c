from typing import Any

import pytest

from fakes.simulated_region import SimulatedRegion, gpu, member_of

AWSVPC = {"awsvpcConfiguration": {"subnets": ["subnet-1"]}}
INVALID = "InvalidParameterException"
ONE = [{"capacityProvider": "g5-spot", "weight": 1}]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        pytest.param({"count": 11}, INVALID, id="count-11"),
        pytest.param({"count": 0}, INVALID, id="count-0"),
        pytest.param({"startedBy": "a" * 129}, INVALID, id="started-by-too-long"),
        pytest.param({"startedBy": "job\n"}, INVALID, id="started-by-line-feed"),
        pytest.param({"clientToken": "t\n"}, INVALID, id="token-line-feed"),
        pytest.param({"startedBy": "job:1"}, INVALID, id="started-by-colon"),
        pytest.param({"clientToken": "t" * 65}, INVALID, id="token-too-long"),
        pytest.param({"clientToken": "a b"}, INVALID, id="token-space"),
        pytest.param({"clientToken": "é"}, INVALID, id="token-not-ascii"),
        pytest.param({"launchType": "EC2", "capacityProviderStrategy": ONE}, INVALID, id="both-ways"),
        pytest.param({"launchType": "FOO"}, INVALID, id="launch-type"),
        pytest.param({"launchType": "FARGATE"}, "UnsupportedFeatureException", id="fargate"),
        pytest.param({"capacityProviderStrategy": [{"capacityProvider": "nope"}]}, INVALID, id="provider"),
        pytest.param({"capacityProviderStrategy": [*ONE, *ONE]}, INVALID, id="provider-named-twice"),
        pytest.param({"taskDefinition": "nope"}, "ClientException", id="unknown-family"),
        pytest.param({"taskDefinition": "train:9"}, "ClientException", id="unknown-revision"),
        pytest.param({"taskDefinition": "train:x"}, INVALID, id="revision-no-number"),
        pytest.param({"cluster": "other"}, "ClusterNotFoundException", id="unknown-cluster"),
        pytest.param({"networkConfiguration": AWSVPC}, INVALID, id="network-not-wanted"),
        pytest.param({"taskDefinition": "vpc"}, INVALID, id="network-wanted"),
        pytest.param({"overrides": {"containerOverrides": [{"name": "nope"}]}}, INVALID, id="container"),
        pytest.param(
            {"overrides": {"containerOverrides": [{"name": "main", "command": ["x" * 8_192]}]}},
            INVALID,
            id="overrides-too-long",
        ),
        pytest.param(
            {"overrides": {"containerOverrides": [{"name": "main", "resourceRequirements": gpu("two")}]}},
            INVALID,
            id="gpu-value",
        ),
        pytest.param({"placementConstraints": member_of("garbage")}, INVALID, id="expression"),
        pytest.param(
            {"placementConstraints": member_of("attribute:a == " + "x" * 2_000)}, INVALID, id="expression-too-long"
        ),
        pytest.param({"placementConstraints": member_of("attribute:a exists") * 11}, INVALID, id="constraints-11"),
        pytest.param(
            {"taskDefinition": "guarded", "placementConstraints": member_of("attribute:a exists") * 10},
            INVALID,
            id="constraints-11-with-the-definition's",
        ),
        pytest.param({"placementConstraints": [{"type": "near"}]}, INVALID, id="constraint-type"),
        pytest.param({"placementStrategy": [{"type": "best"}]}, INVALID, id="strategy-type"),
        pytest.param({"group": "family:other"}, INVALID, id="reserved-group"),
        pytest.param({"tags": [{"key": "a"}, {"key": "a"}]}, INVALID, id="same-tag"),
        pytest.param({"tags": [{"key": "aws:x"}]}, INVALID, id="reserved-tag"),
        pytest.param({"tags": [{"key": str(n), "value": ""} for n in range(51)]}, INVALID, id="tags-51"),
        pytest.param({"launchType": "EC2"}, INVALID, id="no-instances"),
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

    assert region.error_code("run_task", **request) == code
    assert region.ecs.list_tasks(cluster="c")["taskArns"] == []


ROLE = "arn:aws:iam::111122223333:role/trainer"
NO_ROLE = (
    "InvalidParameterException: The execute command failed because a valid task role is not being used. "
    "Specify a valid task role in your task definition or as a task override and try again."
)


def test_execute_command_needs_a_task_role_of_the_definition_or_the_override(offered: SimulatedRegion) -> None:
    request = {"cluster": "c", "taskDefinition": "train", "capacityProviderStrategy": ONE}

    assert offered.error("run_task", **request, enableExecuteCommand=True) == NO_ROLE
    assert offered.run("g5-spot", enableExecuteCommand=True, overrides={"taskRoleArn": ROLE})["tasks"]
    offered.register(taskRoleArn=ROLE)
    assert offered.run("g5-spot", enableExecuteCommand=True)["tasks"]


def test_a_standalone_task_has_no_service_whose_tags_to_propagate(offered: SimulatedRegion) -> None:
    request = {"cluster": "c", "taskDefinition": "train", "capacityProviderStrategy": ONE}

    error = offered.error("run_task", **request, propagateTags="SERVICE")

    assert error == "InvalidParameterException: Propagate tags should be one of [TASK_DEFINITION,NONE]"
    assert offered.run("g5-spot", propagateTags="NONE")["tasks"]


def test_an_override_of_the_cpu_has_the_bounds_of_a_task(offered: SimulatedRegion) -> None:
    request = {"cluster": "c", "taskDefinition": "train", "capacityProviderStrategy": ONE}

    assert offered.error_code("run_task", **request, overrides={"cpu": "127"}) == INVALID
    assert offered.run("g5-spot", overrides={"cpu": "128"})["tasks"]


def test_an_override_at_the_limit_of_characters_is_accepted(offered: SimulatedRegion) -> None:
    frame = len('{"containerOverrides":[{"name":"main","command":[""]}]}')

    overrides = {"containerOverrides": [{"name": "main", "command": ["é" * (8_192 - frame)]}]}

    assert offered.run("g5-spot", overrides=overrides)["tasks"]
