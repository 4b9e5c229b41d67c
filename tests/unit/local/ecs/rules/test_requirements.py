from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.simulated_region import SimulatedRegion, container
from relaunch_local.ecs.rules.requirements import requirement_of

PORTS = [{"containerPort": 80, "hostPort": 8_080}, {"containerPort": 53, "protocol": "udp"}]


@pytest.mark.parametrize(
    ("definition", "overrides", "expected"),
    [
        pytest.param({}, {}, (2_048, 3_072, {8_080}, set()), id="containers-add-up-and-reservations-count"),
        pytest.param({"cpu": "4096", "memory": "8 GB"}, {}, (4_096, 8_192, {8_080}, set()), id="size-of-the-task"),
        pytest.param({}, {"cpu": "512", "memory": "600"}, (512, 600, {8_080}, set()), id="size-of-the-override"),
        pytest.param(
            {}, {"containerOverrides": [{"name": "main", "cpu": 1, "memory": 5_000}]}, (1_025, 6_024, {8_080}, set())
        ),
        pytest.param({"networkMode": "host"}, {}, (2_048, 3_072, {80}, {53}), id="host-mode-takes-container-ports"),
        pytest.param({"networkMode": "awsvpc"}, {}, (2_048, 3_072, set(), set()), id="awsvpc-takes-none"),
    ],
)
def test_a_task_takes_what_its_definition_and_overrides_say(
    definition: dict[str, Any], overrides: dict[str, Any], expected: tuple[int, int, set[int], set[int]]
) -> None:
    containers = [container(portMappings=PORTS), container(name="side", memory=4_096, memoryReservation=1_024)]

    found = requirement_of({"containerDefinitions": containers, **definition}, overrides)

    assert (found.cpu_units, found.memory_mib, set(found.tcp_ports), set(found.udp_ports)) == expected


def test_a_size_override_that_is_none_is_refused(offered: SimulatedRegion) -> None:
    with pytest.raises(ClientError, match=r"InvalidParameterException.*not a size"):
        offered.run("g5-spot", overrides={"cpu": "much"})
