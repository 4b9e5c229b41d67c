from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import botocore.session
import pytest
from botocore.model import Shape

from relaunch.core.task_definitions.member import (
    WITH_REFUSED,
    Member,
    Unchanged,
    Verdict,
    find_values,
    harmless,
    is_given,
    read,
    refused,
    warned,
)
from relaunch.core.task_definitions.verdicts import (
    MEMBERS,
    find_refusals,
    find_warnings,
    instance_constraints,
    is_managed_only,
)

MEMBER_OF = {"type": "memberOf", "expression": "agentConnected == true"}


def leaves(shape: Shape, path: str = "") -> Iterator[str]:
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            yield from leaves(member, f"{path}.{name}" if path else name)
    elif shape.type_name == "list":
        yield from leaves(shape.member, f"{path}[]")
    else:
        yield path


def container(**members: Any) -> dict[str, Any]:
    return {"containerDefinitions": [{"name": "main", "image": "trainer:1", **members}]}


def volume(**members: Any) -> dict[str, Any]:
    return {**container(), "volumes": [{"name": "data", **members}]}


def test_every_member_of_register_task_definition_has_one_verdict() -> None:
    model = botocore.session.get_session().get_service_model("ecs").operation_model("RegisterTaskDefinition")
    counts = Counter(member.path for member in MEMBERS)

    assert sorted(counts) == sorted(leaves(model.input_shape))
    assert [path for path, count in counts.items() if count > 1] == []


def test_members_with_the_same_verdict_are_listed_together() -> None:
    unchanged = Unchanged("placement", "end", "exit code")

    assert read("why", "cpu", "memory") == (Member("cpu", Verdict.READ, "why"), Member("memory", Verdict.READ, "why"))
    assert harmless(unchanged, "why", "tags") == (Member("tags", Verdict.HARMLESS, "why", unchanged=unchanged),)
    assert refused("why", is_given, "gpu") == (Member("gpu", Verdict.REFUSED, "why", is_given),)
    assert warned("why", is_given, "user") == (Member("user", Verdict.WARNED, "why", is_given),)


def test_every_verdict_says_why_and_what_it_applies_to() -> None:
    for member in MEMBERS:
        assert member.why
        assert (member.applies is not None) == (member.verdict in (Verdict.REFUSED, Verdict.WARNED))


def test_every_harmless_member_says_why_neither_placement_end_price_nor_exit_code_changes() -> None:
    for member in MEMBERS:
        is_harmless = member.verdict is Verdict.HARMLESS
        assert (member.unchanged is not None) == is_harmless, member.path
        if member.unchanged is not None:
            assert all(len(getattr(member.unchanged, each.name).split()) > 2 for each in fields(Unchanged)), member.path


@pytest.mark.parametrize("member", [each for each in MEMBERS if each.unchanged is WITH_REFUSED], ids=lambda it: it.path)
def test_no_task_is_launched_with_a_member_of_what_is_refused(member: Member) -> None:
    holder = member.path.partition(".")[2].partition(".")[0]
    holder = holder if member.path.startswith("volumes") else member.path.partition(".")[0]

    assert any(each.verdict is Verdict.REFUSED and holder in each.path.split(".") for each in MEMBERS)


def test_values_of_a_member_are_found_in_every_container() -> None:
    definition = {"containerDefinitions": [{"name": "a", "cpu": 1}, {"name": "b"}, {"name": "c", "cpu": None}]}

    assert [(found.value, found.holder["name"]) for found in find_values("containerDefinitions[].cpu", definition)] == [
        (1, "a")
    ]
    assert list(find_values("runtimePlatform.cpuArchitecture", {"runtimePlatform": "none"})) == []


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ({"requiresCompatibilities": ["FARGATE"]}, "requiresCompatibilities FARGATE: Relaunch runs tasks on EC2"),
        ({"requiresCompatibilities": ["EXTERNAL"]}, "requiresCompatibilities EXTERNAL: Relaunch runs tasks on EC2"),
        (
            {"runtimePlatform": {"operatingSystemFamily": "WINDOWS_SERVER_2022_CORE"}},
            "runtimePlatform.operatingSystemFamily WINDOWS_SERVER_2022_CORE: Relaunch runs Linux tasks only",
        ),
        ({"placementConstraints": [{"type": "distinctInstance"}]}, "type distinctInstance: constraints of a task"),
        ({"placementConstraints": [MEMBER_OF] * 10}, "type memberOf: constraints of a task definition"),
        (container(restartPolicy={"enabled": True}), "restartPolicy.enabled True of main: the agent would start"),
        (
            container(resourceRequirements=[{"type": "InferenceAccelerator", "value": "eia"}]),
            "type InferenceAccelerator: Amazon Elastic Inference is no longer available",
        ),
        ({"inferenceAccelerators": [{"deviceName": "eia"}]}, "deviceName eia: Amazon Elastic Inference"),
        ({"trustedExecutionConfiguration": {"isolationMode": "ISOLATED_SANDBOX"}}, "isolationMode ISOLATED_SANDBOX:"),
        (volume(configuredAtLaunch=True), "configuredAtLaunch True of data: RunTask would need"),
        (
            volume(fsxWindowsFileServerVolumeConfiguration={"fileSystemId": "fs-1"}),
            "fsxWindowsFileServerVolumeConfiguration.fileSystemId fs-1 of data: file systems of FSx for Windows",
        ),
    ],
)
def test_what_relaunch_cannot_run_is_refused_with_the_reason(definition: dict[str, Any], message: str) -> None:
    (refusal,) = find_refusals({**container(), **definition})

    assert message in refusal
    assert find_refusals(container()) == ()


@pytest.mark.parametrize(
    "definition",
    [
        {"requiresCompatibilities": ["FARGATE", "EC2"]},
        {"requiresCompatibilities": ["MANAGED_INSTANCES"]},
        {"requiresCompatibilities": []},
        {"runtimePlatform": {"operatingSystemFamily": "LINUX"}},
        {"placementConstraints": [MEMBER_OF] * 9},
        {"trustedExecutionConfiguration": {"isolationMode": "SHARED"}},
        container(restartPolicy={"enabled": False}),
        container(essential=False, restartPolicy={"enabled": True}),
        container(resourceRequirements=[{"type": "GPU", "value": "1"}]),
        volume(configuredAtLaunch=False),
    ],
)
def test_what_relaunch_can_run_is_not_refused(definition: dict[str, Any]) -> None:
    assert find_refusals({**container(), **definition}) == ()


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ({"ephemeralStorage": {"sizeInGiB": 100}}, "ephemeralStorage.sizeInGiB 100: it is for Fargate"),
        (volume(efsVolumeConfiguration={"fileSystemId": "fs-1"}), "fs-1 of data: the file system needs a mount target"),
        (volume(s3filesVolumeConfiguration={"fileSystemArn": "arn"}), "arn of data: the file system needs a mount"),
        ({"proxyConfiguration": {"type": "APPMESH"}}, "type APPMESH: AWS App Mesh ended"),
        (container(credentialSpecs=["credentialspec:x"]), "credentialSpecs credentialspec:x of main: gMSA"),
    ],
)
def test_what_a_job_has_to_expect_is_warned_of(definition: dict[str, Any], message: str) -> None:
    (warning,) = find_warnings({**container(), **definition})

    assert message in warning
    assert find_warnings(container()) == ()


def test_several_essential_containers_are_warned_of_once_each() -> None:
    side = {"name": "side", "image": "side:1", "essential": True}
    both = {"containerDefinitions": [{**container()["containerDefinitions"][0], "essential": True}, side]}

    assert [text.partition(":")[0] for text in find_warnings(both)] == [
        "essential True of main",
        "essential True of side",
    ]
    assert find_warnings({"containerDefinitions": [side, {**side, "name": "log", "essential": False}]}) == ()


def test_an_instance_must_satisfy_the_constraints_and_have_what_few_agents_have() -> None:
    names = (
        "com.amazonaws.ecs.capability.logging-driver.awslogs",
        "com.amazonaws.ecs.capability.logging-driver.splunk",
        "com.amazonaws.ecs.capability.selinux",
        "com.amazonaws.ecs.capability.docker-plugin.local",
        "com.amazonaws.ecs.capability.docker-plugin.rexray/ebs",
    )
    definition = {
        "placementConstraints": [MEMBER_OF, {"type": "distinctInstance"}],
        "requiresAttributes": [{"name": name} for name in names],
    }

    assert instance_constraints(definition) == (
        "agentConnected == true",
        "attribute:com.amazonaws.ecs.capability.logging-driver.splunk exists",
        "attribute:com.amazonaws.ecs.capability.selinux exists",
        "attribute:com.amazonaws.ecs.capability.docker-plugin.rexray/ebs exists",
    )
    assert instance_constraints(container()) == ()


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (container(), False),
        ({"requiresCompatibilities": ["MANAGED_INSTANCES"]}, True),
        ({"requiresCompatibilities": ["MANAGED_INSTANCES", "EC2"]}, False),
        (container(resourceRequirements=[{"type": "NeuronDevice", "value": "ALL"}]), True),
        (container(resourceRequirements=[{"type": "GPU", "value": "1"}]), False),
    ],
)
def test_some_task_definitions_run_on_managed_instances_alone(definition: dict[str, Any], expected: bool) -> None:
    assert is_managed_only({**container(), **definition}) is expected
