"""The objects of the Kubernetes API, as far as they are read (Kubernetes API Reference).

Unknown members are ignored, and of the known ones only the name is required: servers of several versions answer.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

Timestamp = Annotated[datetime, AfterValidator(lambda timestamp: timestamp.astimezone(UTC))]
"""RFC 3339 text, converted to UTC; Kubernetes writes whole seconds."""


class ApiModel(BaseModel):
    """A part of an object; null means that a member is not there."""

    model_config = ConfigDict(extra="ignore", frozen=True, alias_generator=to_camel, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _remove_nulls(cls, members: object) -> object:
        if not isinstance(members, Mapping):
            return members
        return {name: value for name, value in members.items() if value is not None}


class ObjectMeta(ApiModel):
    """The metadata of an object; `deletion_timestamp` is when it is to be gone at the latest."""

    name: str = Field(min_length=1)
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: Mapping[str, str] = Field(default_factory=dict)
    annotations: Mapping[str, str] = Field(default_factory=dict)
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None


class Condition(ApiModel):
    """A condition of a Job, a pod or a node; `status` is True, False or Unknown."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Timestamp | None = None

    @property
    def is_true(self) -> bool:
        """Return whether the condition holds."""
        return self.status == "True"


class JobSpec(ApiModel):
    """The specification of a Job."""

    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None


class JobStatus(ApiModel):
    """The status of a Job."""

    conditions: tuple[Condition, ...] = ()
    start_time: Timestamp | None = None
    completion_time: Timestamp | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0


class Job(ApiModel):
    """A Job (batch/v1)."""

    metadata: ObjectMeta
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class ContainerStateWaiting(ApiModel):
    """Why a container waits."""

    reason: str = ""
    message: str = ""


class ContainerStateRunning(ApiModel):
    """Since when a container runs."""

    started_at: Timestamp | None = None


class ContainerStateTerminated(ApiModel):
    """How a container ended."""

    exit_code: int
    reason: str = ""
    message: str = ""
    started_at: Timestamp | None = None
    finished_at: Timestamp | None = None


class ContainerState(ApiModel):
    """The state of a container: one of the three, or none of them yet."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(ApiModel):
    """The status of a container of a pod."""

    name: str
    state: ContainerState = ContainerState()


class PodSpec(ApiModel):
    """The specification of a pod; `node_name` is empty until it is scheduled."""

    node_name: str = ""


class PodStatus(ApiModel):
    """The status of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(ApiModel):
    """A pod (v1)."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class NodeSpec(ApiModel):
    """The specification of a node."""

    unschedulable: bool = False


class NodeStatus(ApiModel):
    """The status of a node; `allocatable` are quantities as text."""

    conditions: tuple[Condition, ...] = ()
    capacity: Mapping[str, str] = Field(default_factory=dict)
    allocatable: Mapping[str, str] = Field(default_factory=dict)


class Node(ApiModel):
    """A node (v1)."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
