"""Builds placement constraint expressions; an expression that exists is a valid one.

The grammar is that of "Create expressions to define container instances for Amazon ECS tasks" (Amazon ECS Developer
Guide): `subject operator [argument]`, joined by `and`. Only what Relaunch says is in here. ECS accepts an expression
that can never hold, so a typing error would show only as a task that is never placed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

MAX_EXPRESSION_LENGTH = 2000
"""Characters of one expression (PlacementConstraint, Amazon ECS API Reference)."""

INSTANCE_TYPE = "ecs.instance-type"
AVAILABILITY_ZONE = "ecs.availability-zone"

# ECS takes blanks and backslashes in attribute values too, but says nothing of how to quote them in an expression.
_VALUE = r"[A-Za-z0-9._/@:-]{1,128}"
_ATTRIBUTE = r"attribute:[A-Za-z0-9._/-]{1,128}"
_CLAUSE = re.compile(
    rf"ec2InstanceId == i-[0-9a-f]+|{_ATTRIBUTE} (?:exists|== {_VALUE}|in \[{_VALUE}(?:, {_VALUE})*\])", re.ASCII
)
_INSTANCE_TYPE = re.compile(r"[a-z][a-z0-9-]*\.[a-z0-9-]+", re.ASCII)
_OPERATOR_WORDS = frozenset(
    {"and", "or", "not", "in", "not_in", "exists", "not_exists", "equals", "not_equals", "matches", "not_matches"}
    | {"greater_than", "greater_than_equal", "less_than", "less_than_equal"}
)
_AND = " and "


class InvalidExpressionError(ValueError):
    """The expression would not be one of ECS's cluster query language."""


@dataclass(frozen=True, slots=True)
class Expression:
    """Clauses that must all hold of a container instance; `str()` writes it for a `memberOf` constraint.

    Raises:
        InvalidExpressionError: No clause, a clause outside the grammar, or more than 2000 characters.
    """

    clauses: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.clauses:
            raise InvalidExpressionError("an expression needs at least one clause")
        for clause in self.clauses:
            if not _CLAUSE.fullmatch(clause):
                raise InvalidExpressionError(f"no clause of the cluster query language: {clause!r}")
        length = len(str(self))
        if length > MAX_EXPRESSION_LENGTH:
            raise InvalidExpressionError(f"the expression has {length} characters, ECS takes {MAX_EXPRESSION_LENGTH}")

    def __str__(self) -> str:
        return _AND.join(self.clauses)


def instance_type_is(instance_type: str) -> Expression:
    """Say that the machine is of this type; written in lower case, as ECS registers it."""
    name = instance_type.lower()
    if not _INSTANCE_TYPE.fullmatch(name):
        raise InvalidExpressionError(f"no instance type: {instance_type!r}")
    return attribute_is(INSTANCE_TYPE, name)


def ec2_instance_is(instance_id: str) -> Expression:
    """Say that the machine is this EC2 instance (`i-…`)."""
    return Expression((f"ec2InstanceId == {instance_id}",))


def attribute_is(name: str, value: str) -> Expression:
    """Say that an attribute of the container instance has this value."""
    return Expression((f"attribute:{name} == {_value(value)}",))


def attribute_exists(name: str) -> Expression:
    """Say that the container instance has this attribute, whatever its value."""
    return Expression((f"attribute:{name} exists",))


def attribute_in(name: str, values: Iterable[str]) -> Expression:
    """Say that an attribute has one of these values, at least one; they are written once each, in order."""
    return Expression((f"attribute:{name} in [{', '.join(_value(value) for value in dict.fromkeys(values))}]",))


def all_of(*expressions: Expression) -> Expression:
    """Join expressions: all of them must hold."""
    return Expression(tuple(dict.fromkeys(clause for expression in expressions for clause in expression.clauses)))


def _value(value: str) -> str:
    if not re.fullmatch(_VALUE, value, re.ASCII):
        raise InvalidExpressionError(f"no value that can be written without quotes: {value!r}")
    # The grammar does not say that an operator's word may be a value.
    if value.lower() in _OPERATOR_WORDS:
        raise InvalidExpressionError(f"{value!r} is an operator of the cluster query language")
    return value
