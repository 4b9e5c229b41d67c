"""Validation of RunTask requests (RunTask, Amazon ECS API Reference)."""

import json
import re
from collections.abc import Mapping
from typing import Any

from relaunch.core.task_definitions.reservation import container_overrides
from relaunch_local.ecs.errors import EcsError, invalid_parameter, refuse
from relaunch_local.ecs.rules.gpu_requests import check_one_kind, parse_gpu_request
from relaunch_local.ecs.rules.tags import check_tags
from relaunch_local.ecs.rules.task_definition import MAX_CONSTRAINTS

MAX_COUNT = 10
MAX_OVERRIDES_CHARACTERS = 8_192
MAX_STRATEGY_RULES = 5
_STARTED_BY = re.compile(r"[A-Za-z0-9\-_/]{0,128}")
_CLIENT_TOKEN = re.compile(r"[\x21-\x7e]{1,64}")
_PROPAGATED_TAGS = ("TASK_DEFINITION", "NONE")
_LAUNCH_TYPES = ("EC2", "FARGATE", "EXTERNAL", "MANAGED_INSTANCES")
_OVERRIDABLE = frozenset(
    {"name", "command", "environment", "environmentFiles", "cpu", "memory", "memoryReservation", "resourceRequirements"}
)


def check_run_task(request: Mapping[str, Any], definition: Mapping[str, Any]) -> None:
    """Validate a RunTask request.

    Raises:
        EcsError: InvalidParameterException, or UnsupportedFeatureException for what is not simulated.
    """
    refuse(not 1 <= request.get("count", 1) <= MAX_COUNT, f"Tasks count must be between 1 and {MAX_COUNT}.")
    _check_identity(request)
    _check_execute_command(request, definition)
    _check_launch(request)
    _check_capacity(request, definition)
    _check_network(request, definition)
    _check_overrides(request.get("overrides", {}), definition)
    constraints = (*request.get("placementConstraints", ()), *definition.get("placementConstraints", ()))
    refuse(len(constraints) > MAX_CONSTRAINTS, f"Placement constraints cannot be more than {MAX_CONSTRAINTS}.")


def check_client_token(request: Mapping[str, Any]) -> None:
    """Raise InvalidParameterException if the client token is too long or has invalid characters."""
    token = request.get("clientToken")
    refuse(
        token is not None and not _CLIENT_TOKEN.fullmatch(token),
        "clientToken has up to 64 ASCII characters, 33 to 126.",
    )


def _check_identity(request: Mapping[str, Any]) -> None:
    started_by = request.get("startedBy", "")
    refuse(
        not _STARTED_BY.fullmatch(started_by),
        "startedBy has up to 128 letters, numbers, hyphens, underscores, slashes.",
    )
    group = request.get("group", "")
    refuse(group.startswith(("family:", "service:")), "The task group may not begin with family: or service:.")
    refuse(len(group) > 255, "The task group has at most 255 characters.")
    check_tags(request.get("tags", ()), refuse)
    refuse(
        request.get("propagateTags", "NONE") not in _PROPAGATED_TAGS,
        f"Propagate tags should be one of [{','.join(_PROPAGATED_TAGS)}]",
    )


def _check_execute_command(request: Mapping[str, Any], definition: Mapping[str, Any]) -> None:
    roles = (request.get("overrides", {}).get("taskRoleArn"), definition.get("taskRoleArn"))
    refuse(
        request.get("enableExecuteCommand", False) and not any(roles),
        "The execute command failed because a valid task role is not being used. Specify a valid task role in your "
        "task definition or as a task override and try again.",
    )


def _check_launch(request: Mapping[str, Any]) -> None:
    launch_type = request.get("launchType")
    refuse(launch_type is not None and launch_type not in _LAUNCH_TYPES, "Invalid launch type.")
    refuse(
        launch_type is not None and bool(request.get("capacityProviderStrategy")),
        "Specifying both a launch type and capacity provider strategy is not supported. Remove one and try again.",
    )
    if launch_type not in (None, "EC2"):
        raise EcsError("UnsupportedFeatureException", f"The simulator does not support {launch_type}.")
    rules = request.get("placementStrategy", ())
    refuse(len(rules) > MAX_STRATEGY_RULES, f"Placement strategies cannot be more than {MAX_STRATEGY_RULES}.")
    for rule in rules:
        refuse(rule.get("type") not in ("random", "spread", "binpack"), "Invalid placement strategy type.")
        is_binpack = rule["type"] == "binpack"
        refuse(is_binpack and rule.get("field", "").lower() not in ("cpu", "memory"), "binpack needs cpu or memory.")


def _check_capacity(request: Mapping[str, Any], definition: Mapping[str, Any]) -> None:
    refuse(
        "EC2" not in definition.get("compatibilities", ("EC2",)), "Task definition does not support launch_type EC2."
    )
    refuse(
        any(each.get("configuredAtLaunch") for each in definition.get("volumes", ()))
        and not request.get("volumeConfigurations"),
        "A volume that is configured at launch needs a volume configuration.",
    )


def _check_network(request: Mapping[str, Any], definition: Mapping[str, Any]) -> None:
    is_awsvpc = definition.get("networkMode") == "awsvpc"
    network = request.get("networkConfiguration")
    refuse(
        is_awsvpc and not network,
        "Network Configuration must be provided when networkMode 'awsvpc' is specified.",
    )
    refuse(
        bool(network) and not is_awsvpc,
        "Network Configuration is not valid for the given networkMode of this task definition.",
    )
    if network:
        awsvpc = network.get("awsvpcConfiguration", {})
        refuse(not 1 <= len(awsvpc.get("subnets", ())) <= 16, "subnets has 1 to 16 entries.")
        refuse(len(awsvpc.get("securityGroups", ())) > 5, "securityGroups has at most 5 entries.")
        refuse(awsvpc.get("assignPublicIp") == "ENABLED", "Assign public IP is not supported for this launch type.")


def _check_overrides(overrides: Mapping[str, Any], definition: Mapping[str, Any]) -> None:
    length = len(json.dumps(overrides, separators=(",", ":"), ensure_ascii=False))
    refuse(
        length > MAX_OVERRIDES_CHARACTERS,
        f"Container Overrides length must be at most {MAX_OVERRIDES_CHARACTERS}",
    )
    names = [container["name"] for container in definition["containerDefinitions"]]
    for override in overrides.get("containerOverrides", ()):
        name = override.get("name")
        refuse(name not in names, f"Override for container named {name} is not a container in the TaskDefinition.")
        unknown = sorted(set(override) - _OVERRIDABLE)
        refuse(bool(unknown), f"A container override has no {', '.join(unknown)}.")
        requirements = override.get("resourceRequirements", ())
        refuse(
            any(each.get("type") == "NeuronDevice" for each in requirements), "NeuronDevice needs Managed Instances."
        )
    _check_gpus(overrides, definition)


def _check_gpus(overrides: Mapping[str, Any], definition: Mapping[str, Any]) -> None:
    """Validate the GPU requests of all containers after the overrides are applied."""
    by_name = container_overrides(overrides)
    merged = ({**each, **by_name.get(each["name"], {})} for each in definition["containerDefinitions"])
    try:
        parsed = [parse_gpu_request(each.get("resourceRequirements", ())) for each in merged]
        check_one_kind(each for each in parsed if each is not None)
    except ValueError as error:
        raise invalid_parameter(str(error)) from error
