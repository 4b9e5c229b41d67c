"""What a task definition's own placement constraints say of an offering, before there is an instance.

An instance of an offering has the offering's type, zone and architecture, runs Linux, and its agent is connected before
a task is placed. Everything else is known only once the instance has registered: its image, subnet, agent, custom
attributes and tasks.
"""

from collections.abc import Iterable

from relaunch.core.offerings.offering import Offering
from relaunch.core.selection.rejection import Rejection
from relaunch.core.task_definitions.query_language import (
    UNKNOWN,
    ExpressionError,
    Lookup,
    Unknown,
    Value,
    parse_expression,
)


def find_unsatisfied(constraints: Iterable[str], offering: Offering) -> Rejection | None:
    """Reject an offering whose instances do not satisfy all constraints, or which nobody can tell of before it is paid.

    An instance of a capacity provider may satisfy what is not known here: it is the user's own.
    """
    for text in constraints:
        result = judge(text, offering)
        if result is False:
            return Rejection(f"the task definition's placement constraint is {text}")
        if result is None and offering.is_own_machine:
            reason = (
                f"whether a machine satisfies the task definition's placement constraint {text} is not known before it "
                "is bought: take the constraint out, or name a capacity provider whose instances do (CapacityProviders)"
            )
            return Rejection(reason)
    return None


def find_unjudged(constraints: Iterable[str], offering: Offering) -> tuple[str, ...]:
    """Return the constraints that some instances of an offering may not satisfy."""
    return tuple(text for text in constraints if judge(text, offering) is None)


def judge(text: str, offering: Offering) -> bool | None:
    """Return whether every (True) or no instance (False) of an offering satisfies an expression; None if unknown.

    The group of a capacity provider may start an instance in any zone that EC2 offers the type in.
    """
    try:
        expression = parse_expression(text)
    except ExpressionError:
        # ECS took it: it has a regular expression of Java's, or more than the Guide says.
        return None
    if not expression.is_portable:
        return None
    zones = (offering.zone,) if offering.zone else offering.offered_zones
    results = {expression.holds(_lookup(offering, zone)) for zone in zones or (UNKNOWN,)}
    return results.pop() if len(results) == 1 else None


def _lookup(offering: Offering, zone: str | Unknown) -> Lookup:
    known: dict[str, Value | Unknown] = {
        "agentConnected": True,
        "attribute:ecs.instance-type": offering.instance_type.name,
        "attribute:ecs.availability-zone": zone,
        "attribute:ecs.cpu-architecture": offering.instance_type.architecture,
        "attribute:ecs.os-type": "linux",
        "attribute:ecs.os-family": "LINUX",
    }
    return lambda subject: known.get(subject, UNKNOWN)
