"""Places tasks on container instances: attributes, free resources, placement constraints, placement strategies."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from relaunch.core.task_definitions.query_language import Lookup, Value
from relaunch_local.ecs.engine.gpus import assign_gpus, has_free_gpus, release_gpus
from relaunch_local.ecs.engine.model import Container, ContainerInstanceStatus, Instance, Task
from relaunch_local.ecs.rules.placement import Placement
from relaunch_local.ecs.rules.requirements import Requirement, host_port

AGENT_VERSION = "1.105.1"
AGENT_CAPABILITIES = (
    "com.amazonaws.ecs.capability.privileged-container",
    "com.amazonaws.ecs.capability.docker-remote-api.1.18",
    "com.amazonaws.ecs.capability.docker-remote-api.1.19",
    # Those that ecs-init names to the agent ("Amazon ECS container agent configuration"), and FireLens.
    "com.amazonaws.ecs.capability.logging-driver.awsfirelens",
    "com.amazonaws.ecs.capability.logging-driver.awslogs",
    "com.amazonaws.ecs.capability.logging-driver.fluentd",
    "com.amazonaws.ecs.capability.logging-driver.json-file",
    "com.amazonaws.ecs.capability.logging-driver.none",
    "com.amazonaws.ecs.capability.logging-driver.syslog",
    "com.amazonaws.ecs.capability.ecr-auth",
    "com.amazonaws.ecs.capability.task-iam-role",
    "ecs.capability.execution-role-awslogs",
    "ecs.capability.execution-role-ecr-pull",
    "ecs.capability.secrets.asm.environment-variables",
    "ecs.capability.secrets.ssm.environment-variables",
    "ecs.capability.task-eni",
)
"""Attributes without a value that the agent of an ECS-optimized image registers."""

MEMBER_OF_UNSATISFIED = "MemberOf placement constraint unsatisfied."
DISTINCT_INSTANCE_UNSATISFIED = "DistinctInstance placement constraint unsatisfied."
NO_ACTIVE_INSTANCES = "NO ACTIVE INSTANCES"
EMPTY_CAPACITY_PROVIDER = "EMPTY CAPACITY PROVIDER"

Failure = tuple[str | None, str]
"""The ARN, if any, and the reason of a placement failure."""


def lookup_of(instance: Instance) -> Lookup:
    """Return a function that looks up the query language's subjects on a container instance."""
    subjects: dict[str, Callable[[], Value]] = {
        "agentConnected": lambda: instance.agent_connected,
        "agentVersion": lambda: AGENT_VERSION,
        "ec2InstanceId": lambda: instance.instance_id,
        "registeredAt": lambda: instance.registered_at,
        "runningTasksCount": lambda: sum(task.last_status == "RUNNING" for task in instance.tasks.values()),
        "task:group": lambda: frozenset(task.group for task in instance.tasks.values()),
    }

    def lookup(subject: str) -> Value:
        if subject.startswith("attribute:"):
            return instance.attributes.get(subject.removeprefix("attribute:"))
        return subjects[subject]()

    return lookup


def failure_reason(instance: Instance, requirement: Requirement) -> str | None:
    """Return why the task cannot be placed on this instance now; None if it can."""
    if not instance.agent_connected:
        return "AGENT"
    if any(not _has(instance, name, value) for name, value in requirement.capabilities):
        return "ATTRIBUTE"
    return _short_resource(instance, requirement)


def _has(instance: Instance, name: str, value: str | None) -> bool:
    return name in instance.attributes and (value is None or instance.attributes[name] == value)


def _short_resource(instance: Instance, requirement: Requirement) -> str | None:
    if requirement.cpu_units > instance.cpu:
        return "RESOURCE:CPU"
    if requirement.memory_mib > instance.memory_mib:
        return "RESOURCE:MEMORY"
    if requirement.tcp_ports & instance.tcp_ports or requirement.udp_ports & instance.udp_ports:
        return "RESOURCE:PORTS"
    return None if has_free_gpus(instance, requirement) else "RESOURCE:GPU"


def find_instance(candidates: Sequence[Instance], task: Task) -> Instance | None:
    """Return the instance for the task, or None; much faster than `choose_instance`."""
    if task.placement.strategy or task.placement.distinct_instance:
        instance = choose_instance(candidates, task)
        return instance if isinstance(instance, Instance) else None
    requirement = task.requirement
    # GPUs are checked first: most instances of a busy cluster have none free.
    fit = (
        instance
        for instance in candidates
        if has_free_gpus(instance, requirement)
        and instance.status is ContainerInstanceStatus.ACTIVE
        and fits_now(instance, task)
    )
    return next(fit, None)


def choose_instance(candidates: Sequence[Instance], task: Task) -> Instance | list[Failure]:
    """Return the instance for the task, or the placement failures."""
    active = [instance for instance in candidates if instance.status is ContainerInstanceStatus.ACTIVE]
    if not active:
        return [(None, NO_ACTIVE_INSTANCES)]
    matching = [instance for instance in active if matches_constraints(instance, task.placement)]
    if not matching:
        return [(None, MEMBER_OF_UNSATISFIED)]
    if task.placement.distinct_instance:
        matching = [instance for instance in matching if not runs_group(instance, task.group)]
        if not matching:
            return [(None, DISTINCT_INSTANCE_UNSATISFIED)]
    failures: list[Failure] = []
    for instance in _in_order(matching, task):
        reason = failure_reason(instance, task.requirement)
        if reason is None:
            return instance
        failures.append((instance.arn, reason))
    return failures


def fits_now(instance: Instance, task: Task) -> bool:
    """Return whether the task's constraints are satisfied and its resources are free."""
    return matches_constraints(instance, task.placement) and failure_reason(instance, task.requirement) is None


def matches_constraints(instance: Instance, placement: Placement) -> bool:
    """Return whether every memberOf expression is true."""
    if not placement.member_of:
        return True
    lookup = lookup_of(instance)
    return all(expression.holds(lookup) for expression in placement.member_of)


def runs_group(instance: Instance, group: str) -> bool:
    """Return whether a task of the group is on the instance."""
    return any(task.group == group for task in instance.tasks.values())


def _in_order(instances: Sequence[Instance], task: Task) -> Iterable[Instance]:
    keys = [_strategy_key(kind, field, instances, task.group) for kind, field in task.placement.strategy]
    return sorted(instances, key=lambda instance: tuple(key(instance) for key in keys)) if keys else instances


def _strategy_key(kind: str, field: str, instances: Sequence[Instance], group: str) -> Callable[[Instance], Any]:
    if kind == "binpack":
        return lambda instance: instance.cpu if field.lower() == "cpu" else instance.memory_mib
    if kind == "spread":
        counts = Counter(
            _spread_value(instance, field)
            for instance in instances
            for task in instance.tasks.values()
            if task.group == group
        )
        return lambda instance: counts[_spread_value(instance, field)]
    return lambda _instance: 0


def _spread_value(instance: Instance, field: str) -> str | None:
    return (
        instance.instance_id
        if field in ("instanceId", "host")
        else instance.attributes.get(field.removeprefix("attribute:"))
    )


def reserve(instance: Instance, task: Task) -> None:
    """Reserve the task's resources on a hypothetical instance; the task is not changed."""
    _reserve_resources(instance, task.requirement)
    assign_gpus(instance, task.task_id, task.requirement)
    instance.tasks[task.task_id] = task


def _reserve_resources(instance: Instance, requirement: Requirement) -> None:
    instance.cpu -= requirement.cpu_units
    instance.memory_mib -= requirement.memory_mib
    instance.tcp_ports |= requirement.tcp_ports
    instance.udp_ports |= requirement.udp_ports


def assign(instance: Instance, task: Task) -> None:
    """Reserve the task's resources, assign its GPUs and bind its ports."""
    _reserve_resources(instance, task.requirement)
    cards = assign_gpus(instance, task.task_id, task.requirement)
    for container in task.containers:
        container.gpu_ids = cards.get(container.name, ())
        _bind_ports(instance, container, task.definition.get("networkMode", "bridge"))
    instance.tasks[task.task_id] = task


def release(instance: Instance, task: Task) -> None:
    """Release what `assign` reserved."""
    requirement = task.requirement
    instance.tasks.pop(task.task_id, None)
    instance.cpu += requirement.cpu_units
    instance.memory_mib += requirement.memory_mib
    instance.tcp_ports -= requirement.tcp_ports
    instance.udp_ports -= requirement.udp_ports
    release_gpus(instance, task.task_id, {gpu for container in task.containers for gpu in container.gpu_ids})


def _bind_ports(instance: Instance, container: Container, network_mode: str) -> None:
    if network_mode == "awsvpc":
        return
    for mapping in container.definition.get("portMappings", ()):
        port = host_port(mapping, network_mode)
        if not port:
            port = instance.next_dynamic_port
            instance.next_dynamic_port = 32_768 + (port + 1 - 32_768) % 28_232
        container.network_bindings.append(
            {
                "bindIP": "0.0.0.0",  # noqa: S104  # What ECS reports; nothing is bound here.
                "containerPort": mapping["containerPort"],
                "hostPort": port,
                "protocol": mapping.get("protocol", "tcp"),
            }
        )
