"""Parses tasks and container instances, from EventBridge events and Describe responses.

The detail types are "ECS Task State Change" and "ECS Container Instance State Change" ("Amazon ECS events", Amazon ECS
Developer Guide; samples in events/aws.ecs.*.json). There is one of the latter for each task that starts or stops on an
instance; template.yaml lets through only those of instances without a task. Events may be duplicated and out of order:
`detail.version` increases with each state, while `version` of the envelope is always "0". Unknown members are ignored,
and of the known ones only the ARN is required. `startedBy` is `<job>/<attempt>` for tasks of Relaunch.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from relaunch.adapters.aws.ecs.placement_constraints import AVAILABILITY_ZONE, INSTANCE_TYPE, NEURON_DEVICES
from relaunch.adapters.aws.ecs.stop_reports import report_of_container, report_of_task
from relaunch.adapters.received_type import ReceivedType
from relaunch.adapters.validation import Timestamp, Words, permanent_if_invalid
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.launches.launch import ContainerObservation, Node, NodeObservation, TaskObservation, TaskPhase
from relaunch.core.machines.machine import Resources
from relaunch.core.records import dataclass
from relaunch.core.selection.gpu_share import GpuDevice

# Tasks of services have startedBy `ecs-svc/<number>`, which has the same form; job ids end with a hash.
_OF_SERVICE = "ecs-svc"
_OF_ATTEMPT = re.compile(r"(?P<job_id>.+)/(?P<number>[1-9][0-9]{0,8})", re.ASCII)


def started_by(attempt: AttemptKey) -> str:
    """Return the `startedBy` of the tasks of an attempt."""
    return str(attempt)


def owner_of(value: str) -> AttemptKey | None:
    """Return the attempt of a `startedBy`, None if it is not of Relaunch."""
    found = _OF_ATTEMPT.fullmatch(value)
    if found is None or found["job_id"] == _OF_SERVICE:
        return None
    return AttemptKey(found["job_id"], int(found["number"]))


TASK_STATE_CHANGE = "ECS Task State Change"
MACHINE_STATE_CHANGE = "ECS Container Instance State Change"
# Whoever is root on a machine may set its attributes.
_NEURON_COUNT = re.compile(r"[0-9]{1,3}")
BOOT = "relaunch.boot"
"""The attribute in which machines of our own report their boot (infrastructure/user_data/boot.sh)."""
_BOOT = re.compile(r"[0-9.:-]{1,64}")
# RunTask refuses such a group ("Group"): the tasks of a service have it.
_SERVICE = "service:"
_DISCONNECTED = "DISCONNECTED"
_STOPPED = frozenset({"STOPPED", "DELETED"})
_PHASES = {
    "PROVISIONING": TaskPhase.PENDING,
    "PENDING": TaskPhase.STARTING,
    "ACTIVATING": TaskPhase.STARTING,
    "RUNNING": TaskPhase.RUNNING,
    "DEACTIVATING": TaskPhase.STOPPING,
    "STOPPING": TaskPhase.STOPPING,
    "DEPROVISIONING": TaskPhase.STOPPING,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Container:
    name: str = ""
    last_status: str = ""
    exit_code: int | None = None
    reason: Words | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    task_arn: str = field(metadata={"min_length": 1})
    last_status: str = ""
    desired_status: str = ""
    version: int = 0
    started_by: str | None = None
    group: str = ""
    stop_code: str | None = None
    stopped_reason: Words | None = None
    containers: tuple[_Container, ...] = ()
    container_instance_arn: str | None = None
    availability_zone: str | None = None
    created_at: Timestamp | None = None
    pull_started_at: Timestamp | None = None
    pull_stopped_at: Timestamp | None = None
    started_at: Timestamp | None = None
    execution_stopped_at: Timestamp | None = None
    connectivity: str = ""
    stopped_at: Timestamp | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attribute:
    name: str = ""
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resource:
    name: str = ""
    integer_value: int = 0
    string_set_value: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gpu:
    gpu_id: str = ""
    sharing_mode: str = ""
    total_memory: int = field(default=0, metadata={"names": ("totalMemoryInMiB",)})
    remaining_memory: int = field(default=0, metadata={"names": ("remainingMemoryInMiB",)})
    container_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _ContainerInstance:
    container_instance_arn: str = field(metadata={"min_length": 1})
    # External instances (ECS Anywhere) have none.
    instance_id: str = field(default="", metadata={"names": ("ec2InstanceId", "ec2instanceId")})
    status: str = ""
    agent_connected: bool = False
    running_tasks_count: int = 0
    pending_tasks_count: int = 0
    capacity_provider_name: str | None = None
    registered_at: Timestamp | None = None
    attributes: tuple[_Attribute, ...] = ()
    registered_resources: tuple[_Resource, ...] = ()
    gpu_devices: tuple[_Gpu, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Envelope:
    detail_type: str = field(default="", metadata={"names": ("detail-type",)})
    detail: Mapping[str, object] = field(default_factory=dict)


def _to_camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


_ENVELOPE = ReceivedType(_Envelope, ignores_null=True)
_TASK = ReceivedType(_Task, name_of=_to_camel, ignores_null=True)
_CONTAINER_INSTANCE = ReceivedType(_ContainerInstance, name_of=_to_camel, ignores_null=True)


def parse_ecs_event(event: Mapping[str, object]) -> TaskObservation | NodeObservation | None:
    """Parse an EventBridge event from `aws.ecs`; return None for other detail types.

    Raises:
        PermanentError: the event is invalid.
    """
    with permanent_if_invalid("reading an event from ECS"):
        envelope = _ENVELOPE.read(event)
    if envelope.detail_type == MACHINE_STATE_CHANGE:
        return observe_container_instance(envelope.detail)
    return observe_task(envelope.detail) if envelope.detail_type == TASK_STATE_CHANGE else None


def observe_task(task: Mapping[str, object]) -> TaskObservation:
    """Parse a task as in the detail of an event or in a response of DescribeTasks, RunTask or StopTask.

    Raises:
        PermanentError: no ARN, or a member of the wrong type.
    """
    with permanent_if_invalid("reading a task of ECS"):
        parsed = _TASK.read(task)
    return TaskObservation(
        task_id=parsed.task_arn,
        owner=owner_of(parsed.started_by or ""),
        phase=phase_of(parsed.last_status, parsed.desired_status),
        version=parsed.version,
        status=parsed.last_status,
        stop_code=parsed.stop_code or "",
        report=report_of_task(parsed.stop_code or "", parsed.stopped_reason or ""),
        containers={
            each.name: ContainerObservation(
                each.exit_code, report_of_container(each.reason or ""), has_ended=each.last_status in _STOPPED
            )
            for each in parsed.containers
        },
        node=parsed.container_instance_arn,
        service=parsed.group.removeprefix(_SERVICE) if parsed.group.startswith(_SERVICE) else "",
        zone=parsed.availability_zone,
        created_at=parsed.created_at,
        pulled=(parsed.pull_started_at, parsed.pull_stopped_at)
        if parsed.pull_started_at and parsed.pull_stopped_at
        else None,
        started_at=parsed.started_at,
        containers_ended_at=parsed.execution_stopped_at,
        stopped_at=parsed.stopped_at,
        is_unheard=parsed.connectivity == _DISCONNECTED,
    )


def phase_of(last_status: str, desired_status: str) -> TaskPhase:
    """Return the phase of a task from its statuses ("Amazon ECS task lifecycle").

    A task with the desired status STOPPED stops, whatever its last status is, until that is STOPPED too.
    """
    if last_status in _STOPPED:
        return TaskPhase.STOPPED
    return TaskPhase.STOPPING if desired_status == "STOPPED" else _PHASES.get(last_status, TaskPhase.PENDING)


def observe_container_instance(description: Mapping[str, object]) -> NodeObservation:
    """Parse a container instance as in the detail of an event or in a response of DescribeContainerInstances.

    Raises:
        PermanentError: no ARN, or a member of the wrong type.
    """
    parsed = _read_container_instance(description)
    attributes = {attribute.name: attribute.value for attribute in parsed.attributes}
    boot = attributes.get(BOOT) or ""
    node = Node(
        name=parsed.container_instance_arn,
        instance_id=parsed.instance_id,
        instance_type=attributes.get(INSTANCE_TYPE) or "",
        zone=attributes.get(AVAILABILITY_ZONE),
    )
    return NodeObservation(
        node,
        is_active=parsed.status == "ACTIVE",
        task_count=parsed.running_tasks_count + parsed.pending_tasks_count,
        registered_at=parsed.registered_at,
        capacity_provider=parsed.capacity_provider_name or "",
        registered=_resources(parsed.registered_resources, attributes.get(NEURON_DEVICES) or ""),
        is_connected=parsed.agent_connected,
        is_draining=parsed.status == "DRAINING",
        boot=boot if _BOOT.fullmatch(boot) else "",
    )


def _resources(registered: Sequence[_Resource], neuron_devices: str) -> Resources:
    """Return the resources that the ECS agent registered.

    It registers no Neuron devices: machines of our own count them when they boot, and have an attribute for it.
    """
    known = {each.name: each for each in registered}
    nothing = _Resource()
    return Resources(
        cpu_units=known.get("CPU", nothing).integer_value,
        memory_mib=known.get("MEMORY", nothing).integer_value,
        gpus=len(known.get("GPU", nothing).string_set_value),
        neuron_devices=int(neuron_devices) if _NEURON_COUNT.fullmatch(neuron_devices) else 0,
    )


def observe_gpus(description: Mapping[str, object]) -> list[GpuDevice]:
    """Parse the GPUs of a container instance; it has none if it does not support GPU sharing.

    Raises:
        PermanentError: no ARN, or a member of the wrong type.
    """
    parsed = _read_container_instance(description)
    return [
        GpuDevice(
            gpu.gpu_id,
            parsed.instance_id,
            gpu.sharing_mode,
            gpu.total_memory,
            gpu.remaining_memory,
            gpu.container_count,
        )
        for gpu in parsed.gpu_devices
    ]


def _read_container_instance(description: Mapping[str, object]) -> _ContainerInstance:
    with permanent_if_invalid("reading a container instance of ECS"):
        return _CONTAINER_INSTANCE.read(description)
