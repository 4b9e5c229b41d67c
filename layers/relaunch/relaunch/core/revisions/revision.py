"""Task definition revisions: their order, what they require, what stopping takes, and which a stack may run.

ECS stops a container with SIGTERM, and with SIGKILL after its `stopTimeout` ("ContainerDefinition", Amazon ECS API
Reference). Without one it is ECS_CONTAINER_STOP_TIMEOUT of the agent, 30 seconds ("Amazon ECS container agent
configuration"). `stopTimeout` is at most 120 seconds on Fargate, and is kept within that everywhere.

torchrun passes SIGTERM to its workers and kills them 30 seconds later, whatever `stopTimeout` is
(pytorch/pytorch#119856). From torch 2.12 on, TORCH_ELASTIC_SHUTDOWN_TIMEOUT is that time in seconds; older versions
ignore the variable. While it waits for its peers it has no handler for SIGTERM, which Linux therefore discards for the
first process of a container (pid_namespaces(7)): an init process in its place passes the signal on.

A stack may run the task definitions of some families, with roles under some path. IAM holds it to that
(LaunchAttemptRole in template.yaml). Here it is checked before RunTask is called, so that a job fails with the reason
instead of AccessDenied.
"""

import re
from collections.abc import Iterable, Sequence

from relaunch.core.definitions.containers import main_of
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.records import dataclass

ACTIVE = "ACTIVE"

NEURON_DEVICE_PATH = r"/dev/neuron(?P<number>[0-9]+)"
_REVISION_ARN = r"(?:arn:[^:]+:ecs:[^:]*:[^:]*:task-definition/)?(?P<family>[^:/]+):(?P<revision>[0-9]+)"


DEFAULT_ARCHITECTURE = "X86_64"
"""The architecture of a task definition that names none."""


@dataclass(frozen=True, slots=True)
class ContainerRequirement:
    """The resource requirements of a container; memory in MiB is the reservation, or else the hard limit.

    `gpu_count` is the number of whole GPUs (1 for `ALL`); it is 0 for a container with a share of a GPU by NVIDIA MPS
    (`gpu_share_mib` of its memory) or with a fraction of a GPU on a fractional instance type (`gpu_partition`).
    `platforms` are those of its image (`linux/arm64`); empty if unknown. `stop_timeout_seconds` is None without one.
    `is_essential`: ECS stops the task when it ends; False in what an earlier version stored. `torchrun_variables` are
    those of TORCHRUN_VARIABLES that the task definition gives it. `has_shared_memory`: the task definition says what it
    has at /dev/shm; False in what an earlier version stored.
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
    torchrun_variables: tuple[str, ...] = ()
    has_shared_memory: bool = False


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
    match = re.fullmatch(_REVISION_ARN, arn)
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


def main_container(definition: JobDefinition, revision: Revision) -> str | None:
    """Return the container that gets the overrides: the definition's, or the only one; None if it is ambiguous."""
    return main_of(definition.container, [each.name for each in revision.containers])


def find_main(definition: JobDefinition, revision: Revision) -> ContainerRequirement | None:
    """Return the container that gets the overrides; None if it is ambiguous, or the revision has none of its name."""
    name = main_container(definition, revision)
    return next((each for each in revision.containers if each.name == name), None)


WARNING_SECONDS = 120
"""From EC2's warning to the interruption ("Spot Instance interruption notices", Amazon EC2 User Guide)."""
# From EC2's warning to SIGTERM in 95 of 100 cases: EventBridge, our StopTask and the agent. A budget, not measured; the
# metric WarningToStop shows all of it but the agent's second.
_WARNING_TO_SIGTERM_SECONDS = 30

STOP_TIMEOUT_SECONDS = WARNING_SECONDS - _WARNING_TO_SIGTERM_SECONDS
"""What a spot interruption leaves of its warning after SIGTERM, in seconds: `stopTimeout` of derived revisions."""


@dataclass(frozen=True, slots=True)
class StopTimeout:
    """The seconds from SIGTERM to SIGKILL; `is_own`: they are those of the task definition, else Relaunch sets them."""

    seconds: int
    is_own: bool

    def __str__(self) -> str:
        """Return a sentence for the owner of the job."""
        follows = f"SIGKILL follows SIGTERM after {self.seconds} s"
        if not self.is_own:
            return f"{follows}: set by Relaunch, for the task definition has no `stopTimeout`"
        if self.seconds == STOP_TIMEOUT_SECONDS:
            return f"{follows}: `stopTimeout` of the task definition"
        return f"{follows}: `stopTimeout` of the task definition; a spot warning leaves about {STOP_TIMEOUT_SECONDS} s"


def find_stop_timeout(definition: JobDefinition, revision: Revision) -> StopTimeout | None:
    """Return the stop timeout of the main container; None if the revision has no such container."""
    main = find_main(definition, revision)
    if main is None:
        return None
    own = main.stop_timeout_seconds
    return StopTimeout(STOP_TIMEOUT_SECONDS if own is None else own, own is not None)


SHUTDOWN_TIMEOUT = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
"""The variable with the seconds from SIGTERM until torchrun kills its workers."""
PROCESSES = "PET_NPROC_PER_NODE"
"""The variable with the number of processes that torchrun starts on a node."""
TORCHRUN_VARIABLES = (PROCESSES, SHUTDOWN_TIMEOUT)
"""What a task definition may say to torchrun for each of its tasks. Where ranks meet, it cannot know."""
USUAL_SHUTDOWN_SECONDS = 30
"""These seconds without the variable, and of torch before 2.12 with it."""
# What torchrun needs to end after its workers, before SIGKILL.
_MARGIN_SECONDS = 5

_TORCHRUN = r"(^|[\s/;&|(])torchrun($|\s)|\btorch\.distributed\.(run|launch)\b"
_SHELL = r"(.*/)?(ba|da|z|k|a)?sh"
_EXEC = r"\bexec\s"


def runs_torchrun(command: Sequence[str]) -> bool:
    """Return whether a command line starts torchrun, by itself or from a shell."""
    return any(re.search(_TORCHRUN, each) for each in command)


def has_shell_before(command: Sequence[str]) -> bool:
    """Return whether a shell stays between ECS and what a command line starts.

    An init process would end such a container at once: a shell that is not the first process dies of SIGTERM.
    """
    starts_shell = bool(command) and re.fullmatch(_SHELL, command[0]) is not None
    return starts_shell and not any(re.search(_EXEC, each) for each in command[1:])


def shutdown_seconds(stop_timeout_seconds: int) -> int:
    """Return how long torchrun may wait for its workers so that it ends before SIGKILL, 0 for no time at all."""
    return max(stop_timeout_seconds - _MARGIN_SECONDS, 0)


_CHANGE = "or change the parameter of the stack"


@dataclass(frozen=True, slots=True)
class TaskDefinitionGrants:
    """What the stack's role may run and pass to tasks.

    `families` are names, or beginnings of names followed by `*`; None stands for any. `role_path` is an IAM path
    without the slash in front and with one at the end; empty for any. `has_host_access`: containers may have their
    machine (core.task_definitions.host_access).
    """

    families: tuple[str, ...] | None = None
    role_path: str = ""
    has_host_access: bool = False

    def has_family(self, family: str) -> bool:
        """Return whether a family may be run."""
        return self.families is None or any(_matches(family, pattern) for pattern in self.families)


def family_problem(family: str, grants: TaskDefinitionGrants) -> str:
    """Return why task definitions of a family may not be run, empty if they may."""
    if grants.has_family(family):
        return ""
    allowed = ", ".join(grants.families or ())
    return (
        f"the stack may not run task definitions of the family {family}: its parameter TaskDefinitionFamilies has "
        f"{allowed}; register the task definition in such a family, {_CHANGE}"
    )


def revision_problem(revision: Revision, grants: TaskDefinitionGrants) -> str:
    """Return why a revision may not be run, because of its family or its roles; empty if it may.

    A job that was accepted before its revision had roles here has none: IAM decides on it.
    """
    roles = {"task role": revision.task_role_arn, "execution role": revision.execution_role_arn}
    problems = (_role_problem(name, arn, grants.role_path) for name, arn in roles.items() if arn)
    return family_problem(revision.family, grants) or next(filter(None, problems), "")


def _role_problem(name: str, arn: str, path: str) -> str:
    if arn.partition(":role/")[2].startswith(path):
        return ""
    return (
        f"the stack may not pass the {name} {arn}: its parameter TaskRolePath has {path}; create the role with "
        f"--path /{path}, {_CHANGE}"
    )


def _matches(family: str, pattern: str) -> bool:
    return family.startswith(pattern[:-1]) if pattern.endswith("*") else family == pattern
