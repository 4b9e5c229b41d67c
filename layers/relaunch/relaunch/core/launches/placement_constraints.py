"""Builds placement constraint expressions: what is built is valid.

The grammar is that of "Create expressions to define container instances for Amazon ECS tasks" (Amazon ECS Developer
Guide): `subject operator [argument]`. Only what Relaunch says is in here. ECS accepts an expression that can never
hold, so a typing error would show only as a task that is never placed.
"""

import re

MAX_EXPRESSION_LENGTH = 2000
"""Characters of one expression (PlacementConstraint, Amazon ECS API Reference)."""

INSTANCE_TYPE = "ecs.instance-type"
AVAILABILITY_ZONE = "ecs.availability-zone"

_INSTANCE_TYPE = re.compile(r"[a-z][a-z0-9-]*\.[a-z0-9-]+", re.ASCII)
_INSTANCE_ID = re.compile(r"i-[0-9a-f]+", re.ASCII)


class InvalidExpressionError(ValueError):
    """The expression would not be one of ECS's cluster query language."""


def instance_type_is(instance_type: str) -> str:
    """Say that the machine is of this type; written in lower case, as ECS registers it.

    Raises:
        InvalidExpressionError: it is no instance type.
    """
    name = instance_type.lower()
    if not _INSTANCE_TYPE.fullmatch(name):
        raise InvalidExpressionError(f"no instance type: {instance_type!r}")
    return f"attribute:{INSTANCE_TYPE} == {name}"


def ec2_instance_is(instance_id: str) -> str:
    """Say that the machine is this EC2 instance (`i-…`).

    Raises:
        InvalidExpressionError: it is no id of an EC2 instance.
    """
    if not _INSTANCE_ID.fullmatch(instance_id):
        raise InvalidExpressionError(f"no EC2 instance: {instance_id!r}")
    return f"ec2InstanceId == {instance_id}"
