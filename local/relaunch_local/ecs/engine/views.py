"""Tasks and container instances as responses and events contain them.

Both have the same members; times are datetimes in responses and ISO 8601 text in events
("Amazon ECS task state change events", "Amazon ECS container instance state change events").
"""

import hashlib
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any

from relaunch.core.task_definitions.reservation import container_overrides
from relaunch_local.ecs.engine.gpus import gpu_devices
from relaunch_local.ecs.engine.model import Container, Instance, JsonObject, Task
from relaunch_local.ecs.engine.placement import AGENT_VERSION
from relaunch_local.ecs.engine.region import iso
from relaunch_local.ecs.rules.requirements import RESERVED_TCP_PORTS

Stamp = Callable[[datetime], Any]


def _keep(time: datetime) -> Any:
    return time


def _present(members: JsonObject) -> JsonObject:
    return {name: value for name, value in members.items() if value is not None}


def task_view(task: Task, *, with_tags: bool = False, stamp: Stamp = _keep) -> JsonObject:
    """Return a task as DescribeTasks returns it."""
    view = {
        "attachments": _attachments(task),
        "availabilityZone": task.instance.zone if task.instance else None,
        "capacityProviderName": task.provider.name if task.provider else None,
        "clusterArn": task.cluster.arn,
        "connectivity": _connectivity(task),
        "containerInstanceArn": task.instance.arn if task.instance else None,
        "containers": [_container_view(task, container) for container in task.containers],
        "cpu": str(task.requirement.cpu_units),
        "desiredStatus": task.desired_status,
        "enableExecuteCommand": task.enable_execute_command,
        "group": task.group,
        "lastStatus": task.last_status.value,
        "launchType": task.launch_type,
        "memory": str(task.requirement.memory_mib),
        "overrides": _overrides(task),
        "startedBy": task.started_by,
        "stopCode": task.stop_code.value if task.stop_code else None,
        "stoppedReason": task.stopped_reason,
        "taskArn": task.arn,
        "taskDefinitionArn": task.definition["taskDefinitionArn"],
        "version": task.version,
        "tags": list(task.tags) if with_tags else None,
    }
    timestamps = {
        "createdAt": task.created_at,
        "connectivityAt": task.connectivity_at,
        "pullStartedAt": task.pull_started_at,
        "pullStoppedAt": task.pull_stopped_at,
        "startedAt": task.started_at,
        "stoppingAt": task.stopping_at,
        "executionStoppedAt": task.execution_stopped_at,
        "stoppedAt": task.stopped_at,
    }
    return _present(view) | {name: stamp(time) for name, time in timestamps.items() if time is not None}


def task_event_detail(task: Task, now: datetime) -> JsonObject:
    """Return the detail of "ECS Task State Change"."""
    return {**task_view(task, stamp=iso), "updatedAt": iso(now)}


def _connectivity(task: Task) -> str | None:
    if task.instance is None:
        return None
    is_connected = task.instance.agent_connected if task.was_connected is None else task.was_connected
    return "CONNECTED" if is_connected else "DISCONNECTED"


def _attachments(task: Task) -> list[JsonObject]:
    if task.network is None or task.instance is None:
        return []
    status = "DELETED" if task.is_stopped else "ATTACHED"
    subnet = task.network["awsvpcConfiguration"]["subnets"][0]
    details = [
        {"name": "subnetId", "value": subnet},
        {"name": "networkInterfaceId", "value": f"eni-{task.task_id[:17]}"},
    ]
    return [{"id": task.task_id, "type": "ElasticNetworkInterface", "status": status, "details": details}]


def _overrides(task: Task) -> JsonObject:
    given = container_overrides(task.overrides)
    containers = [given.get(each.name, {"name": each.name}) for each in task.containers]
    return {**task.overrides, "containerOverrides": containers, "inferenceAcceleratorOverrides": []}


@lru_cache(maxsize=256)
def image_digest(image: str) -> str:
    """Return the digest in the image's name, or one derived from the name."""
    _, at, digest = image.partition("@")
    return digest if at else f"sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def _container_view(task: Task, container: Container) -> JsonObject:
    return _present(
        {
            "containerArn": container.arn,
            "taskArn": task.arn,
            "name": container.name,
            "image": container.definition["image"],
            "imageDigest": image_digest(container.definition["image"]) if task.pull_stopped_at else None,
            "runtimeId": container.runtime_id,
            "lastStatus": container.last_status,
            "exitCode": container.exit_code,
            "reason": container.reason,
            "networkBindings": list(container.network_bindings),
            "networkInterfaces": [],
            "cpu": str(container.definition.get("cpu", 0)),
            "memory": _text(container.definition.get("memory")),
            "memoryReservation": _text(container.definition.get("memoryReservation")),
            "gpuIds": list(container.gpu_ids) or None,
            "gpuSharingStrategy": container.gpu_request.sharing_strategy if container.gpu_request else None,
        }
    )


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def container_instance_view(instance: Instance, *, stamp: Stamp = _keep) -> JsonObject:
    """Return a container instance as DescribeContainerInstances returns it."""
    statuses = [task.last_status for task in instance.tasks.values()]
    view = {
        "containerInstanceArn": instance.arn,
        "ec2InstanceId": instance.instance_id,
        "capacityProviderName": instance.provider.name if instance.provider else None,
        "version": instance.version,
        "versionInfo": {
            "agentVersion": AGENT_VERSION,
            "agentHash": "0000000",
            "dockerVersion": "DockerVersion: 25.0.14",
        },
        "remainingResources": _resources(
            instance, instance.cpu, instance.memory_mib, instance.free_gpu_ids, taken=True
        ),
        "registeredResources": _resources(
            instance, instance.shape.vcpus * 1024, instance.shape.registered_memory_mib, instance.gpu_ids, taken=False
        ),
        "status": instance.status.value if instance.status else None,
        "agentConnected": instance.agent_connected,
        "runningTasksCount": sum(status == "RUNNING" for status in statuses),
        "pendingTasksCount": sum(status == "PENDING" for status in statuses),
        "attributes": [
            {"name": name, "value": value} if value else {"name": name} for name, value in instance.attributes.items()
        ],
        "registeredAt": stamp(instance.registered_at) if instance.registered_at else None,
        "attachments": [],
        "tags": [],
        "gpuDevices": gpu_devices(instance),
    }
    return _present(view)


def container_instance_event_detail(instance: Instance, cluster_arn: str, now: datetime) -> JsonObject:
    """Return the detail of "ECS Container Instance State Change"."""
    # Neither the Developer Guide's samples of this event nor its schema have `gpuDevices` or the capacity provider.
    view = {
        name: value
        for name, value in container_instance_view(instance, stamp=iso).items()
        if name not in ("capacityProviderName", "gpuDevices", "tags")
    }
    return {**view, "clusterArn": cluster_arn, "updatedAt": iso(now)}


def _resources(instance: Instance, cpu: int, memory_mib: int, gpu_ids: Any, *, taken: bool) -> list[JsonObject]:
    tcp = sorted(RESERVED_TCP_PORTS | (instance.tcp_ports if taken else frozenset()))
    udp = sorted(instance.udp_ports if taken else frozenset())
    resources = [
        _integer("CPU", cpu),
        _integer("MEMORY", memory_mib),
        _strings("PORTS", tcp),
        _strings("PORTS_UDP", udp),
    ]
    return [*resources, _strings("GPU", gpu_ids)] if instance.gpu_ids else resources


def _integer(name: str, value: int) -> JsonObject:
    return {"name": name, "type": "INTEGER", "doubleValue": 0.0, "longValue": 0, "integerValue": value}


def _strings(name: str, values: Any) -> JsonObject:
    return {**_integer(name, 0), "type": "STRINGSET", "stringSetValue": [str(value) for value in values]}
