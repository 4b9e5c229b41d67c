from typing import Any

import pytest

from fakes.simulated_region import SimulatedRegion

OURS = "arn:aws:ecs:us-east-1:111122223333"
OTHERS = "arn:aws:ecs:us-east-1:999999999999"
ELSEWHERE = "arn:aws:ecs:eu-west-1:111122223333"
TASK = "0" * 32


@pytest.mark.parametrize(
    ("method", "request_", "resource"),
    [
        ("run_task", {"taskDefinition": "train", "launchType": "EC2"}, ("cluster", "cluster/c")),
        ("run_task", {"cluster": "c", "launchType": "EC2"}, ("taskDefinition", "task-definition/train:1")),
        ("describe_task_definition", {}, ("taskDefinition", "task-definition/train:1")),
        ("deregister_task_definition", {}, ("taskDefinition", "task-definition/train:1")),
        ("list_tasks", {}, ("cluster", "cluster/c")),
        ("list_tags_for_resource", {}, ("resourceArn", "cluster/c")),
    ],
)
def test_an_arn_of_another_account_or_region_is_not_ours(
    region: SimulatedRegion, method: str, request_: dict[str, Any], resource: tuple[str, str]
) -> None:
    region.register()
    region.instance()
    member, name = resource

    account = region.error(method, **request_, **{member: f"{OTHERS}:{name}"})
    other_region = region.error(method, **request_, **{member: f"{ELSEWHERE}:{name}"})

    assert account == "InvalidParameterException: AccountIDs mismatch"
    assert other_region == "InvalidParameterException: Identifier is for eu-west-1. Your region is us-east-1"
    assert getattr(region.ecs, method)(**request_, **{member: f"{OURS}:{name}"})


@pytest.mark.parametrize(
    ("method", "member", "kind"),
    [
        ("describe_tasks", "tasks", "task"),
        ("describe_container_instances", "containerInstances", "container-instance"),
    ],
)
def test_a_task_or_container_instance_is_of_our_account_region_and_cluster(
    region: SimulatedRegion, method: str, member: str, kind: str
) -> None:
    def error(arn: str) -> str:
        return region.error(method, cluster="c", **{member: [arn]}).removeprefix("InvalidParameterException: ")

    assert error(f"{OTHERS}:{kind}/c/{TASK}") == "Identifier is for 999999999999. Your accountId is 111122223333"
    assert error(f"{ELSEWHERE}:{kind}/c/{TASK}") == "Identifier is for eu-west-1. Your region is us-east-1"
    assert error(f"{OURS}:{kind}/d/{TASK}") == "Invalid identifier: Identifier is for cluster d. Your cluster is c"
    answer = getattr(region.ecs, method)(cluster="c", **{member: [f"{OURS}:{kind}/{TASK}"]})
    assert [each["reason"] for each in answer["failures"]] == ["MISSING"]


def test_a_cluster_of_another_account_is_missing(region: SimulatedRegion) -> None:
    answer = region.ecs.describe_clusters(clusters=["c", f"{OURS}:cluster/c", f"{OTHERS}:cluster/c"])

    assert [each["clusterName"] for each in answer["clusters"]] == ["c", "c"]
    assert answer["failures"] == [{"arn": f"{OTHERS}:cluster/c", "reason": "MISSING"}]


def test_a_capacity_provider_is_of_our_account(offered: SimulatedRegion) -> None:
    strategy = [{"capacityProvider": f"{OTHERS}:capacity-provider/g5-spot"}]

    error = offered.error("run_task", cluster="c", taskDefinition="train", capacityProviderStrategy=strategy)
    assert error == "InvalidParameterException: AccountIDs mismatch"

    named = [f"{OTHERS}:capacity-provider/g5-spot"]
    error = offered.error("describe_capacity_providers", capacityProviders=named)
    assert error == "InvalidParameterException: AccountIDs mismatch"
