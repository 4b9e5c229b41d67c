"""RunTask: its request from a LaunchRequest, and every answer of it as an outcome of its own.

Sources: "RunTask" and "API failures and error messages" of the Amazon ECS API Reference. Where ECS has one code for
several things the message decides; the messages are those that callers report.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import BotoCoreError, ClientError

from relaunch.adapters.aws.errors import error_code, is_throttled, is_transient
from relaunch.core.launches.launch import (
    LaunchConflict,
    LaunchDeferred,
    LaunchOutcome,
    LaunchRefused,
    LaunchRequest,
    LaunchUncertain,
    PlacementFailed,
    TaskPlaced,
    build_overrides,
)

if TYPE_CHECKING:
    from mypy_boto3_ecs.type_defs import RunTaskRequestTypeDef, RunTaskResponseTypeDef

AWSVPC = "awsvpc"

# ClientException "Tasks provisioning capacity limit exceeded." is the quota of PROVISIONING tasks per cluster; the
# others are quotas of running tasks, and throttling of a service that ECS itself calls (EC2, for security groups).
_NOT_NOW = re.compile(
    r"(?i)provisioning capacity limit|provisioning state|reached the limit|Rate exceeded|Request ?Limit ?Exceeded"
)
# A capacity provider without managed scaling and without machines; managed capacity that AWS has none of; a provider
# that was mistyped in the stack's settings or deleted since, beside which others may fit.
_NO_CAPACITY = re.compile(
    r"(?i)no container instances were found|capacity is unavailable"
    r"|capacity provider.{0,80}(not found|does not exist|not associated)"
)


def build_run_task(
    request: LaunchRequest, cluster: str, subnets: Sequence[str], security_groups: Sequence[str]
) -> "RunTaskRequestTypeDef":
    """Build RunTask's parameters: the same request gives the same parameters, as its client token demands.

    Never with `launchType`: it excludes a capacity provider strategy, and would not let the cluster scale.
    """
    parameters: dict[str, Any] = {
        "cluster": cluster,
        "taskDefinition": request.revision_arn,
        "count": 1,
        "capacityProviderStrategy": [{"capacityProvider": request.capacity_provider, "weight": 1}],
        "overrides": build_overrides(request),
        "startedBy": request.started_by,
        "clientToken": request.client_token,
        "propagateTags": "TASK_DEFINITION",
        "enableExecuteCommand": False,
    }
    if request.placement_constraints:
        parameters["placementConstraints"] = [
            {"type": "memberOf", "expression": expression} for expression in request.placement_constraints
        ]
    if request.network_mode == AWSVPC:
        # Refused for every other network mode. Tasks on EC2 get no public address of their own in any case.
        network = {"subnets": list(subnets), "securityGroups": list(security_groups), "assignPublicIp": "DISABLED"}
        parameters["networkConfiguration"] = {"awsvpcConfiguration": network}
    return cast("RunTaskRequestTypeDef", parameters)


def outcome_of_response(response: "RunTaskResponseTypeDef") -> LaunchOutcome:
    """Return what RunTask's answer to a count of one means.

    A task that cannot be placed comes with HTTP 200 and one failure, or with one for every container instance. More
    than one task was never asked for: they are handed on as a conflict, for all of them must be known.
    """
    task_arns = tuple(task["taskArn"] for task in response.get("tasks", ()))
    failures = response.get("failures", ())
    if len(task_arns) == 1:
        return TaskPlaced(task_arns[0])
    if task_arns:
        return LaunchConflict(task_arns)
    if failures:
        return PlacementFailed(tuple(dict.fromkeys(failure.get("reason") or "no reason given" for failure in failures)))
    return LaunchUncertain("RunTask answered with neither a task nor a failure")


def outcome_of_error(error: ClientError | BotoCoreError) -> LaunchOutcome:
    """Return what an error of RunTask means; without an answer from ECS the call may have taken effect."""
    if not isinstance(error, ClientError):
        return LaunchUncertain(f"no answer to RunTask: {error}")
    reason = f"{error_code(error)}: {error.response.get('Error', {}).get('Message', '')}"
    if error_code(error) == "ConflictException":
        return _conflict(error, reason)
    if is_throttled(error) or (not is_transient(error) and _NOT_NOW.search(reason)):
        return LaunchDeferred(reason)
    if is_transient(error):
        return LaunchUncertain(reason)
    return PlacementFailed((reason,)) if _NO_CAPACITY.search(reason) else LaunchRefused(reason)


def _conflict(error: ClientError, reason: str) -> LaunchOutcome:
    task_arns = tuple(cast("dict[str, Any]", error.response).get("resourceIds") or ())
    # The earlier request with this token placed nothing, and ECS would repeat that answer: the try is spent.
    return LaunchConflict(task_arns) if task_arns else PlacementFailed((reason,))
