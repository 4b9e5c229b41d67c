from typing import Any

import pytest

from fakes.simulated_region import SimulatedRegion, container, gpu


def member_of(expression: str) -> list[dict[str, str]]:
    return [{"type": "memberOf", "expression": expression}]


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
    assert region.error_code("register_task_definition", family="f", containerDefinitions=containers, **members) == code
    assert region.ecs.list_task_definitions()["taskDefinitionArns"] == []


@pytest.mark.parametrize("family", ["bad family!", "a/b", "", "x" * 256])
def test_a_family_has_letters_numbers_underscores_and_hyphens(region: SimulatedRegion, family: str) -> None:
    assert (
        region.error_code("register_task_definition", family=family, containerDefinitions=[container()])
        == "ClientException"
    )
