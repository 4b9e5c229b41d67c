"""Launch requests and what can come of them, independent of the target."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from relaunch.core.launches.gpu_override import GpuOverride, build_requirement, check_override
from relaunch.core.launches.placement_constraints import MAX_EXPRESSION_LENGTH
from relaunch.core.offerings.offering import OfferingKey

# RunTask's limits (RunTaskRequest, Amazon ECS API Reference).
MAX_CONSTRAINTS = 10
MAX_OVERRIDES_LENGTH = 8192
_STARTED_BY = re.compile(r"[A-Za-z0-9_/-]{1,128}", re.ASCII)
_CLIENT_TOKEN = re.compile(r"[!-~]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One RunTask in the making; built from a frozen placement try alone, so that it is the same each time it is sent.

    `gpu` None leaves the revision's own GPU requirement as it is.
    `takes_all_neuron` asks for every Neuron device, which only ECS Managed Instances give out.
    `subnets` and `security_groups` are used by awsvpc revisions only.
    """

    revision_arn: str
    capacity_provider: str
    placement_constraints: tuple[str, ...]
    container: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    started_by: str
    client_token: str
    gpu: GpuOverride | None = None
    takes_all_neuron: bool = False
    network_mode: str = "bridge"
    own_constraint_count: int = 0


@dataclass(frozen=True, slots=True)
class TaskPlaced:
    """RunTask answered with a task."""

    task_arn: str


@dataclass(frozen=True, slots=True)
class PlacementFailed:
    """RunTask answered with `failures[]` and no task: `reasons` are ECS's (`RESOURCE:GPU`, `ATTRIBUTE`…).

    `detail` is what we found out about them, for the timeline.
    """

    reasons: tuple[str, ...]
    detail: str = ""


@dataclass(frozen=True, slots=True)
class LaunchDeferred:
    """ECS does not want the call now (ThrottlingException, the quota of PROVISIONING tasks): send the same later.

    `waiting` is how many launches wait besides; None where that does not matter or is not known.
    """

    reason: str
    waiting: int | None = None


@dataclass(frozen=True, slots=True)
class LaunchRefused:
    """ECS refuses this request and will refuse it again (ClientException, InvalidParameterException…)."""

    reason: str


@dataclass(frozen=True, slots=True)
class LaunchConflict:
    """ConflictException: the client token belongs to these tasks, launched with other parameters."""

    task_arns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LaunchUncertain:
    """No answer (time-out, server error): the call may have taken effect; send the same again."""

    reason: str


LaunchOutcome = TaskPlaced | PlacementFailed | LaunchDeferred | LaunchRefused | LaunchConflict | LaunchUncertain


@dataclass(frozen=True, slots=True)
class TaskObservation:
    """What ECS says of one task, from an event or from DescribeTasks.

    `version` is ECS's `detail.version`. `exit_code` is that of the container that counts when `container_exit_codes`
    is looked up by its name. `desired_status` `STOPPED` with another `last_status` means: on its way out.
    """

    task_arn: str
    started_by: str
    last_status: str
    desired_status: str
    version: int
    stop_code: str = ""
    stopped_reason: str = ""
    container_exit_codes: Mapping[str, int | None] = field(default_factory=dict)
    container_reasons: Mapping[str, str] = field(default_factory=dict)
    container_instance_arn: str | None = None
    zone: str | None = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    stopped_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ContainerInstance:
    """A machine in the cluster: its ECS ARN, its EC2 id, type and zone."""

    arn: str
    instance_id: str
    instance_type: str = ""
    zone: str | None = None


class InstanceEventKind(StrEnum):
    """The kinds of news about a machine."""

    INTERRUPTION_WARNING = "interruption-warning"
    REBALANCE_RECOMMENDATION = "rebalance-recommendation"
    STATE_CHANGE = "state-change"


@dataclass(frozen=True, slots=True)
class InstanceEvent:
    """What EC2 says of a machine: a spot warning, a rebalance recommendation, a state change."""

    kind: InstanceEventKind
    instance_id: str
    state: str = ""
    at: datetime | None = None
    offering: OfferingKey | None = None


@dataclass(frozen=True, slots=True)
class ContainerInstanceObservation:
    """What ECS says of a container instance, whose `status` is ACTIVE, DRAINING or another.

    `task_count` counts the tasks that run there or are about to.
    """

    instance: ContainerInstance
    status: str
    task_count: int = 0
    registered_at: datetime | None = None


def client_token(job_id: str, attempt: int, placement: int) -> str:
    """Derive the client token of a placement try: the same each time, and another one for every other try.

    64 hexadecimal characters: ECS takes at most 64 of ASCII 33 to 126.
    """
    return hashlib.sha256(f"{job_id}/{attempt}/{placement}".encode()).hexdigest()


def build_overrides(request: LaunchRequest) -> dict[str, object]:
    """Build RunTask's `overrides`: the same parameters give the same text, which the client token depends on."""
    container: dict[str, object] = {"name": request.container}
    if request.command:
        container["command"] = list(request.command)
    container["environment"] = [{"name": name, "value": value} for name, value in sorted(request.environment.items())]
    if request.gpu is not None:
        container["resourceRequirements"] = [build_requirement(request.gpu)]
    if request.takes_all_neuron:
        container["resourceRequirements"] = [{"type": "NeuronDevice", "value": "ALL"}]
    return {"containerOverrides": [container]}


def check_limits(request: LaunchRequest) -> tuple[str, ...]:
    """Return in words which documented limits of RunTask the request breaks; nothing checks them before ECS does.

    The length of the overrides is measured as the SDK sends them (with blanks after separators and escaped
    characters), which is never shorter than what ECS counts.
    """
    violations = [*_constraint_violations(request), *(check_override(request.gpu) if request.gpu else ())]
    overrides_length = len(json.dumps(build_overrides(request)))
    if overrides_length > MAX_OVERRIDES_LENGTH:
        violations.append(f"the overrides have {overrides_length} characters, ECS takes {MAX_OVERRIDES_LENGTH}")
    if not _STARTED_BY.fullmatch(request.started_by):
        violations.append(f"startedBy must be 1 to 128 of letters, digits, '-', '_' and '/': {request.started_by!r}")
    if not _CLIENT_TOKEN.fullmatch(request.client_token):
        violations.append(f"the client token must be 1 to 64 of ASCII 33 to 126: {request.client_token!r}")
    return tuple(violations)


def _constraint_violations(request: LaunchRequest) -> list[str]:
    count = len(request.placement_constraints) + request.own_constraint_count
    violations = [
        f"a placement constraint has {len(expression)} characters, ECS takes 1 to {MAX_EXPRESSION_LENGTH}"
        for expression in request.placement_constraints
        if not 0 < len(expression) <= MAX_EXPRESSION_LENGTH
    ]
    if count > MAX_CONSTRAINTS:
        violations.append(
            f"{count} placement constraints with the {request.own_constraint_count} of the task definition, "
            f"ECS takes {MAX_CONSTRAINTS}"
        )
    return violations
