from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.simulated_region import SimulatedRegion, container, share
from relaunch_local.ecs import Timing


def revisions(arns: list[str]) -> list[str]:
    return [arn.rpartition("/")[2] for arn in arns]


def test_describing_a_family_answers_the_newest_active_revision(region: SimulatedRegion) -> None:
    for _ in range(12):
        region.register()
    region.ecs.deregister_task_definition(taskDefinition="train:12")

    assert region.ecs.describe_task_definition(taskDefinition="train")["taskDefinition"]["revision"] == 11
    assert region.ecs.describe_task_definition(taskDefinition="train:12")["taskDefinition"]["status"] == "INACTIVE"


def test_a_family_without_active_revision_cannot_be_described(region: SimulatedRegion) -> None:
    region.register()
    region.ecs.deregister_task_definition(taskDefinition="train:1")

    with pytest.raises(ClientError, match="Unable to describe task definition"):
        region.ecs.describe_task_definition(taskDefinition="train")


def test_revisions_are_listed_in_the_order_of_their_numbers_page_by_page(region: SimulatedRegion) -> None:
    for _ in range(12):
        region.register()
    region.register("train-longer")

    first = region.ecs.list_task_definitions(familyPrefix="train", sort="DESC", maxResults=5)
    second = region.ecs.list_task_definitions(
        familyPrefix="train", sort="DESC", maxResults=100, nextToken=first["nextToken"]
    )

    assert revisions(first["taskDefinitionArns"]) == [f"train:{n}" for n in (12, 11, 10, 9, 8)]
    assert revisions(second["taskDefinitionArns"]) == [f"train:{n}" for n in (7, 6, 5, 4, 3, 2, 1)]
    assert "nextToken" not in second


def test_a_second_revision_of_a_family_is_refused_while_the_first_is_created() -> None:
    region = SimulatedRegion(timing=Timing(revision_creation=2.0))
    region.register()

    with pytest.raises(ClientError, match=r"ClientException.*Too many concurrent attempts to create a new revision"):
        region.register()
    assert region.register("another")["revision"] == 1
    region.clock.advance(2.0)
    assert region.register()["revision"] == 2


def test_a_number_is_not_used_twice(region: SimulatedRegion) -> None:
    region.register()
    region.ecs.deregister_task_definition(taskDefinition="train:1")

    assert region.register()["revision"] == 2


def test_inactive_revisions_are_listed_when_asked_for(region: SimulatedRegion) -> None:
    region.register()
    region.register()
    region.ecs.deregister_task_definition(taskDefinition="train:1")

    listed = region.ecs.list_task_definitions(familyPrefix="train", status="INACTIVE")["taskDefinitionArns"]

    assert revisions(listed) == ["train:1"]
    with pytest.raises(ClientError, match="inactive"):
        region.ecs.deregister_task_definition(taskDefinition="train:1")


def test_families_are_listed_by_prefix_and_status(region: SimulatedRegion) -> None:
    region.register()
    region.register("train-longer")
    region.register("other")
    region.ecs.deregister_task_definition(taskDefinition="train-longer:1")

    assert region.ecs.list_task_definition_families(familyPrefix="train")["families"] == ["train", "train-longer"]
    assert region.ecs.list_task_definition_families(familyPrefix="train", status="ACTIVE")["families"] == ["train"]


def test_tags_come_only_when_asked_for(region: SimulatedRegion) -> None:
    arn = region.register(tags=[{"key": "team", "value": "vision"}])["taskDefinitionArn"]

    assert "tags" not in region.ecs.describe_task_definition(taskDefinition=arn)
    assert region.ecs.describe_task_definition(taskDefinition=arn, include=["TAGS"])["tags"] == [
        {"key": "team", "value": "vision"}
    ]


def test_an_inactive_revision_does_not_run(offered: SimulatedRegion) -> None:
    offered.ecs.deregister_task_definition(taskDefinition="train:1")

    with pytest.raises(ClientError, match="TaskDefinition is inactive"):
        offered.run("g5-spot", taskDefinition="train:1")


def test_an_inactive_revision_runs_as_long_as_deregistration_lags() -> None:
    region = SimulatedRegion(timing=Timing(deregistration_lag=600.0))
    region.provider()
    region.register()
    region.ecs.deregister_task_definition(taskDefinition="train:1")

    assert region.run("g5-spot", taskDefinition="train:1")["tasks"]
    region.clock.advance(600)
    with pytest.raises(ClientError, match="TaskDefinition is inactive"):
        region.run("g5-spot", taskDefinition="train:1")


@pytest.mark.parametrize(
    ("members", "attribute"),
    [
        ({"runtimePlatform": {"cpuArchitecture": "ARM64"}}, {"name": "ecs.cpu-architecture", "value": "arm64"}),
        ({"networkMode": "awsvpc"}, {"name": "ecs.capability.task-eni"}),
        (
            {"taskRoleArn": "arn:aws:iam::111122223333:role/relaunch/r"},
            {"name": "com.amazonaws.ecs.capability.task-iam-role"},
        ),
    ],
)
def test_a_revision_says_which_attributes_it_requires(
    region: SimulatedRegion, members: dict[str, Any], attribute: dict[str, str]
) -> None:
    assert attribute in region.register(**members)["requiresAttributes"]


def test_what_the_caller_changes_in_an_answer_does_not_change_the_definition(region: SimulatedRegion) -> None:
    region.register("train", container(cpu=256))
    answer = region.ecs.describe_task_definition(taskDefinition="train")["taskDefinition"]
    answer["containerDefinitions"][0]["cpu"] = 1

    again = region.ecs.describe_task_definition(taskDefinition="train")["taskDefinition"]

    assert again["containerDefinitions"][0]["cpu"] == 256


def test_sizes_come_back_as_numbers(region: SimulatedRegion) -> None:
    revision = region.register(cpu="2 vCPU", memory="2 GB")

    assert (revision["cpu"], revision["memory"]) == ("2048", "2048")
    assert "cpu" not in region.register()


@pytest.mark.parametrize(
    ("members", "compatibilities"),
    [
        ({}, ["EXTERNAL", "EC2"]),
        ({"networkMode": "bridge"}, ["EXTERNAL", "EC2"]),
        ({"networkMode": "host"}, ["EXTERNAL", "EC2"]),
        ({"networkMode": "none"}, ["EXTERNAL", "EC2"]),
        ({"networkMode": "awsvpc"}, ["EC2"]),
    ],
)
def test_external_instances_run_every_network_mode_but_awsvpc(
    region: SimulatedRegion, members: dict[str, Any], compatibilities: list[str]
) -> None:
    assert region.register(**members)["compatibilities"] == compatibilities
    shared = container(resourceRequirements=share())
    assert region.register("share", shared, **members)["compatibilities"] == ["EC2"]


def test_an_inactive_revision_is_refused_as_an_invalid_parameter(offered: SimulatedRegion) -> None:
    offered.ecs.deregister_task_definition(taskDefinition="train:1")
    strategy = [{"capacityProvider": "g5-spot"}]

    error = offered.error("run_task", cluster="c", taskDefinition="train:1", capacityProviderStrategy=strategy)

    assert error == "InvalidParameterException: TaskDefinition is inactive"


def test_a_deleted_revision_is_described_but_neither_run_nor_numbered_anew() -> None:
    region = SimulatedRegion(timing=Timing(deregistration_lag=600.0))
    region.provider()
    arn = region.register()["taskDefinitionArn"]
    region.ecs.deregister_task_definition(taskDefinition=arn)

    answer = region.ecs.delete_task_definitions(taskDefinitions=["train:1"])

    assert [(each["taskDefinitionArn"], each["status"]) for each in answer["taskDefinitions"]] == [
        (arn, "DELETE_IN_PROGRESS")
    ]
    assert answer["taskDefinitions"][0]["deleteRequestedAt"] == region.clock.now()
    assert region.ecs.describe_task_definition(taskDefinition=arn)["taskDefinition"]["status"] == "DELETE_IN_PROGRESS"
    assert region.ecs.list_task_definitions(status="INACTIVE")["taskDefinitionArns"] == []
    assert region.ecs.list_task_definitions(status="DELETE_IN_PROGRESS")["taskDefinitionArns"] == [arn]
    with pytest.raises(ClientError, match="TaskDefinition is inactive"):
        region.run("g5-spot", taskDefinition=arn)
    assert region.ecs.delete_task_definitions(taskDefinitions=[arn])["failures"] == []
    assert region.register()["revision"] == 2


def test_only_inactive_revisions_are_deleted(region: SimulatedRegion) -> None:
    arn = region.register()["taskDefinitionArn"]

    answer = region.ecs.delete_task_definitions(taskDefinitions=["train:1", "nope:1"])

    assert answer["taskDefinitions"] == []
    assert [(each["arn"], each["reason"][:48]) for each in answer["failures"]] == [
        (arn, "The specified task definition is still in ACTIVE"),
        ("nope:1", "The specified task definition does not exist. Sp"),
    ]
    for names in ([], ["train"], ["train:1"] * 11):
        assert region.error_code("delete_task_definitions", taskDefinitions=names) == "InvalidParameterException"
