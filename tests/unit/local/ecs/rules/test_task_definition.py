import json
from typing import Any

import pytest

from fakes.simulated_region import SimulatedRegion, container, gpu, member_of
from relaunch_local.ecs.rules.task_definition import compatibilities_of, restarts


@pytest.mark.parametrize(
    ("containers", "members"),
    [
        pytest.param([], {}, id="no-container"),
        pytest.param([container(image="")], {}, id="no-image"),
        pytest.param([{"name": "main", "image": "i"}], {}, id="no-memory"),
        pytest.param([container(memory=4)], {}, id="memory-below-6-mib"),
        pytest.param([container(memoryReservation=4_096)], {}, id="reservation-above-memory"),
        pytest.param([container(), container()], {}, id="same-name"),
        pytest.param([container(essential=False)], {}, id="nothing-essential"),
        pytest.param([container(resourceRequirements=gpu("0"))], {}, id="gpu-0"),
        pytest.param([container(resourceRequirements=gpu("1.5"))], {}, id="gpu-fraction"),
        pytest.param([container(resourceRequirements=gpu(".5\n"))], {}, id="gpu-line-feed"),
        pytest.param([container(resourceRequirements=[{"type": "NeuronDevice", "value": "ALL"}])], {}, id="neuron"),
        pytest.param([container(portMappings=[{"containerPort": 70_000}])], {}, id="port"),
        pytest.param(
            [container(portMappings=[{"containerPort": 80, "hostPort": 81}])],
            {"networkMode": "host"},
            id="host-mode-ports-differ",
        ),
        pytest.param(
            [container(portMappings=[{"containerPort": 80, "hostPort": 81}, {"containerPort": 82, "hostPort": 81}])],
            {},
            id="same-host-port",
        ),
        pytest.param(
            [container(logConfiguration={"logDriver": "awslogs", "options": {"awslogs-group": "g"}})],
            {},
            id="awslogs-without-region",
        ),
        pytest.param([container(dependsOn=[{"containerName": "db", "condition": "START"}])], {}, id="depends-on"),
        pytest.param([container()], {"networkMode": "magic"}, id="network-mode"),
        pytest.param([container()], {"cpu": "much"}, id="cpu"),
        pytest.param([container()], {"placementConstraints": member_of("nope")}, id="expression"),
        pytest.param([container()], {"placementConstraints": [{"type": "distinctInstance"}]}, id="constraint"),
        pytest.param([container()], {"tags": [{"key": "aws:a"}]}, id="tag"),
    ],
)
def test_register_task_definition_refuses(
    region: SimulatedRegion, containers: list[dict[str, Any]], members: dict[str, Any]
) -> None:
    code = region.error_code("register_task_definition", family="f", containerDefinitions=containers, **members)

    assert code == "ClientException"
    assert region.ecs.list_task_definitions()["taskDefinitionArns"] == []


def many(count: int) -> list[dict[str, Any]]:
    return [container(name=f"c{number}", cpu=1, memory=6) for number in range(count)]


def after(condition: str, **members: Any) -> list[dict[str, Any]]:
    """A container that waits for another one, `first`."""
    return [container(dependsOn=[{"containerName": "first", "condition": condition}]), container(**members)]


ESSENTIAL = "A dependency container with SUCCESS or COMPLETE condition cannot be an essential container"


@pytest.mark.parametrize(
    ("containers", "members", "message"),
    [
        pytest.param(many(11), {}, "Too many containers.", id="containers-11"),
        pytest.param(
            [container(memory=2_049)],
            {"memory": "2 GB"},
            "The 'memory' setting for container 'main' is greater than for the task.",
            id="memory-above-the-task's",
        ),
        pytest.param(
            [container(memoryReservation=1_025)],
            {"memory": "1024"},
            "The 'memory' setting for container 'main' is greater than for the task.",
            id="reservation-above-the-task's",
        ),
        pytest.param(
            [container(cpu=512), container(name="side", cpu=513)],
            {"cpu": "1 vCPU"},
            "The sum of all container 'cpu' values cannot be greater than the value of the task 'cpu'.",
            id="cpu-above-the-task's",
        ),
        pytest.param([container(cpu=0)], {"cpu": "127"}, "Invalid 'cpu' setting for task.", id="cpu-127"),
        pytest.param([container()], {"memory": "1 GB\n2"}, "Invalid 'memory' setting for task.", id="memory"),
        pytest.param(
            [container(portMappings=[{"containerPort": 80}])],
            {"networkMode": "none"},
            "Port mappings are not supported when networkMode=none.",
            id="ports-without-network",
        ),
        pytest.param(after("SUCCESS", name="first"), {}, ESSENTIAL, id="success-of-an-essential-one"),
        pytest.param(after("COMPLETE", name="first", essential=True), {}, ESSENTIAL, id="end-of-an-essential-one"),
        pytest.param(
            after("START", name="second"),
            {},
            "Cannot depend on container + 'first' because it does not exist",
            id="depends-on-none",
        ),
        pytest.param(
            [container(memoryReservation=2_049)],
            {},
            "Invalid setting for container 'main'. 'memory' must be greater than or equal to 'memoryReservation'.",
            id="reservation-above-memory",
        ),
        pytest.param(
            [container(name="main\n")], {}, "Container.name contains invalid characters.", id="name-with-line-feed"
        ),
    ],
)
def test_a_refusal_has_the_text_of_ecs(
    region: SimulatedRegion, containers: list[dict[str, Any]], members: dict[str, Any], message: str
) -> None:
    error = region.error("register_task_definition", family="f", containerDefinitions=containers, **members)

    assert error == f"ClientException: {message}"


@pytest.mark.parametrize(
    ("containers", "members"),
    [
        pytest.param(many(10), {}, id="containers-10"),
        pytest.param([container(memoryReservation=2_048)], {}, id="reservation-of-all-memory"),
        pytest.param([container()], {"cpu": "1024", "memory": "2048"}, id="the-task's-size-is-the-container's"),
        pytest.param([container(cpu=0)], {"cpu": "128"}, id="cpu-128"),
        pytest.param([container()], {"networkMode": "none"}, id="no-network"),
        pytest.param(after("SUCCESS", name="first", essential=False), {}, id="success-of-another"),
        pytest.param(after("START", name="first"), {}, id="start-of-an-essential-one"),
    ],
)
def test_what_is_just_allowed_is_registered(
    region: SimulatedRegion, containers: list[dict[str, Any]], members: dict[str, Any]
) -> None:
    assert region.register("f", *containers, **members)["status"] == "ACTIVE"


def test_a_definition_has_at_most_65536_bytes(region: SimulatedRegion) -> None:
    request: dict[str, Any] = {"family": "f", "containerDefinitions": [container(command=[""])]}
    rest = 65_536 - len(json.dumps(request, separators=(",", ":")))

    request["containerDefinitions"][0]["command"] = ["é" * (rest // 2 + 1)]
    error = region.error("register_task_definition", **request)
    request["containerDefinitions"][0]["command"] = ["é" * (rest // 2)]

    assert error == f"ClientException: Actual length: '{65_538 - rest % 2}'. Max allowed length is '65536' bytes."
    assert region.ecs.register_task_definition(**request)["taskDefinition"]["revision"] == 1


@pytest.mark.parametrize("family", ["bad family!", "a/b", "", "x" * 256, "f\n"])
def test_a_family_has_letters_numbers_underscores_and_hyphens(region: SimulatedRegion, family: str) -> None:
    error = region.error("register_task_definition", family=family, containerDefinitions=[container()])

    assert error == "ClientException: Family contains invalid characters."


@pytest.mark.parametrize(
    ("policy", "exit_code", "seconds", "expected"),
    [
        ({}, 0, 9_999.0, False),
        ({"enabled": False}, 1, 9_999.0, False),
        ({"enabled": True}, 0, 300.0, True),
        ({"enabled": True}, 1, 299.0, False),
        ({"enabled": True, "restartAttemptPeriod": 60}, 1, 60.0, True),
        ({"enabled": True, "ignoredExitCodes": [0]}, 0, 9_999.0, False),
        ({"enabled": True, "ignoredExitCodes": [0]}, 1, 9_999.0, True),
    ],
)
def test_a_container_starts_again_by_its_restart_policy(
    policy: dict[str, Any], exit_code: int, seconds: float, expected: bool
) -> None:
    assert restarts({"restartPolicy": policy} if policy else {}, exit_code, seconds) is expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (None, {"EXTERNAL", "EC2"}),
        (["FARGATE"], {"EXTERNAL", "FARGATE"}),
        (["EC2", "FARGATE"], {"EXTERNAL", "EC2", "FARGATE"}),
    ],
)
def test_a_task_definition_runs_where_it_is_registered_for(wanted: list[str] | None, expected: set[str]) -> None:
    request = {"containerDefinitions": [container()], **({"requiresCompatibilities": wanted} if wanted else {})}

    assert set(compatibilities_of(request)) == expected
