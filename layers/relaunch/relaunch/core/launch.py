"""Launch requests and what can come of them, independent of the target."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from relaunch.core.offering import OfferingKey


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One RunTask in the making; built from a frozen placement try alone, so that it is the same each time it is sent.

    `gpu_count` None leaves the revision's own GPU requirement as it is.
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
    gpu_count: int | None = None
    network_mode: str = "bridge"
    own_constraint_count: int = 0


@dataclass(frozen=True, slots=True)
class TaskPlaced:
    """RunTask answered with a task."""

    task_arn: str


@dataclass(frozen=True, slots=True)
class PlacementFailed:
    """RunTask answered with `failures[]` and no task: `reasons` are ECS's (`RESOURCE:GPU`, `ATTRIBUTE`…)."""

    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LaunchDeferred:
    """ECS does not want the call now (ThrottlingException, the quota of PROVISIONING tasks): send the same later."""

    reason: str


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
    capacity_provider: str | None = None
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


@dataclass(frozen=True, slots=True)
class CapacityNews:
    """What EC2 says of a machine: a spot warning, a rebalance recommendation, a state change."""

    kind: str  # "interruption-warning" | "rebalance-recommendation" | "state-change"
    instance_id: str
    state: str = ""
    at: datetime | None = None
    offering: OfferingKey | None = None
