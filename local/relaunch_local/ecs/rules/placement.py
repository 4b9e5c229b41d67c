"""Where RunTask may place tasks: placement constraints and strategies, and capacity provider strategies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relaunch.core.task_definitions.query_language import Expression, ExpressionError, parse_expression
from relaunch_local.ecs.errors import invalid_parameter, refuse

MAX_PROVIDERS = 20


@dataclass(frozen=True, slots=True)
class Placement:
    """Placement constraints of a RunTask request and its task definition, and the placement strategy."""

    member_of: tuple[Expression, ...] = ()
    distinct_instance: bool = False
    strategy: tuple[tuple[str, str], ...] = ()
    """Pairs of type (binpack, spread, random) and field."""


def placement_of(request: Mapping[str, Any], definition: Mapping[str, Any]) -> Placement:
    """Parse the constraints and the strategy of a request; raises InvalidParameterException."""
    expressions = []
    distinct = False
    for constraint in (*request.get("placementConstraints", ()), *definition.get("placementConstraints", ())):
        kind = constraint.get("type")
        refuse(kind not in ("memberOf", "distinctInstance"), "Invalid placement constraint type.")
        if kind == "distinctInstance":
            refuse("expression" in constraint, "A distinctInstance constraint has no expression.")
            distinct = True
            continue
        try:
            expressions.append(parse_expression(constraint.get("expression", "")))
        except ExpressionError as error:
            raise invalid_parameter(f"Invalid placement constraint expression: {error}") from error
    strategy = tuple((rule["type"], rule.get("field", "instanceId")) for rule in request.get("placementStrategy", ()))
    return Placement(tuple(expressions), distinct, strategy)


def check_strategy(strategy: Sequence[Mapping[str, Any]]) -> None:
    """Raise InvalidParameterException for an invalid capacity provider strategy."""
    refuse(len(strategy) > MAX_PROVIDERS, f"A strategy has at most {MAX_PROVIDERS} capacity providers.")
    names = [item.get("capacityProvider") for item in strategy]
    refuse(len(set(names)) < len(names), "A capacity provider is named twice in the strategy.")
    refuse(sum(item.get("base", 0) > 0 for item in strategy) > 1, "Only one capacity provider may have a base.")
    for item in strategy:
        refuse(not 0 <= item.get("weight", 0) <= 1_000, "A weight is between 0 and 1000.")
        refuse(not 0 <= item.get("base", 0) <= 100_000, "A base is between 0 and 100000.")
    total = sum(item.get("weight", 0) for item in strategy)
    refuse(len(strategy) > 1 and total == 0, "At least one capacity provider must have a weight above 0.")
