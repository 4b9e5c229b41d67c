"""The resources that a task requires of a container instance: CPU units, memory, GPUs, host ports, attributes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relaunch_local.ecs.rules.gpu_requests import ALL_GPUS, GpuRequest, parse_gpu_request

RESERVED_TCP_PORTS = frozenset({22, 2375, 2376, 51678, 51679})
"""SSH, Docker and the agent ("PortMapping", Amazon ECS API Reference)."""

_QUANTITY = re.compile(r" *([0-9]+(?:\.[0-9]+)?) *([a-zA-Z]*) *")
_CPU_UNITS = {"": 1, "vcpu": 1024}
_MEMORY_MIB = {"": 1, "gb": 1024}
_MIN_TASK_CPU, _MAX_TASK_CPU = 128, 196_608


@dataclass(frozen=True, slots=True)
class Requirement:
    """The resources that a task requires."""

    cpu_units: int
    memory_mib: int
    gpu_requests: tuple[tuple[str, GpuRequest], ...] = ()
    """The GPU requests by container name."""
    tcp_ports: frozenset[int] = frozenset()
    udp_ports: frozenset[int] = frozenset()
    capabilities: frozenset[tuple[str, str | None]] = frozenset()
    """Attributes that the instance must have; the value None means any value."""

    @property
    def wants_all_gpus(self) -> bool:
        """Whether a container requests all GPUs of its instance."""
        return any(request.count == ALL_GPUS for _, request in self.gpu_requests)

    @property
    def gpus(self) -> int:
        """The whole GPUs of all containers, without `ALL`."""
        return sum(request.count for _, request in self.gpu_requests if request.count > 0)

    @property
    def gpu_part(self) -> float:
        """The part of a GPU that a container requests; only fractional instance types have one."""
        return max((request.part for _, request in self.gpu_requests), default=0.0)

    @property
    def share_mib(self) -> int:
        """The memory of all shares: the containers of a task share the same GPU."""
        return sum(request.share_mib for _, request in self.gpu_requests)


def parse_quantity(text: str, units: Mapping[str, int]) -> int:
    """Parse a task size such as `1024`, `1 vCPU` or `2 GB`.

    Raises:
        ValueError: The text is not a number with one of the units.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None or match.group(2).lower() not in units:
        raise ValueError(f"not a size: {text!r}")
    return int(float(match.group(1)) * units[match.group(2).lower()])


def parse_cpu_units(text: str) -> int:
    """Parse a task's CPU size; raises ValueError, also outside 128 to 196608 units ("RegisterTaskDefinition")."""
    units = parse_quantity(text, _CPU_UNITS)
    if not _MIN_TASK_CPU <= units <= _MAX_TASK_CPU:
        raise ValueError(f"not {_MIN_TASK_CPU} to {_MAX_TASK_CPU} CPU units: {text!r}")
    return units


def parse_memory_mib(text: str) -> int:
    """Parse a task's memory size; raises ValueError."""
    return parse_quantity(text, _MEMORY_MIB)


def container_overrides(overrides: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the container overrides of a task by container name."""
    return {str(each.get("name")): each for each in overrides.get("containerOverrides", ())}


def requirement_of(definition: Mapping[str, Any], overrides: Mapping[str, Any]) -> Requirement:
    """Return the resources that a revision with these overrides requires."""
    by_name = container_overrides(overrides)
    cpu_units, memory_mib, gpus = 0, 0, []
    ports: dict[str, set[int]] = {"tcp": set(), "udp": set()}
    for container in definition["containerDefinitions"]:
        merged = {**container, **by_name.get(container["name"], {})}
        cpu_units += merged.get("cpu", 0)
        memory_mib += merged.get("memoryReservation") or merged.get("memory", 0)
        if request := parse_gpu_request(merged.get("resourceRequirements", ())):
            gpus.append((container["name"], request))
        for mapping in container.get("portMappings", ()):
            ports[mapping.get("protocol", "tcp")].add(host_port(mapping, definition.get("networkMode", "bridge")))
    task_cpu = overrides.get("cpu") or definition.get("cpu")
    task_memory = overrides.get("memory") or definition.get("memory")
    return Requirement(
        cpu_units=parse_cpu_units(task_cpu) if task_cpu else cpu_units,
        memory_mib=parse_memory_mib(task_memory) if task_memory else memory_mib,
        gpu_requests=tuple(gpus),
        tcp_ports=frozenset(ports["tcp"] - {0}),
        udp_ports=frozenset(ports["udp"] - {0}),
        capabilities=frozenset((each["name"], each.get("value")) for each in definition.get("requiresAttributes", ())),
    )


def host_port(mapping: Mapping[str, Any], network_mode: str) -> int:
    """Return the host port of a port mapping; 0 if it is dynamic or the network mode has no host ports."""
    if network_mode == "awsvpc":
        return 0
    if network_mode == "host":
        return int(mapping.get("containerPort", 0))
    return int(mapping.get("hostPort", 0))
