"""Validation of task definitions (RegisterTaskDefinition and ContainerDefinition, Amazon ECS API Reference)."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from relaunch.core.task_definitions.query_language import ExpressionError, parse_expression
from relaunch.core.task_definitions.reservation import parse_cpu_units, parse_memory_mib
from relaunch_local.ecs.errors import client_error, refuse_as_client
from relaunch_local.ecs.rules.gpu_requests import check_one_kind, parse_gpu_request
from relaunch_local.ecs.rules.requirements import host_port
from relaunch_local.ecs.rules.tags import check_tags

MAX_CONSTRAINTS = 10
MAX_CONTAINERS = 10
MAX_BYTES = 65_536
NAME = re.compile(r"[A-Za-z0-9_-]{1,255}")
_NETWORK_MODES = ("bridge", "host", "awsvpc", "none")
_AWSLOGS_OPTIONS = ("awslogs-group", "awslogs-region")


def check_definition(request: Mapping[str, Any]) -> None:
    """Validate a RegisterTaskDefinition request.

    Raises:
        EcsError: ClientException.
    """
    refuse_as_client(not NAME.fullmatch(request["family"]), "Family contains invalid characters.")
    length = len(json.dumps(request, separators=(",", ":"), ensure_ascii=False).encode())
    refuse_as_client(length > MAX_BYTES, f"Actual length: '{length}'. Max allowed length is '{MAX_BYTES}' bytes.")
    mode = request.get("networkMode", "bridge")
    refuse_as_client(mode not in _NETWORK_MODES, f"networkMode must be one of {', '.join(_NETWORK_MODES)}.")
    check_tags(request.get("tags", ()), refuse_as_client)
    size = task_size(request)
    _check_constraints(request.get("placementConstraints", ()))
    _check_containers(request["containerDefinitions"], mode, has_task_memory="memory" in size)
    _check_containers_fit(request["containerDefinitions"], size)
    _check_sharing(request)
    _check_capacity(request)


def task_size(request: Mapping[str, Any]) -> dict[str, int]:
    """Return the task's `cpu` in units and `memory` in MiB, if given; `1 vCPU` is 1024; raises ClientException."""
    size = {}
    for member, parse in (("cpu", parse_cpu_units), ("memory", parse_memory_mib)):
        if member in request:
            try:
                size[member] = parse(request[member])
            except ValueError as error:
                raise client_error(f"Invalid '{member}' setting for task.") from error
    return size


def may_run_externally(request: Mapping[str, Any]) -> bool:
    """Return whether external instances can run it ("Amazon ECS clusters for external instances")."""
    requirements = (each for one in request["containerDefinitions"] for each in one.get("resourceRequirements", ()))
    return request.get("networkMode") != "awsvpc" and not any("sharingStrategy" in each for each in requirements)


def compatibilities_of(request: Mapping[str, Any]) -> list[str]:
    """Return where it can run: EC2 unless it is registered for something else, and external instances."""
    wanted = request.get("requiresCompatibilities") or ["EC2"]
    return [*(["EXTERNAL"] if may_run_externally(request) else []), *(each for each in wanted if each != "EXTERNAL")]


def restarts(container: Mapping[str, Any], exit_code: int, seconds: float) -> bool:
    """Return whether the agent starts a container again that ended by itself after so many seconds.

    Source: "Restart individual containers in Amazon ECS tasks with container restart policies" (ECS Developer Guide).
    """
    policy = container.get("restartPolicy", {})
    is_ignored = exit_code in policy.get("ignoredExitCodes", ())
    return policy.get("enabled", False) and not is_ignored and seconds >= policy.get("restartAttemptPeriod", 300)


def _check_capacity(request: Mapping[str, Any]) -> None:
    """Refuse what Amazon Elastic Inference or Managed Instances would have to run."""
    types = {
        each.get("type") for one in request["containerDefinitions"] for each in one.get("resourceRequirements", ())
    }
    refuse_as_client(
        bool(request.get("inferenceAccelerators")) or "InferenceAccelerator" in types,
        "Amazon Elastic Inference is no longer available.",
    )
    refuse_as_client(
        request.get("trustedExecutionConfiguration", {}).get("isolationMode", "SHARED") != "SHARED",
        "Trusted execution is supported only for Amazon ECS Managed Instances.",
    )


def _check_containers_fit(containers: Sequence[Mapping[str, Any]], size: Mapping[str, int]) -> None:
    for container in containers:
        for member in ("memory", "memoryReservation"):
            refuse_as_client(
                "memory" in size and container.get(member, 0) > size["memory"],
                f"The '{member}' setting for container '{container['name']}' is greater than for the task.",
            )
    refuse_as_client(
        "cpu" in size and sum(container.get("cpu", 0) for container in containers) > size["cpu"],
        "The sum of all container 'cpu' values cannot be greater than the value of the task 'cpu'.",
    )


def _check_constraints(constraints: Sequence[Mapping[str, Any]]) -> None:
    refuse_as_client(len(constraints) > MAX_CONSTRAINTS, f"At most {MAX_CONSTRAINTS} placement constraints.")
    for constraint in constraints:
        refuse_as_client(constraint.get("type") != "memberOf", "The placement constraint type must be memberOf.")
        try:
            parse_expression(constraint.get("expression", ""))
        except ExpressionError as error:
            raise client_error(f"Invalid placement constraint expression: {error}") from error


def _check_containers(containers: Sequence[Mapping[str, Any]], mode: str, *, has_task_memory: bool) -> None:
    refuse_as_client(not containers, "Container list cannot be empty.")
    refuse_as_client(len(containers) > MAX_CONTAINERS, "Too many containers.")
    names = [container.get("name", "") for container in containers]
    refuse_as_client(len(set(names)) < len(names), "Container names must be unique.")
    refuse_as_client(
        not any(container.get("essential", True) for container in containers), "At least one container is essential."
    )
    for container in containers:
        _check_container(container, has_task_memory=has_task_memory)
        _check_dependencies(container, containers)
        _check_ports(container, mode)
    taken = [
        (mapping.get("protocol", "tcp"), host_port(mapping, mode))
        for container in containers
        for mapping in container.get("portMappings", ())
        if host_port(mapping, mode)
    ]
    refuse_as_client(len(set(taken)) < len(taken), "A host port is mapped twice.")


def _check_container(container: Mapping[str, Any], *, has_task_memory: bool) -> None:
    name = container.get("name", "")
    refuse_as_client(not NAME.fullmatch(name), "Container.name contains invalid characters.")
    refuse_as_client(not container.get("image"), "Container.image should not be null or empty.")
    _check_memory(container, name, has_task_memory=has_task_memory)
    _check_resources(container, name)
    log = container.get("logConfiguration", {})
    lacking = [option for option in _AWSLOGS_OPTIONS if option not in log.get("options", {})]
    refuse_as_client(
        log.get("logDriver") == "awslogs" and bool(lacking),
        f"Log driver awslogs requires options: {', '.join(lacking)}",
    )


def _check_dependencies(container: Mapping[str, Any], containers: Sequence[Mapping[str, Any]]) -> None:
    is_essential = {each.get("name"): each.get("essential", True) for each in containers}
    for dependency in container.get("dependsOn", ()):
        name = dependency["containerName"]
        # The plus sign is ECS's.
        refuse_as_client(name not in is_essential, f"Cannot depend on container + '{name}' because it does not exist")
        refuse_as_client(
            dependency["condition"] in ("SUCCESS", "COMPLETE") and is_essential[name],
            "A dependency container with SUCCESS or COMPLETE condition cannot be an essential container",
        )


def _check_memory(container: Mapping[str, Any], name: str, *, has_task_memory: bool) -> None:
    memory = container.get("memory")
    reservation = container.get("memoryReservation")
    refuse_as_client(
        not (has_task_memory or memory or reservation),
        f"Invalid setting for container '{name}'. At least one of 'memory' or 'memoryReservation' must be specified.",
    )
    refuse_as_client(memory is not None and memory < 6, f"Container '{name}' needs at least 6 MiB of memory.")
    refuse_as_client(
        memory is not None and reservation is not None and reservation > memory,
        f"Invalid setting for container '{name}'. 'memory' must be greater than or equal to 'memoryReservation'.",
    )


def _check_resources(container: Mapping[str, Any], name: str) -> None:
    requirements = container.get("resourceRequirements", ())
    refuse_as_client(
        any(each.get("type") == "NeuronDevice" for each in requirements),
        "NeuronDevice resource requirements are supported on ECS Managed Instances only.",
    )
    try:
        parse_gpu_request(requirements)
    except ValueError as error:
        raise client_error(f"Invalid resource requirement of container '{name}': {error}") from error


def _check_sharing(request: Mapping[str, Any]) -> None:
    parsed = [parse_gpu_request(each.get("resourceRequirements", ())) for each in request["containerDefinitions"]]
    asked = [each for each in parsed if each is not None]
    try:
        check_one_kind(asked)
    except ValueError as error:
        raise client_error(f"Invalid resource requirements: {error}") from error
    refuse_as_client(
        any(each.share_mib for each in asked)
        and bool({"FARGATE", "EXTERNAL"} & set(request.get("requiresCompatibilities", ()))),
        "GPU sharing is supported with the EC2 and MANAGED_INSTANCES compatibilities only.",
    )


def _check_ports(container: Mapping[str, Any], mode: str) -> None:
    refuse_as_client(
        mode == "none" and bool(container.get("portMappings")),
        "Port mappings are not supported when networkMode=none.",
    )
    for mapping in container.get("portMappings", ()):
        ports = (mapping.get("containerPort", 0), mapping.get("hostPort", 0))
        refuse_as_client(any(not 0 <= port <= 65_535 for port in ports), "A port is a number up to 65535.")
        refuse_as_client(mapping.get("protocol", "tcp") not in ("tcp", "udp"), "The protocol is tcp or udp.")
        refuse_as_client(
            mode in ("host", "awsvpc") and ports[1] not in (0, ports[0]),
            f"When networkMode={mode}, the host ports and container ports in port mappings must match.",
        )
