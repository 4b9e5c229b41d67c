"""Launch requests, their outcomes, and observations of tasks and instances."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from relaunch.core.launches.gpu_override import GpuOverride, build_requirement, check_override
from relaunch.core.launches.placement_constraints import MAX_EXPRESSION_LENGTH
from relaunch.core.offerings.offering import CapacityFailure, OfferingKey

# RunTask's limits (RunTaskRequest, Amazon ECS API Reference).
MAX_CONSTRAINTS = 10
MAX_OVERRIDES_LENGTH = 8192
_STARTED_BY = re.compile(r"[A-Za-z0-9_/-]{1,128}", re.ASCII)
_CLIENT_TOKEN = re.compile(r"[!-~]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """The parameters of RunTask, derived from a placement try only, so that a repeated request is identical.

    `gpu` None keeps the GPU requirement of the revision. `takes_all_neuron` requests all Neuron devices, which only ECS
    Managed Instances support. `own_constraint_count` is the number of placement constraints of the revision.
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
    """RunTask returned a task."""

    task_arn: str


@dataclass(frozen=True, slots=True)
class PlacementFailed:
    """RunTask returned `failures[]` and no task: `reasons` are those of ECS (`RESOURCE:GPU`, `ATTRIBUTE`…).

    `detail` is an explanation for the timeline.
    """

    reasons: tuple[str, ...]
    detail: str = ""


@dataclass(frozen=True, slots=True)
class LaunchDeferred:
    """ECS throttled the request, or a quota of tasks is reached: the same request is sent again later.

    `waiting` is the number of other waiting launches; None if unknown or irrelevant.
    """

    reason: str
    waiting: int | None = None


@dataclass(frozen=True, slots=True)
class LaunchRefused:
    """ECS rejected the request permanently (ClientException, InvalidParameterException…)."""

    reason: str


@dataclass(frozen=True, slots=True)
class LaunchConflict:
    """ConflictException: these tasks were launched with the same client token and other parameters."""

    task_arns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LaunchUncertain:
    """Time-out or server error: the request may have taken effect, and the same request is sent again."""

    reason: str


LaunchOutcome = TaskPlaced | PlacementFailed | LaunchDeferred | LaunchRefused | LaunchConflict | LaunchUncertain


@dataclass(frozen=True, slots=True)
class TaskObservation:
    """The state of a task, from an event or from DescribeTasks.

    `version` is `detail.version`. `container_exit_codes` and `container_reasons` are by container name. A task with the
    `desired_status` STOPPED and another `last_status` is stopping.
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
    """A container instance: its ARN, EC2 instance ID, instance type and zone."""

    arn: str
    instance_id: str
    instance_type: str = ""
    zone: str | None = None


class InstanceEventKind(StrEnum):
    """The kinds of instance events."""

    INTERRUPTION_WARNING = "interruption-warning"
    REBALANCE_RECOMMENDATION = "rebalance-recommendation"
    STATE_CHANGE = "state-change"


@dataclass(frozen=True, slots=True)
class InstanceEvent:
    """An EC2 event about an instance: interruption warning, rebalance recommendation or state change."""

    kind: InstanceEventKind
    instance_id: str
    state: str = ""
    at: datetime | None = None
    offering: OfferingKey | None = None


@dataclass(frozen=True, slots=True)
class ContainerInstanceObservation:
    """The state of a container instance; `status` is ACTIVE, DRAINING or another.

    `task_count` is the number of running and pending tasks. `capacity_provider` is empty for an instance of none.
    `gpu_count` is the number of GPUs that its ECS agent registered.
    """

    instance: ContainerInstance
    status: str
    task_count: int = 0
    registered_at: datetime | None = None
    capacity_provider: str = ""
    gpu_count: int = 0


def refutes(seen: ContainerInstanceObservation, failure: CapacityFailure) -> bool:
    """Return whether a container instance shows that there is capacity again: it registered after the failure.

    An instance without the GPUs that the launch needed, as of an image without their driver, shows nothing: its tasks
    would wait and be withdrawn again.
    """
    is_same = seen.capacity_provider == failure.capacity_provider != ""
    is_same = is_same and seen.instance.instance_type == failure.offering.instance_type
    is_usable = seen.status == "ACTIVE" and seen.gpu_count >= failure.gpu_count
    return is_same and is_usable and seen.registered_at is not None and seen.registered_at > failure.at


def may_refute(seen: ContainerInstanceObservation, failure: CapacityFailure) -> bool:
    """Return whether an instance may refute a failure, as far as the event of the instance says.

    AWS's schema of the event has no capacity provider, and its samples have no `registeredAt` and few attributes.
    """
    is_same = seen.instance.instance_type in ("", failure.offering.instance_type)
    return is_same and (seen.registered_at is None or seen.registered_at > failure.at)


def client_token(job_id: str, attempt: int, placement: int) -> str:
    """Return the client token of a placement try, which is unique to it and always the same.

    It has 64 hexadecimal characters; ECS allows up to 64 characters of ASCII 33 to 126.
    """
    return hashlib.sha256(f"{job_id}/{attempt}/{placement}".encode()).hexdigest()


def build_overrides(request: LaunchRequest) -> dict[str, object]:
    """Return `overrides` of RunTask, identical for identical requests, as their client token requires."""
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
    """Return the documented limits of RunTask that the request violates; the SDK does not check them.

    The length of the overrides is that of the JSON sent by the SDK (with spaces after separators and escaped
    characters), which is never less than what ECS counts.
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
