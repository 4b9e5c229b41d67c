"""The resources that a task requires of a container instance: CPU units, memory, GPUs, host ports, attributes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relaunch.core.task_definitions.reservation import container_overrides, reserve
from relaunch_local.ecs.rules.gpu_requests import ALL_GPUS, GpuRequest, parse_gpu_request

RESERVED_TCP_PORTS = frozenset({22, 2375, 2376, 51678, 51679})
"""SSH, Docker and the agent ("PortMapping", Amazon ECS API Reference)."""


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


def requirement_of(definition: Mapping[str, Any], overrides: Mapping[str, Any]) -> Requirement:
    """Return the resources that a revision with these overrides requires."""
    by_name = container_overrides(overrides)
    reserved = reserve(definition, overrides)
    gpus = []
    ports: dict[str, set[int]] = {"tcp": set(), "udp": set()}
    for container in definition["containerDefinitions"]:
        merged = {**container, **by_name.get(container["name"], {})}
        if request := parse_gpu_request(merged.get("resourceRequirements", ())):
            gpus.append((container["name"], request))
        for mapping in container.get("portMappings", ()):
            ports[mapping.get("protocol", "tcp")].add(host_port(mapping, definition.get("networkMode", "bridge")))
    return Requirement(
        cpu_units=reserved.cpu_units,
        memory_mib=reserved.memory_mib,
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
