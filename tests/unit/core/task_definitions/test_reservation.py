from typing import Any

import pytest

from relaunch.core.task_definitions.reservation import Reservation, parse_cpu_units, parse_memory_mib, reserve


@pytest.mark.parametrize(("text", "units"), [("256", 256), ("1 vCPU", 1_024), ("0.5vcpu", 512)])
def test_cpu_sizes_are_units_or_vcpus(text: str, units: int) -> None:
    assert parse_cpu_units(text) == units


@pytest.mark.parametrize(("text", "mebibytes"), [("512", 512), ("2 GB", 2_048), ("0.5gb", 512)])
def test_memory_sizes_are_mebibytes_or_gigabytes(text: str, mebibytes: int) -> None:
    assert parse_memory_mib(text) == mebibytes


@pytest.mark.parametrize("text", ["", "two", "2 TB", "-1", "2 GB\n", "٢"])
def test_other_sizes_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        parse_memory_mib(text)


@pytest.mark.parametrize("text", ["127", "0.1 vCPU", "196609", "193 vCPU"])
def test_a_task_on_ec2_has_an_eighth_to_192_vcpus(text: str) -> None:
    assert (parse_cpu_units("128"), parse_cpu_units("192 vCPU")) == (128, 196_608)
    with pytest.raises(ValueError, match="128 to 196608 CPU units"):
        parse_cpu_units(text)


MAIN = {"name": "main", "cpu": 1_024, "memory": 16_384, "memoryReservation": 8_192}
SIDE = {"name": "side", "memory": 512}


@pytest.mark.parametrize(
    ("size", "overrides", "expected"),
    [
        pytest.param({}, {}, Reservation(1_024, 8_704), id="the soft limit where a container has both"),
        pytest.param({"cpu": "2 vCPU", "memory": "4 GB"}, {}, Reservation(2_048, 4_096), id="size of the task"),
        pytest.param({"memory": "4096"}, {}, Reservation(1_024, 4_096), id="memory of the task alone"),
        pytest.param({"cpu": "512"}, {"cpu": "256", "memory": "100"}, Reservation(256, 100), id="overridden size"),
        pytest.param(
            {},
            {"containerOverrides": [{"name": "main", "cpu": 1, "memoryReservation": 100}]},
            Reservation(1, 612),
            id="overridden container",
        ),
    ],
)
def test_a_task_reserves_its_size_or_what_its_containers_reserve(
    size: dict[str, Any], overrides: dict[str, Any], expected: Reservation
) -> None:
    assert reserve({"containerDefinitions": [MAIN, SIDE], **size}, overrides) == expected


def test_a_task_without_containers_and_size_reserves_nothing() -> None:
    assert reserve({}) == Reservation(0, 0)
