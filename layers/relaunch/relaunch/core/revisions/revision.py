"""Task definition revisions: their order and their resource requirements."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

ACTIVE = "ACTIVE"

NEURON_DEVICE_PATH = re.compile(r"/dev/neuron(?P<number>[0-9]+)")
_REVISION_ARN = re.compile(r"(?:arn:[^:]+:ecs:[^:]*:[^:]*:task-definition/)?(?P<family>[^:/]+):(?P<revision>[0-9]+)")


DEFAULT_ARCHITECTURE = "X86_64"
"""The architecture of a task definition that names none."""


@dataclass(frozen=True, slots=True)
class ContainerRequirement:
    """The resource requirements of a container; memory in MiB is the reservation, or else the hard limit.

    `gpu_count` is the number of whole GPUs (1 for `ALL`); it is 0 for a container with a share of a GPU by NVIDIA MPS
    (`gpu_share_mib` of its memory) or with a fraction of a GPU on a fractional instance type (`gpu_partition`).
    `platforms` are those of its image (`linux/arm64`); empty if unknown. `stop_timeout_seconds` is None without one.
    `is_essential`: ECS stops the task when it ends; False in what an earlier version stored.
    """

    name: str
    image: str
    gpu_count: int = 0
    memory_mib: int = 0
    vcpus: float = 0.0
    host_ports: tuple[int, ...] = ()
    neuron_devices: tuple[str, ...] = ()
    gpu_share_mib: int = 0
    gpu_partition: float = 0.0
    platforms: tuple[str, ...] = ()
    stop_timeout_seconds: int | None = None
    is_essential: bool = False


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision of an ECS task definition and its requirements for placement.

    `vcpus` and `memory_mib` are what ECS reserves for a task, which the sum of its containers need not be.
    `placement_constraint_count` is the number of its own constraints, which count towards RunTask's limit of ten.
    `placement_constraints` are the expressions that an instance must satisfy: its own constraints, and the attributes
    that ECS requires of the instance and the agent of an ECS-optimized image does not have (empty for a job that was
    accepted before they were read). `architecture` is ECS's `X86_64` or `ARM64`. The roles are empty if the task
    definition names none. `is_managed_only`: ECS runs it on Managed Instances alone. `refusals` say why Relaunch
    launches no task of it, and `warnings` what a job of it is to expect.
    """

    arn: str
    family: str
    revision: int
    containers: tuple[ContainerRequirement, ...]
    network_mode: str = "bridge"
    vcpus: float = 0.0
    memory_mib: int = 0
    architecture: str = DEFAULT_ARCHITECTURE
    placement_constraint_count: int = 0
    task_role_arn: str = ""
    execution_role_arn: str = ""
    placement_constraints: tuple[str, ...] = ()
    is_managed_only: bool = False
    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def gpu_count(self) -> int:
        """Return the number of whole GPUs of all containers, which must be on one instance."""
        return sum(container.gpu_count for container in self.containers)

    @property
    def essential_names(self) -> frozenset[str]:
        """Return the names of the essential containers; empty if an earlier version stored it."""
        return frozenset(container.name for container in self.containers if container.is_essential)


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """The ARN and status of a revision; new tasks need an ACTIVE one."""

    arn: str
    status: str = ACTIVE


def parse_revision_arn(arn: str) -> tuple[str, int] | None:
    """Return family and revision of a task definition ARN or of `family:revision`; None if it is neither."""
    match = _REVISION_ARN.fullmatch(arn)
    return (match["family"], int(match["revision"])) if match else None


def rank_revisions(rows: Iterable[RevisionRow], family: str) -> tuple[str, ...]:
    """Return the ARNs of the ACTIVE revisions of a family, newest first.

    Revisions are compared as numbers and families in full: emulators list revision 10 before 9, and also families that
    only begin with the name.
    """
    found: dict[int, str] = {}
    for row in rows:
        name = parse_revision_arn(row.arn)
        if name is not None and name[0] == family and row.status == ACTIVE:
            found[name[1]] = row.arn
    return tuple(found[revision] for revision in sorted(found, reverse=True))
