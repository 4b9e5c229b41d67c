"""The documented limits of RunTask, which the SDK does not check (RunTaskRequest, Amazon ECS API Reference)."""

import json
import re

from relaunch.adapters.aws.ecs.container_overrides import build_overrides, check_accelerators
from relaunch.adapters.aws.ecs.events import started_by
from relaunch.adapters.aws.ecs.placement_constraints import MAX_EXPRESSION_LENGTH, InvalidExpressionError, constraint_of
from relaunch.core.launches.launch import LaunchRequest

MAX_CONSTRAINTS = 10
MAX_OVERRIDES_LENGTH = 8192
_STARTED_BY = re.compile(r"[A-Za-z0-9_/-]{1,128}", re.ASCII)


def check_limits(request: LaunchRequest) -> tuple[str, ...]:
    """Return the limits that the request violates.

    The length of the overrides is that of the JSON sent by the SDK (with spaces after separators and escaped
    characters), which is never less than what ECS counts.
    """
    violations = [*_constraint_violations(request), *check_accelerators(request.accelerators)]
    overrides_length = len(json.dumps(build_overrides(request)))
    if overrides_length > MAX_OVERRIDES_LENGTH:
        violations.append(f"the overrides have {overrides_length} characters, ECS takes {MAX_OVERRIDES_LENGTH}")
    starter = started_by(request.attempt)
    if not _STARTED_BY.fullmatch(starter):
        violations.append(f"startedBy must be 1 to 128 of letters, digits, '-', '_' and '/': {starter!r}")
    return tuple(violations)


def _constraint_violations(request: LaunchRequest) -> list[str]:
    violations = []
    try:
        expression = constraint_of(request)
    except InvalidExpressionError as error:
        violations.append(str(error))
    else:
        if len(expression) > MAX_EXPRESSION_LENGTH:
            violations.append(
                f"a placement constraint has {len(expression)} characters, ECS takes 1 to {MAX_EXPRESSION_LENGTH}"
            )
    count = 1 + request.own_constraint_count
    if count > MAX_CONSTRAINTS:
        violations.append(
            f"{count} placement constraints with the {request.own_constraint_count} of the task definition, "
            f"ECS takes {MAX_CONSTRAINTS}"
        )
    return violations
