"""Where a task fits: attributes, free resources, constraints, strategy."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from relaunch_local.ecs.engine.gpu_cards import free_cards, has_cards, take_cards
from relaunch_local.ecs.engine.model import Container, Host, HostStatus, Task
from relaunch_local.ecs.rules.placement import Placement
from relaunch_local.ecs.rules.query_language import Lookup, Value
from relaunch_local.ecs.rules.requirements import Requirement, host_port

AGENT_VERSION = "1.105.1"
AGENT_CAPABILITIES = (
    "com.amazonaws.ecs.capability.privileged-container",
    "com.amazonaws.ecs.capability.docker-remote-api.1.18",
    "com.amazonaws.ecs.capability.docker-remote-api.1.19",
    "com.amazonaws.ecs.capability.logging-driver.awslogs",
    "com.amazonaws.ecs.capability.logging-driver.json-file",
    "com.amazonaws.ecs.capability.ecr-auth",
    "com.amazonaws.ecs.capability.task-iam-role",
    "ecs.capability.execution-role-awslogs",
    "ecs.capability.execution-role-ecr-pull",
    "ecs.capability.secrets.asm.environment-variables",
    "ecs.capability.secrets.ssm.environment-variables",
    "ecs.capability.task-eni",
)
"""What the agent of an ECS-optimized image registers, as attributes without a value."""

MEMBER_OF_UNSATISFIED = "MemberOf placement constraint unsatisfied."
DISTINCT_INSTANCE_UNSATISFIED = "DistinctInstance placement constraint unsatisfied."
NO_ACTIVE_INSTANCES = "NO ACTIVE INSTANCES"
EMPTY_CAPACITY_PROVIDER = "EMPTY CAPACITY PROVIDER"

Unplaceable = tuple[str | None, str]
"""The ARN of a container instance, or None, and the reason it would not do."""


def lookup_of(host: Host) -> Lookup:
    """What the query language may ask of a container instance."""
    subjects: dict[str, Callable[[], Value]] = {
        "agentConnected": lambda: host.agent_connected,
        "agentVersion": lambda: AGENT_VERSION,
        "ec2InstanceId": lambda: host.instance_id,
        "registeredAt": lambda: host.registered_at,
        "runningTasksCount": lambda: sum(task.last_status == "RUNNING" for task in host.tasks.values()),
        "task:group": lambda: frozenset(task.group for task in host.tasks.values()),
    }

    def lookup(subject: str) -> Value:
        if subject.startswith("attribute:"):
            return host.attributes.get(subject.removeprefix("attribute:"))
        return subjects[subject]()

    return lookup


def unfit_reason(host: Host, requirement: Requirement) -> str | None:
    """Why the task cannot be on this instance now; None when it can."""
    if not host.agent_connected:
        return "AGENT"
    if any(not _has(host, name, value) for name, value in requirement.capabilities):
        return "ATTRIBUTE"
    return _short_resource(host, requirement)


def _has(host: Host, name: str, value: str | None) -> bool:
    return name in host.attributes and (value is None or host.attributes[name] == value)


def _short_resource(host: Host, requirement: Requirement) -> str | None:
    if requirement.cpu_units > host.cpu:
        return "RESOURCE:CPU"
    if requirement.memory_mib > host.memory_mib:
        return "RESOURCE:MEMORY"
    if requirement.tcp_ports & host.tcp_ports or requirement.udp_ports & host.udp_ports:
        return "RESOURCE:PORTS"
    return None if has_cards(host, requirement) else "RESOURCE:GPU"


def find_host(candidates: Sequence[Host], task: Task) -> Host | None:
    """The instance the task goes to, None when there is none; many times faster than saying why."""
    if task.placement.strategy or task.placement.distinct_instance:
        host = choose_host(candidates, task)
        return host if isinstance(host, Host) else None
    requirement = task.requirement
    # Most machines of a busy cluster have no card left: that is looked at first.
    fit = (
        host
        for host in candidates
        if has_cards(host, requirement) and host.status is HostStatus.ACTIVE and fits_now(host, task)
    )
    return next(fit, None)


def choose_host(candidates: Sequence[Host], task: Task) -> Host | list[Unplaceable]:
    """The instance the task goes to, or why each of them would not do."""
    active = [host for host in candidates if host.status is HostStatus.ACTIVE]
    if not active:
        return [(None, NO_ACTIVE_INSTANCES)]
    matching = [host for host in active if matches_constraints(host, task.placement)]
    if not matching:
        return [(None, MEMBER_OF_UNSATISFIED)]
    if task.placement.distinct_instance:
        matching = [host for host in matching if not runs_group(host, task.group)]
        if not matching:
            return [(None, DISTINCT_INSTANCE_UNSATISFIED)]
    unplaceable: list[Unplaceable] = []
    for host in _in_order(matching, task):
        reason = unfit_reason(host, task.requirement)
        if reason is None:
            return host
        unplaceable.append((host.arn, reason))
    return unplaceable


def fits_now(host: Host, task: Task) -> bool:
    """Whether constraints and free resources admit the task."""
    return matches_constraints(host, task.placement) and unfit_reason(host, task.requirement) is None


def matches_constraints(host: Host, placement: Placement) -> bool:
    """Whether every memberOf expression holds."""
    if not placement.member_of:
        return True
    lookup = lookup_of(host)
    return all(expression.holds(lookup) for expression in placement.member_of)


def runs_group(host: Host, group: str) -> bool:
    """Whether a task of the group is on the instance."""
    return any(task.group == group for task in host.tasks.values())


def _in_order(hosts: Sequence[Host], task: Task) -> Iterable[Host]:
    keys = [_strategy_key(kind, field, hosts, task.group) for kind, field in task.placement.strategy]
    return sorted(hosts, key=lambda host: tuple(key(host) for key in keys)) if keys else hosts


def _strategy_key(kind: str, field: str, hosts: Sequence[Host], group: str) -> Callable[[Host], Any]:
    if kind == "binpack":
        return lambda host: host.cpu if field.lower() == "cpu" else host.memory_mib
    if kind == "spread":
        counts = Counter(
            _spread_value(host, field) for host in hosts for task in host.tasks.values() if task.group == group
        )
        return lambda host: counts[_spread_value(host, field)]
    return lambda _host: 0


def _spread_value(host: Host, field: str) -> str | None:
    return (
        host.instance_id if field in ("instanceId", "host") else host.attributes.get(field.removeprefix("attribute:"))
    )


def reserve(host: Host, task: Task) -> None:
    """Count the task on a machine that exists only in a calculation; the task itself is not touched."""
    _reserve_resources(host, task.requirement)
    take_cards(host, task.task_id, task.requirement)
    host.tasks[task.task_id] = task


def _reserve_resources(host: Host, requirement: Requirement) -> None:
    host.cpu -= requirement.cpu_units
    host.memory_mib -= requirement.memory_mib
    host.tcp_ports |= requirement.tcp_ports
    host.udp_ports |= requirement.udp_ports


def take(host: Host, task: Task) -> None:
    """Reserve what the task needs, pin its GPUs and bind its ports."""
    _reserve_resources(host, task.requirement)
    cards = take_cards(host, task.task_id, task.requirement)
    for container in task.containers:
        container.gpu_ids = cards.get(container.name, ())
        _bind_ports(host, container, task.definition.get("networkMode", "bridge"))
    host.tasks[task.task_id] = task


def give_back(host: Host, task: Task) -> None:
    """Free what `take` reserved."""
    requirement = task.requirement
    host.tasks.pop(task.task_id, None)
    host.cpu += requirement.cpu_units
    host.memory_mib += requirement.memory_mib
    host.tcp_ports -= requirement.tcp_ports
    host.udp_ports -= requirement.udp_ports
    free_cards(host, task.task_id, {gpu for container in task.containers for gpu in container.gpu_ids})


def _bind_ports(host: Host, container: Container, network_mode: str) -> None:
    if network_mode == "awsvpc":
        return
    for mapping in container.definition.get("portMappings", ()):
        port = host_port(mapping, network_mode)
        if not port:
            port = host.next_dynamic_port
            host.next_dynamic_port = 32_768 + (port + 1 - 32_768) % 28_232
        container.network_bindings.append(
            {
                "bindIP": "0.0.0.0",  # noqa: S104  # What ECS reports; nothing is bound here.
                "containerPort": mapping["containerPort"],
                "hostPort": port,
                "protocol": mapping.get("protocol", "tcp"),
            }
        )
