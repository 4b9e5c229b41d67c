"""What ECS reserves of a container instance for a task: CPU units and memory.

Sources: "TaskDefinition" and "ContainerDefinition" (Amazon ECS API Reference): "If you specify memoryReservation, then
that value is subtracted from the available memory resources for the container instance where the container is placed.
Otherwise, the value of memory is used."
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from relaunch.core.records import dataclass

CPU_UNITS_PER_VCPU = 1024

_QUANTITY = re.compile(r" *([0-9]+(?:\.[0-9]+)?) *([a-zA-Z]*) *")
_CPU_UNITS = MappingProxyType({"": 1, "vcpu": CPU_UNITS_PER_VCPU})
_MEMORY_MIB = MappingProxyType({"": 1, "gb": 1024})
_MIN_TASK_CPU = 128
_MAX_TASK_CPU = 196_608
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Reservation:
    """CPU units and memory in MiB that ECS reserves for a task, whatever the task then uses."""

    cpu_units: int
    memory_mib: int


def reserve(definition: Mapping[str, Any], overrides: Mapping[str, Any] = _NOTHING) -> Reservation:
    """Return what ECS reserves for a task of this definition with RunTask's overrides.

    The size of the task counts where it has one, else the sum of its containers.

    Raises:
        ValueError: the size of the task cannot be read, or is none that ECS takes.
    """
    changed = container_overrides(overrides)
    containers = [{**each, **changed.get(each["name"], {})} for each in definition.get("containerDefinitions") or ()]
    cpu = overrides.get("cpu") or definition.get("cpu")
    memory = overrides.get("memory") or definition.get("memory")
    return Reservation(
        parse_cpu_units(cpu) if cpu else sum(each.get("cpu") or 0 for each in containers),
        parse_memory_mib(memory) if memory else sum(reserved_memory_mib(each) for each in containers),
    )


def reserved_memory_mib(container: Mapping[str, Any]) -> int:
    """Return the memory that ECS reserves for a container of a task without a size: the soft limit, else the hard."""
    return int(container.get("memoryReservation") or container.get("memory") or 0)


def container_overrides(overrides: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the container overrides of a task by container name."""
    return {str(each.get("name")): each for each in overrides.get("containerOverrides", ())}


def parse_cpu_units(text: str) -> int:
    """Parse a task's CPU size, `1024` or `1 vCPU`.

    Raises:
        ValueError: it is none, or not 128 to 196608 units ("RegisterTaskDefinition", Amazon ECS API Reference).
    """
    units = _parse_quantity(text, _CPU_UNITS)
    if not _MIN_TASK_CPU <= units <= _MAX_TASK_CPU:
        raise ValueError(f"not {_MIN_TASK_CPU} to {_MAX_TASK_CPU} CPU units: {text!r}")
    return units


def parse_memory_mib(text: str) -> int:
    """Parse a task's memory size, `2048` or `2 GB`.

    Raises:
        ValueError: it is none.
    """
    return _parse_quantity(text, _MEMORY_MIB)


def _parse_quantity(text: str, units: Mapping[str, int]) -> int:
    match = _QUANTITY.fullmatch(text)
    if match is None or match.group(2).lower() not in units:
        raise ValueError(f"not a size: {text!r}")
    return int(float(match.group(1)) * units[match.group(2).lower()])
