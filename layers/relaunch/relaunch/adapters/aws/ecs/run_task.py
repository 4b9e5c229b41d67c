"""Builds RunTask requests, and maps responses and errors to launch outcomes.

Sources: "RunTask" and "API failures and error messages" (Amazon ECS API Reference). Where an error code is ambiguous,
its message is matched; the messages are those reported by users of ECS.
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

# Quota of PROVISIONING tasks per cluster (ClientException "Tasks provisioning capacity limit exceeded."), quotas of
# running tasks, and throttling of a service that ECS calls (EC2, for security groups).
_THROTTLED_OR_QUOTA = re.compile(
    r"(?i)provisioning capacity limit|provisioning state|reached the limit|Rate exceeded|Request ?Limit ?Exceeded"
)
# A capacity provider without managed scaling and without instances, no capacity for Managed Instances, or a capacity
# provider that does not exist; other providers may have capacity.
_NO_CAPACITY = re.compile(
    r"(?i)no container instances were found|capacity is unavailable"
    r"|capacity provider.{0,80}(not found|does not exist|not associated)"
)


def build_run_task(
    request: LaunchRequest, cluster: str, subnets: Sequence[str], security_groups: Sequence[str]
) -> "RunTaskRequestTypeDef":
    """Return the parameters of RunTask, identical for identical requests, as their client token requires.

    `launchType` is not set: it excludes a capacity provider strategy, and tasks with it do not scale the cluster.
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
        # Only allowed for awsvpc. Tasks on EC2 cannot have a public IP address.
        network = {"subnets": list(subnets), "securityGroups": list(security_groups), "assignPublicIp": "DISABLED"}
        parameters["networkConfiguration"] = {"awsvpcConfiguration": network}
    return cast("RunTaskRequestTypeDef", parameters)


def outcome_of_response(response: "RunTaskResponseTypeDef") -> LaunchOutcome:
    """Return the outcome of a RunTask response to a request with a count of one.

    If a task cannot be placed, the response has HTTP status 200 and one failure, or one for each container instance.
    More than one task is unexpected, and returned as a conflict so that all of them are known.
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
    """Return the outcome of a RunTask error; without a response the request may have taken effect."""
    if not isinstance(error, ClientError):
        return LaunchUncertain(f"no answer to RunTask: {error}")
    reason = f"{error_code(error)}: {error.response.get('Error', {}).get('Message', '')}"
    if error_code(error) == "ConflictException":
        return _conflict(error, reason)
    if is_throttled(error) or (not is_transient(error) and _THROTTLED_OR_QUOTA.search(reason)):
        return LaunchDeferred(reason)
    if is_transient(error):
        return LaunchUncertain(reason)
    return PlacementFailed((reason,)) if _NO_CAPACITY.search(reason) else LaunchRefused(reason)


def _conflict(error: ClientError, reason: str) -> LaunchOutcome:
    task_arns = tuple(cast("dict[str, Any]", error.response).get("resourceIds") or ())
    # The earlier request with this token placed no task, and ECS would repeat that response.
    return LaunchConflict(task_arns) if task_arns else PlacementFailed((reason,))
