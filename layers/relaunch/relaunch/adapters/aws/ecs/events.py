"""What ECS says of tasks, in EventBridge events and in DescribeTasks alike, and of container instances when described.

Speaks "ECS Task State Change" ("Amazon ECS events", Amazon ECS Developer Guide; samples in events/aws.ecs.*.json).
Container instances' own events are not subscribed to: what they tell of a task comes as the task's event, and every
task that a busy machine starts or stops would make one. Events come more than once and in any order: `version` of the
detail tells which is newer, while the envelope's `version` is always "0". Members that are not known are ignored, and
of those that are known only the ARN must be there.
"""

from collections.abc import Mapping

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from relaunch.adapters.aws.timestamps import Timestamp
from relaunch.adapters.validation import describe_errors
from relaunch.core.launches.launch import ContainerInstance, ContainerInstanceObservation, TaskObservation
from relaunch.core.launches.placement_constraints import AVAILABILITY_ZONE, INSTANCE_TYPE
from relaunch.core.selection.gpu_devices import GpuDevice
from relaunch.ports import PermanentError

TASK_STATE_CHANGE = "ECS Task State Change"


class _Payload(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, alias_generator=to_camel)

    @model_validator(mode="before")
    @classmethod
    def _take_null_for_missing(cls, members: object) -> object:
        if not isinstance(members, Mapping):
            return members
        return {name: value for name, value in members.items() if value is not None}


class _Container(_Payload):
    name: str = ""
    exit_code: int | None = None
    reason: str | None = None


class _Task(_Payload):
    task_arn: str = Field(min_length=1)
    last_status: str = ""
    desired_status: str = ""
    version: int = 0
    started_by: str | None = None
    stop_code: str | None = None
    stopped_reason: str | None = None
    containers: tuple[_Container, ...] = ()
    container_instance_arn: str | None = None
    availability_zone: str | None = None
    created_at: Timestamp | None = None
    started_at: Timestamp | None = None
    stopped_at: Timestamp | None = None


class _Attribute(_Payload):
    name: str = ""
    value: str | None = None


class _Gpu(_Payload):
    gpu_id: str = ""
    sharing_mode: str = ""
    total_memory: int = Field(0, alias="totalMemoryInMiB")
    remaining_memory: int = Field(0, alias="remainingMemoryInMiB")
    container_count: int = 0


class _ContainerInstance(_Payload):
    container_instance_arn: str = Field(min_length=1)
    # Machines outside EC2 (ECS Anywhere) have none.
    instance_id: str = Field("", validation_alias=AliasChoices("ec2InstanceId", "ec2instanceId"))
    status: str = ""
    running_tasks_count: int = 0
    pending_tasks_count: int = 0
    registered_at: Timestamp | None = None
    attributes: tuple[_Attribute, ...] = ()
    gpu_devices: tuple[_Gpu, ...] = ()


class _Envelope(_Payload):
    detail_type: str = Field("", alias="detail-type")
    detail: Mapping[str, object] = Field(default_factory=dict)


def parse_ecs_event(event: Mapping[str, object]) -> TaskObservation | None:
    """Read an EventBridge event from `aws.ecs`; None for a detail type that concerns nobody here.

    Raises:
        PermanentError: The event is of a known type and has not what every such event has.
    """
    try:
        envelope = _Envelope.model_validate(event)
    except ValidationError as error:
        raise PermanentError(f"reading an event from ECS: {describe_errors(error)}") from error
    return observe_task(envelope.detail) if envelope.detail_type == TASK_STATE_CHANGE else None


def observe_task(task: Mapping[str, object]) -> TaskObservation:
    """Read a task as an event's detail or as DescribeTasks, RunTask and StopTask carry it.

    Raises:
        PermanentError: It has no ARN, or a member of a wrong type.
    """
    try:
        seen = _Task.model_validate(task)
    except ValidationError as error:
        raise PermanentError(f"reading a task of ECS: {describe_errors(error)}") from error
    return TaskObservation(
        task_arn=seen.task_arn,
        started_by=seen.started_by or "",
        last_status=seen.last_status,
        desired_status=seen.desired_status,
        version=seen.version,
        stop_code=seen.stop_code or "",
        stopped_reason=seen.stopped_reason or "",
        container_exit_codes={container.name: container.exit_code for container in seen.containers},
        container_reasons={container.name: container.reason for container in seen.containers if container.reason},
        container_instance_arn=seen.container_instance_arn,
        zone=seen.availability_zone,
        created_at=seen.created_at,
        started_at=seen.started_at,
        stopped_at=seen.stopped_at,
    )


def observe_container_instance(machine: Mapping[str, object]) -> ContainerInstanceObservation:
    """Read a container instance as DescribeContainerInstances carries it.

    Raises:
        PermanentError: It has no ARN, or a member of a wrong type.
    """
    seen = _read_container_instance(machine)
    attributes = {attribute.name: attribute.value for attribute in seen.attributes}
    instance = ContainerInstance(
        arn=seen.container_instance_arn,
        instance_id=seen.instance_id,
        instance_type=attributes.get(INSTANCE_TYPE) or "",
        zone=attributes.get(AVAILABILITY_ZONE),
    )
    return ContainerInstanceObservation(
        instance,
        seen.status,
        task_count=seen.running_tasks_count + seen.pending_tasks_count,
        registered_at=seen.registered_at,
    )


def observe_gpus(machine: Mapping[str, object]) -> list[GpuDevice]:
    """Read the GPUs of a container instance that supports sharing them; others have none.

    Raises:
        PermanentError: It has no ARN, or a member of a wrong type.
    """
    seen = _read_container_instance(machine)
    return [
        GpuDevice(
            gpu.gpu_id, seen.instance_id, gpu.sharing_mode, gpu.total_memory, gpu.remaining_memory, gpu.container_count
        )
        for gpu in seen.gpu_devices
    ]


def _read_container_instance(machine: Mapping[str, object]) -> _ContainerInstance:
    try:
        return _ContainerInstance.model_validate(machine)
    except ValidationError as error:
        raise PermanentError(f"reading a container instance of ECS: {describe_errors(error)}") from error
