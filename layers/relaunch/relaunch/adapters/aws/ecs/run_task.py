"""Builds RunTask requests, and maps responses and errors to launch outcomes.

Sources: "RunTask" and "API failures and error messages" (Amazon ECS API Reference). Where an error code is ambiguous,
its message is matched; the messages are those reported by users of ECS.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import BotoCoreError, ClientError

from relaunch.adapters.aws.ecs.container_overrides import build_overrides
from relaunch.adapters.aws.ecs.events import started_by
from relaunch.adapters.aws.ecs.placement_constraints import constraint_of
from relaunch.adapters.aws.errors import error_code, is_not_granted, is_throttled, is_transient, was_repeated
from relaunch.core.launches.launch import (
    LaunchConflict,
    LaunchDeferred,
    LaunchOutcome,
    LaunchRefused,
    LaunchRequest,
    LaunchUncertain,
    PlacementFailed,
    Shortage,
    TaskPlaced,
)

if TYPE_CHECKING:
    from mypy_boto3_ecs.type_defs import RunTaskRequestTypeDef, RunTaskResponseTypeDef

AWSVPC = "awsvpc"

# Quota of PROVISIONING tasks per cluster (ClientException "Tasks provisioning capacity limit exceeded."), quotas of
# running tasks, and throttling of a service that ECS calls (EC2, for security groups).
_THROTTLED_OR_QUOTA = (
    r"(?i)provisioning capacity limit|provisioning state|reached the limit|Rate exceeded|Request ?Limit ?Exceeded"
)
# A capacity provider without managed scaling and without instances, no capacity for Managed Instances, or a capacity
# provider that does not exist, is being made or is being deleted (hashicorp/terraform-provider-aws#45693). Other
# providers may have capacity.
_NO_CAPACITY = (
    r"(?i)no container instances were found|capacity is unavailable"
    r"|capacity provider.{0,300}(not found|does not exist|not associated|not in an ACTIVE state)"
)
_ABOUT_PROVIDER = r"(?i)capacity ?provider"
_ABOUT_REVISION = r"(?i)task ?definition"
_SHORTAGES = {"RESOURCE:GPU": Shortage.GPU, "RESOURCE:PORTS": Shortage.PORTS, "AGENT": Shortage.AGENT}


def build_run_task(
    request: LaunchRequest, cluster: str, subnets: Sequence[str], security_groups: Sequence[str]
) -> "RunTaskRequestTypeDef":
    """Return the parameters of RunTask, identical for identical requests, as their client token requires.

    `launchType` and a capacity provider strategy exclude each other. With a strategy, a task scales the cluster. With
    launch type EC2 it does not, and every ACTIVE instance is considered, those of capacity providers too: the placement
    constraint restricts it to the machine of our own. One of the two is always sent, because without them the default
    strategy of the cluster applies.
    """
    parameters: dict[str, Any] = {
        "cluster": cluster,
        "taskDefinition": request.revision_arn,
        "count": 1,
        **_where(request),
        "overrides": build_overrides(request),
        "startedBy": started_by(request.attempt),
        "clientToken": client_token(
            request.attempt.job_id, request.attempt.attempt_number, request.placement_number, request.rank
        ),
        "propagateTags": "TASK_DEFINITION",
        "enableExecuteCommand": False,
        "placementConstraints": [{"type": "memberOf", "expression": constraint_of(request)}],
    }
    if request.network_mode == AWSVPC:
        # Only allowed for awsvpc. Tasks on EC2 cannot have a public IP address.
        network = {"subnets": list(subnets), "securityGroups": list(security_groups), "assignPublicIp": "DISABLED"}
        parameters["networkConfiguration"] = {"awsvpcConfiguration": network}
    return cast("RunTaskRequestTypeDef", parameters)


def client_token(job_id: str, attempt: int, placement: int, rank: int = 0) -> str:
    """Return the client token of a placement try, or of one rank of it, which is unique to it and always the same.

    It has 64 hexadecimal characters; ECS allows up to 64 characters of ASCII 33 to 126.
    """
    of_rank = f"/{rank}" if rank else ""
    return hashlib.sha256(f"{job_id}/{attempt}/{placement}{of_rank}".encode()).hexdigest()


def _where(request: LaunchRequest) -> dict[str, Any]:
    if request.instance_id:
        return {"launchType": "EC2"}
    return {"capacityProviderStrategy": [{"capacityProvider": request.capacity_provider, "weight": 1}]}


def outcome_of_response(response: "RunTaskResponseTypeDef") -> LaunchOutcome:
    """Return the outcome of a RunTask response to a request with a count of one.

    If a task cannot be placed, the response has HTTP status 200 and one failure, or one for each container instance.
    More than one task is unexpected, and returned as a conflict so that all of them are known.
    """
    task_ids = tuple(task["taskArn"] for task in response.get("tasks", ()))
    failures = response.get("failures", ())
    if len(task_ids) == 1:
        return TaskPlaced(task_ids[0])
    if task_ids:
        return LaunchConflict(task_ids)
    if failures:
        return failed_placement(failure.get("reason") or "no reason given" for failure in failures)
    return LaunchUncertain("RunTask answered with neither a task nor a failure")


def failed_placement(reasons: Iterable[str]) -> PlacementFailed:
    """Return the failed placement for the reasons of `failures[]`, of which each is kept once."""
    kept = tuple(dict.fromkeys(reasons))
    return PlacementFailed(kept, shortages=frozenset(map(_shortage_of, kept)))


def _shortage_of(reason: str) -> Shortage:
    return _SHORTAGES.get(reason, Shortage.ROOM if reason.startswith("RESOURCE:") else Shortage.OTHER)


def outcome_of_error(error: ClientError | BotoCoreError) -> LaunchOutcome:
    """Return the outcome of a RunTask error; without a response the request may have taken effect."""
    if not isinstance(error, ClientError):
        return LaunchUncertain(f"no answer to RunTask: {error}")
    reason = f"{error_code(error)}: {error.response.get('Error', {}).get('Message', '')}"
    if error_code(error) == "ConflictException":
        return _conflict(error, reason)
    if is_throttled(error) or (not is_transient(error) and re.search(_THROTTLED_OR_QUOTA, reason)):
        return LaunchDeferred(reason)
    if is_transient(error):
        return LaunchUncertain(reason)
    if re.search(_NO_CAPACITY, reason):
        return PlacementFailed((reason,))
    may_heal = is_not_granted(error)
    return LaunchRefused(
        reason,
        is_about_revision=not may_heal and re.search(_ABOUT_REVISION, reason) is not None,
        is_about_provider=not may_heal and re.search(_ABOUT_PROVIDER, reason) is not None,
        may_heal=may_heal,
        was_repeated=was_repeated(error),
    )


def _conflict(error: ClientError, reason: str) -> LaunchOutcome:
    task_ids = tuple(cast("dict[str, Any]", error.response).get("resourceIds") or ())
    # The earlier request with this token placed no task, and ECS would repeat that response.
    return LaunchConflict(task_ids) if task_ids else PlacementFailed((reason,))
