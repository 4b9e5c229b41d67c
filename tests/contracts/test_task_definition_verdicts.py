"""What the verdicts on members say is what ECS's rules decide: with the member another thing happens than without it.

For a member that is read Relaunch reads another revision, for one that is refused it says why.
"""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.simulated_region import SimulatedRegion, gpu, member_of, share
from relaunch.adapters.aws.ecs.revisions import read_revision
from relaunch.core.task_definitions.member import Verdict
from relaunch.core.task_definitions.verdicts import MEMBERS
from relaunch_local.ecs import ProcessSpec, Script
from relaunch_local.ecs.engine.model import Task

ROLE = "arn:aws:iam::111122223333:role/relaunch/trainer"
RAN = 400.0
"""Seconds that the program runs; longer than the least time before a restart."""


def container(**members: Any) -> dict[str, Any]:
    return {"containerDefinitions": [{**PLAIN["containerDefinitions"][0], **members}]}


def volume(**members: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "data", **members}]}


PLAIN: dict[str, Any] = {"family": "train", "containerDefinitions": [{"name": "main", "image": "t:1", "memory": 2_048}]}
ELASTIC_INFERENCE = {"inferenceAccelerators": [{"deviceName": "eia", "deviceType": "eia2.medium"}]}
DEVICE = {"hostPath": "/dev/neuron0"}
EXAMPLES: dict[str, dict[str, Any] | tuple[dict[str, Any], dict[str, Any]]] = {
    "family": {"family": "other"},
    "taskRoleArn": {"taskRoleArn": ROLE},
    "executionRoleArn": {"executionRoleArn": ROLE},
    "networkMode": {"networkMode": "awsvpc"},
    "cpu": {"cpu": "8 vCPU"},
    "memory": {"memory": "32 GB"},
    "runtimePlatform.cpuArchitecture": {"runtimePlatform": {"cpuArchitecture": "ARM64"}},
    "runtimePlatform.operatingSystemFamily": {"runtimePlatform": {"operatingSystemFamily": "WINDOWS_SERVER_2022_CORE"}},
    "placementConstraints[].type": {"placementConstraints": [{"type": "distinctInstance"}]},
    "placementConstraints[].expression": {"placementConstraints": member_of("attribute:ecs.instance-type =~ p3.*")},
    "requiresCompatibilities[]": {"requiresCompatibilities": ["FARGATE"]},
    "inferenceAccelerators[].deviceName": {
        "inferenceAccelerators": [{"deviceName": "eia", "deviceType": "eia2.medium"}]
    },
    "inferenceAccelerators[].deviceType": {
        "inferenceAccelerators": [{"deviceName": "eia", "deviceType": "eia2.medium"}]
    },
    "trustedExecutionConfiguration.isolationMode": {
        "trustedExecutionConfiguration": {"isolationMode": "ISOLATED_SANDBOX"}
    },
    "volumes[].configuredAtLaunch": volume(configuredAtLaunch=True),
    "volumes[].fsxWindowsFileServerVolumeConfiguration.fileSystemId": volume(
        fsxWindowsFileServerVolumeConfiguration={
            "fileSystemId": "fs-1",
            "rootDirectory": "/",
            "authorizationConfig": {"credentialsParameter": "arn", "domain": "example.com"},
        }
    ),
    "volumes[].dockerVolumeConfiguration.driver": volume(dockerVolumeConfiguration={"driver": "rexray/ebs"}),
    "containerDefinitions[].name": container(name="other"),
    "containerDefinitions[].image": container(image="t:2"),
    "containerDefinitions[].cpu": container(cpu=8_192),
    "containerDefinitions[].memory": container(memory=32_768),
    "containerDefinitions[].memoryReservation": (
        container(memory=32_768),
        container(memory=32_768, memoryReservation=64),
    ),
    "containerDefinitions[].portMappings[].containerPort": (
        {"networkMode": "host", **container(portMappings=[{"containerPort": 80}])},
        {"networkMode": "host", **container(portMappings=[{"containerPort": 22}])},
    ),
    "containerDefinitions[].portMappings[].hostPort": container(portMappings=[{"containerPort": 80, "hostPort": 22}]),
    "containerDefinitions[].portMappings[].protocol": (
        container(portMappings=[{"containerPort": 80, "hostPort": 22}]),
        container(portMappings=[{"containerPort": 80, "hostPort": 22, "protocol": "udp"}]),
    ),
    "containerDefinitions[].resourceRequirements[].value": container(resourceRequirements=gpu(2)),
    "containerDefinitions[].resourceRequirements[].type": container(
        resourceRequirements=[{"type": "InferenceAccelerator", "value": "eia"}]
    ),
    "containerDefinitions[].resourceRequirements[].sharingStrategy.nvidiaMps.memory": container(
        resourceRequirements=share(99_999)
    ),
    "containerDefinitions[].linuxParameters.devices[].hostPath": container(linuxParameters={"devices": [DEVICE]}),
    "containerDefinitions[].stopTimeout": container(stopTimeout=100),
    "containerDefinitions[].logConfiguration.logDriver": container(logConfiguration={"logDriver": "splunk"}),
    "containerDefinitions[].dockerSecurityOptions[]": container(dockerSecurityOptions=["label:type:svirt_apache"]),
    "containerDefinitions[].restartPolicy.enabled": container(restartPolicy={"enabled": True}),
}
"""A member alone, or a definition without it and one with it."""


def definitions_of(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    example = EXAMPLES[path]
    before, after = example if isinstance(example, tuple) else ({}, example)
    return {**PLAIN, **before}, {**PLAIN, **after}


def decide(definition: dict[str, Any]) -> tuple[Any, ...]:
    """Return what ECS does with a task definition on one g5.xlarge: refuse it, fail to place it, or run it so."""
    region = SimulatedRegion(authorize=lambda asked: asked.action != "iam:PassRole")
    region.simulator.lifecycle.unpullable_images.add("t:2")
    region.script = _run
    region.instance()
    try:
        region.ecs.register_task_definition(**definition)
        answer = region.run(taskDefinition=definition["family"], overrides=_OVERRIDES)
    except ClientError as error:
        return ("refused", str(error))
    if answer["failures"]:
        return ("not placed", answer["failures"][0]["reason"])
    arn = answer["tasks"][0]["taskArn"]
    task: Task = next(iter(region.simulator.clusters.get("c").tasks.values()))
    region.clock.advance(RAN + 300)
    return (*_end_of(region, arn), task.group, task.requirement, _end_of_stopped(region, definition))


_OVERRIDES = {"containerOverrides": [{"name": "main", "environment": [{"name": "TRAINS", "value": "1"}]}]}


def _run(spec: ProcessSpec) -> Script:
    """Fail at once without what the launch says, and take 60 s to save on SIGTERM."""
    is_told = "TRAINS" in spec.environment
    return Script(RAN if is_told else 1.0, 0 if is_told else 2, sigterm_delay_seconds=60.0, sigterm_exit_code=0)


def _end_of(region: SimulatedRegion, arn: str) -> tuple[Any, ...]:
    """Return the status of a task, and how its containers ended."""
    task = region.task(arn)
    return (task["lastStatus"], [(each.get("exitCode"), each.get("reason")) for each in task["containers"]])


def _end_of_stopped(region: SimulatedRegion, definition: dict[str, Any]) -> tuple[Any, ...]:
    """Return how a task ends that StopTask stops while its program runs."""
    answer = region.run(taskDefinition=definition["family"], overrides=_OVERRIDES)
    if answer["failures"]:
        return ("not placed",)
    arn = answer["tasks"][0]["taskArn"]
    region.clock.advance(RAN - 100)
    region.ecs.stop_task(cluster="c", task=arn)
    region.clock.advance(300)
    return _end_of(region, arn)


def described(definition: dict[str, Any]) -> dict[str, Any]:
    """Return a task definition as DescribeTaskDefinition returns it, also one that is not registered any more today."""
    region = SimulatedRegion()
    try:
        found = region.ecs.register_task_definition(**definition)["taskDefinition"]
    except ClientError:
        found = {**definition, "taskDefinitionArn": "arn", "revision": 1}
    return {**found, "taskDefinitionArn": "arn"}


@pytest.mark.parametrize("path", [each.path for each in MEMBERS if each.verdict in (Verdict.READ, Verdict.REFUSED)])
def test_ecs_decides_otherwise_with_a_member_that_is_read_or_refused(path: str) -> None:
    without, with_it = definitions_of(path)

    assert decide(without)[0] == "STOPPED" or isinstance(EXAMPLES[path], tuple)
    assert decide(without) != decide(with_it)


@pytest.mark.parametrize("path", [each.path for each in MEMBERS if each.verdict is Verdict.READ])
def test_a_member_that_is_read_makes_another_revision(path: str) -> None:
    # Ports of the machine count in network mode host.
    without, with_it = (read_revision(described(each), has_host_access=True) for each in definitions_of(path))

    assert without != with_it
    assert with_it.refusals == ()


@pytest.mark.parametrize("path", [each.path for each in MEMBERS if each.verdict is Verdict.REFUSED])
def test_a_member_that_is_refused_is_refused_for_what_ecs_does_not_run(path: str) -> None:
    without, with_it = (read_revision(described(each)) for each in definitions_of(path))

    assert without.refusals == ()
    assert any(path.rpartition("[].")[2].removesuffix("[]") in refusal for refusal in with_it.refusals)
    outcome = decide(definitions_of(path)[1])[0]
    assert outcome in ("refused", "not placed") or (path.endswith("restartPolicy.enabled") and outcome == "RUNNING")


def test_there_is_an_example_of_no_other_member() -> None:
    assert set(EXAMPLES) == {each.path for each in MEMBERS if each.verdict in (Verdict.READ, Verdict.REFUSED)}
