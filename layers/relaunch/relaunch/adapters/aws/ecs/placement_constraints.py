"""Placement constraint expressions in the cluster query language of ECS.

The grammar is `subject operator [argument]` ("Create expressions to define container instances for Amazon ECS tasks",
Amazon ECS Developer Guide). The functions validate their arguments, because ECS accepts expressions that no instance
can satisfy, and a typing error would only show as a task that is never placed.
"""

import re
from collections.abc import Iterable

from relaunch.core.launches.launch import LaunchRequest

MAX_EXPRESSION_LENGTH = 2000
"""Maximum length of an expression in characters (PlacementConstraint, Amazon ECS API Reference)."""

INSTANCE_TYPE = "ecs.instance-type"
AVAILABILITY_ZONE = "ecs.availability-zone"

_INSTANCE_TYPE = re.compile(r"[a-z][a-z0-9-]*\.[a-z0-9-]+", re.ASCII)
_INSTANCE_ID = re.compile(r"i-[0-9a-f]+", re.ASCII)


class InvalidExpressionError(ValueError):
    """The argument does not make a valid expression."""


def constraint_of(request: LaunchRequest) -> str:
    """Return the one expression that restricts a task to the instances that it may run on.

    That is the machine of our own, or any instance of the selected type but those on which the job did not start. The
    type is stated in both cases, so that a machine that turns out to be another one than selected runs nothing.

    Raises:
        InvalidExpressionError: not an instance type, or not an EC2 instance ID.
    """
    of_type = instance_type_is(request.offering.instance_type)
    if request.instance_id:
        return f"{ec2_instance_is(request.instance_id)} and {of_type}"
    return is_none_of(of_type, request.avoided_instances)


def instance_type_is(instance_type: str) -> str:
    """Return the expression for an instance type, in lower case as registered by ECS.

    Raises:
        InvalidExpressionError: not an instance type.
    """
    name = instance_type.lower()
    if not _INSTANCE_TYPE.fullmatch(name):
        raise InvalidExpressionError(f"no instance type: {instance_type!r}")
    return f"attribute:{INSTANCE_TYPE} == {name}"


def is_none_of(expression: str, instance_ids: Iterable[str]) -> str:
    """Return the expression restricted to other EC2 instances than these.

    Raises:
        InvalidExpressionError: not an EC2 instance ID.
    """
    ids = tuple(instance_ids)
    for instance_id in ids:
        ec2_instance_is(instance_id)
    return f"{expression} and ec2InstanceId !in [{', '.join(ids)}]" if ids else expression


def ec2_instance_is(instance_id: str) -> str:
    """Return the expression for an EC2 instance ID (`i-…`).

    Raises:
        InvalidExpressionError: not an EC2 instance ID.
    """
    if not _INSTANCE_ID.fullmatch(instance_id):
        raise InvalidExpressionError(f"no EC2 instance: {instance_id!r}")
    return f"ec2InstanceId == {instance_id}"
