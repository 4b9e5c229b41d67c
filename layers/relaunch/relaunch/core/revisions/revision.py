"""Task definition revisions: which one is newest, and what it asks of a machine."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

ACTIVE = "ACTIVE"

NEURON_DEVICE_PATH = re.compile(r"/dev/neuron(?P<number>[0-9]+)")
_REVISION_ARN = re.compile(r"(?:arn:[^:]+:ecs:[^:]*:[^:]*:task-definition/)?(?P<family>[^:/]+):(?P<revision>[0-9]+)")


@dataclass(frozen=True, slots=True)
class ContainerRequirement:
    """What one container of a revision asks for; memory in MiB, the hard limit or else the reservation.

    `gpu_count` counts whole GPUs (`ALL` as one). A container has none of them when it shares a card (`gpu_share_mib` of
    its memory, by NVIDIA MPS) or takes the part of a GPU that fractional instance types have (`gpu_partition`).
    `platforms` are those its image is for (`linux/arm64`), as its registry tells; none where that is not known.
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
        """Return the whole GPUs of all containers together: one machine must have them all."""
        return sum(container.gpu_count for container in self.containers)


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """A revision as ECS lists it: its ARN and its status, of which only ACTIVE can run new tasks."""

    arn: str
    status: str = ACTIVE


def parse_revision_arn(arn: str) -> tuple[str, int] | None:
    """Return family and revision of a task definition's ARN (or of `family:revision`); None when it is neither."""
    match = _REVISION_ARN.fullmatch(arn)
    return (match["family"], int(match["revision"])) if match else None


def rank_revisions(rows: Iterable[RevisionRow], family: str) -> tuple[str, ...]:
    """Return the ARNs of the ACTIVE revisions of exactly this family, newest first.

    Revisions are compared as numbers, and the order of the rows means nothing: emulators list 10 before 9, and families
    whose name merely begins like this one.
    """
    found: dict[int, str] = {}
    for row in rows:
        name = parse_revision_arn(row.arn)
        if name is not None and name[0] == family and row.status == ACTIVE:
            found[name[1]] = row.arn
    return tuple(found[revision] for revision in sorted(found, reverse=True))
