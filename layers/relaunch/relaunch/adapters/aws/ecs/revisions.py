"""The newest ACTIVE revision of a task definition family, and its resource requirements.

The actions are DescribeTaskDefinition and ListTaskDefinitions ("TaskDefinition", Amazon ECS API Reference).
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import ClientError

from relaunch.adapters.aws.ecs.pages import read_pages
from relaunch.adapters.aws.errors import aws_errors, error_code
from relaunch.core.definitions.accelerator import SHARED_MEMORY_PATH
from relaunch.core.launches.derived_revision import is_derived_family
from relaunch.core.revisions.revision import (
    ACTIVE,
    DEFAULT_ARCHITECTURE,
    NEURON_DEVICE_PATH,
    TORCHRUN_VARIABLES,
    ContainerRequirement,
    Revision,
    RevisionRow,
    rank_revisions,
)
from relaunch.core.task_definitions.host_access import find_host_access
from relaunch.core.task_definitions.reservation import CPU_UNITS_PER_VCPU, Reservation, reserve, reserved_memory_mib
from relaunch.core.task_definitions.verdicts import find_refusals, find_warnings, instance_constraints, is_managed_only
from relaunch.ports import Clock, NoActiveRevisionError, TransientError

if TYPE_CHECKING:
    from mypy_boto3_ecs import ECSClient

_GPU_FRACTION = re.compile(r"0?\.[0-9]+")
_NUMBER = re.compile(r"[0-9]{1,6}")
# Attempts to describe a listed revision, which may have been deregistered since.
_MAX_DESCRIBED = 3

# Timestamps of events are truncated to seconds, and clocks differ.
_CLOCK_TOLERANCE = timedelta(seconds=2)
_MAX_AGE = timedelta(minutes=1)

_Definition = Mapping[str, Any]


class EcsRevisions:
    """Implements RevisionSource.

    DescribeTaskDefinition with a family returns its newest ACTIVE revision. Family and status are checked, because
    emulators return INACTIVE revisions and a revision may be deregistered at any time; if they do not match, all pages
    of ListTaskDefinitions are read.

    Without `has_host_access` a revision that gives containers their machine is one that Relaunch launches no task of.

    With a clock, a response is cached for a minute, and used for events that are older than it: DescribeTaskDefinition
    has a burst rate of 50 and a sustained rate of 20 per second, and there may be thousands of events at once.
    """

    def __init__(self, client: "ECSClient", clock: Clock | None = None, *, has_host_access: bool = False) -> None:
        self._client = client
        self._clock = clock
        self._has_host_access = has_host_access
        self._kept: dict[str, tuple[datetime, Revision]] = {}

    def newest_active(self, family: str, since: datetime | None = None) -> Revision:
        if self._clock is None:
            return self._ask(family)
        now = self._clock.now()
        if family in self._kept and since is not None:
            asked_at, kept = self._kept[family]
            if since + _CLOCK_TOLERANCE <= asked_at and now - asked_at < _MAX_AGE:
                return kept
        revision = self._ask(family)
        self._kept[family] = (now, revision)
        return revision

    def _ask(self, family: str) -> Revision:
        if is_derived_family(family):
            raise NoActiveRevisionError(f"the family {family} holds derived revisions: name the family it comes from")
        definition = self._describe(family, family)
        if definition is not None:
            return read_revision(definition, has_host_access=self._has_host_access)
        ranked = rank_revisions(self._list(family), family)
        for arn in ranked[:_MAX_DESCRIBED]:
            definition = self._describe(arn, family)
            if definition is not None:
                return read_revision(definition, has_host_access=self._has_host_access)
        if len(ranked) > _MAX_DESCRIBED:
            raise TransientError(f"the newest {_MAX_DESCRIBED} revisions of family {family} were deregistered just now")
        raise NoActiveRevisionError(f"the family {family} has no ACTIVE revision")

    def _describe(self, name: str, family: str) -> _Definition | None:
        """Return a task definition if it is ACTIVE and of this family."""
        with aws_errors(f"describing task definition {name}"):
            try:
                response = self._client.describe_task_definition(taskDefinition=name)
            except ClientError as error:
                # "Unable to describe task definition.": not found, or no ACTIVE revision.
                if error_code(error) == "ClientException":
                    return None
                raise
        definition = cast("_Definition", response["taskDefinition"])
        is_wanted = definition.get("family") == family and definition.get("status") == ACTIVE
        return definition if is_wanted else None

    def _list(self, family: str) -> list[RevisionRow]:
        with aws_errors(f"listing the revisions of family {family}"):
            pages = read_pages(self._client.list_task_definitions, familyPrefix=family, status=ACTIVE)
            return [RevisionRow(arn) for page in pages for arn in page["taskDefinitionArns"]]


def read_revision(definition: _Definition, *, has_host_access: bool = False) -> Revision:
    """Parse a task definition as returned by DescribeTaskDefinition.

    CPU and memory of the revision are what ECS reserves. What gives containers their machine is refused unless the
    stack `has_host_access`.
    """
    network_mode = definition.get("networkMode") or "bridge"
    # They have the memory of the machine then, of which Linux gives half.
    shares_host = definition.get("ipcMode") == "host"
    containers = tuple(
        _container(each, network_mode, has_shared_memory=shares_host or _has_shared_memory(each))
        for each in definition.get("containerDefinitions", ())
    )
    reserved = _reserve(definition)
    return Revision(
        arn=definition["taskDefinitionArn"],
        family=definition["family"],
        revision=int(definition["revision"]),
        containers=containers,
        network_mode=network_mode,
        vcpus=reserved.cpu_units / CPU_UNITS_PER_VCPU,
        memory_mib=reserved.memory_mib,
        architecture=(definition.get("runtimePlatform") or {}).get("cpuArchitecture") or DEFAULT_ARCHITECTURE,
        placement_constraints=instance_constraints(definition),
        is_managed_only=is_managed_only(definition),
        refusals=(*find_refusals(definition), *(() if has_host_access else find_host_access(definition))),
        warnings=find_warnings(definition),
        placement_constraint_count=len(definition.get("placementConstraints") or ()),
        task_role_arn=definition.get("taskRoleArn") or "",
        execution_role_arn=definition.get("executionRoleArn") or "",
    )


def _has_shared_memory(container: Mapping[str, Any]) -> bool:
    """Return whether a container has a size of /dev/shm, or something of its own there (LinuxParameters)."""
    linux = container.get("linuxParameters") or {}
    mounts = (*(linux.get("tmpfs") or ()), *(container.get("mountPoints") or ()))
    return bool(linux.get("sharedMemorySize")) or any(
        each.get("containerPath") == SHARED_MEMORY_PATH for each in mounts
    )


def _container(container: Mapping[str, Any], network_mode: str, *, has_shared_memory: bool) -> ContainerRequirement:
    devices = (container.get("linuxParameters") or {}).get("devices") or ()
    variables = {each.get("name") for kind in ("environment", "secrets") for each in container.get(kind) or ()}
    return ContainerRequirement(
        name=container["name"],
        image=container.get("image", ""),
        memory_mib=reserved_memory_mib(container),
        vcpus=(container.get("cpu") or 0) / CPU_UNITS_PER_VCPU,
        host_ports=_host_ports(container.get("portMappings") or (), network_mode),
        neuron_devices=tuple(
            device["hostPath"] for device in devices if re.fullmatch(NEURON_DEVICE_PATH, device.get("hostPath", ""))
        ),
        stop_timeout_seconds=container.get("stopTimeout"),
        is_essential=container.get("essential", True),
        has_shared_memory=has_shared_memory,
        torchrun_variables=tuple(each for each in TORCHRUN_VARIABLES if each in variables),
        **_gpus(container.get("resourceRequirements") or ()),
    )


def _gpus(requirements: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the GPU fields of a container: whole GPUs (1 for `ALL`), a fraction of one, or a share by MPS."""
    fields: dict[str, Any] = {}
    for requirement in requirements:
        if requirement.get("type") != "GPU":
            continue
        value = str(requirement.get("value") or "")
        if sharing := requirement.get("sharingStrategy"):
            fields["gpu_share_mib"] = int((sharing.get("nvidiaMps") or {}).get("memory") or 0)
        elif _GPU_FRACTION.fullmatch(value):
            fields["gpu_partition"] = float(value)
        else:
            fields["gpu_count"] = int(value) if _NUMBER.fullmatch(value) else 1
    return fields


def _host_ports(mappings: Any, network_mode: str) -> tuple[int, ...]:
    """Return the static TCP host ports of the mappings; 0 is a dynamic port, and awsvpc tasks use no host ports.

    ECS lists UDP ports separately, and does not reserve any.
    """
    if network_mode not in {"bridge", "host"}:
        return ()
    is_host = network_mode == "host"
    ports = (
        mapping.get("hostPort") or (is_host and mapping.get("containerPort"))
        for mapping in mappings
        if (mapping.get("protocol") or "tcp") == "tcp"
    )
    return tuple(port for port in ports if port)


def _reserve(definition: _Definition) -> Reservation:
    try:
        return reserve(definition)
    except ValueError:
        # ECS registers no such size; an emulator may.
        return reserve({**definition, "cpu": None, "memory": None})
