from typing import Any

import pytest

from fakes.simulated_region import SimulatedRegion, gpu

AWSVPC = {"awsvpcConfiguration": {"subnets": ["subnet-1"]}}

ONE = [{"capacityProvider": "g5-spot", "weight": 1}]


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

    assert region.error_code("run_task", **request) == code
    assert region.ecs.list_tasks(cluster="c")["taskArns"] == []


def test_an_override_at_the_limit_of_characters_is_accepted(region: SimulatedRegion) -> None:
    region.provider()
    region.register()
    frame = len('{"containerOverrides":[{"name":"main","command":[""]}]}')

    overrides = {"containerOverrides": [{"name": "main", "command": ["é" * (8_192 - frame)]}]}

    assert region.run("g5-spot", overrides=overrides)["tasks"]
