"""Task definition revisions: which one is newest, and what it asks of a machine."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ContainerRequirement:
    """What one container of a revision asks for; memory in MiB, the hard limit or else the reservation."""

    name: str
    image: str
    is_essential: bool = True
    gpu_count: int = 0
    memory_mib: int = 0
    vcpus: float = 0.0
    host_ports: tuple[int, ...] = ()
    neuron_devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Revision:
    """A pinned revision of an ECS task definition and what placing it needs.

    `placement_constraint_count` counts the revision's own constraints: RunTask allows ten with them included.
    `architecture` is ECS's `X86_64` or `ARM64`.
    """

    arn: str
    family: str
    revision: int
    containers: tuple[ContainerRequirement, ...]
    network_mode: str = "bridge"
    vcpus: float = 0.0
    memory_mib: int = 0
    architecture: str = "X86_64"
    placement_constraint_count: int = 0

    @property
    def gpu_count(self) -> int:
        """Return the GPUs of all containers together: one machine must have them all."""
        return sum(container.gpu_count for container in self.containers)
