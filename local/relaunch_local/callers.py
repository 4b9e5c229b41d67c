"""Who calls the simulator, and what their policies allow.

The emulator gives every function the credentials of its role, and enforces the policies of what it serves itself. ECS
and EC2 are served by the simulator, so the same policies are checked here (IAM User Guide, "Policy evaluation logic").
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import boto3

Statement = Mapping[str, Any]
Context = Mapping[str, str]


@dataclass(frozen=True)
class Request:
    """One permission that a call needs: an action, on a resource, in a context of condition keys."""

    action: str
    resource: str = "*"
    context: Context = field(default_factory=dict)


@dataclass(frozen=True)
class Caller:
    """A principal and the statements of its policies; the root user has none and may do everything."""

    arn: str
    statements: tuple[Statement, ...] = ()
    is_root: bool = False

    def denial(self, request: Request) -> str | None:
        """Why the caller may not do this, in AWS's words; None if it may."""
        if self.is_root or is_allowed(self.statements, request):
            return None
        return (
            f"User: {self.arn} is not authorized to perform: {request.action} on resource: {request.resource} "
            f"because no identity-based policy allows the {request.action} action"
        )


def read_callers(session: boto3.Session, endpoint_url: str, root_key: str) -> dict[str, Caller]:
    """Know the root user and every function by the access key that the emulator gives it."""
    functions = session.client("lambda", endpoint_url=endpoint_url)
    iam = session.client("iam", endpoint_url=endpoint_url)
    account = session.client("sts", endpoint_url=endpoint_url).get_caller_identity()["Account"]
    callers = {root_key: Caller(f"arn:aws:iam::{account}:root", is_root=True)}
    for page in functions.get_paginator("list_functions").paginate():
        for function in page["Functions"]:
            role = function["Role"].rsplit("/", 1)[1]
            statements = tuple(role_statements(iam, role))
            arn = f"arn:aws:sts::{account}:assumed-role/{role}/{function['FunctionName']}"
            callers[function_access_key(function["FunctionArn"], function["Role"])] = Caller(arn, statements)
    return callers


def function_access_key(function_arn: str, role_arn: str) -> str:
    """The access key that MiniStack 1.5 gives a function: it is made of the function and its role."""
    return f"ASIA{hashlib.sha256(f'{function_arn}:{role_arn}'.encode()).hexdigest()[:16].upper()}"


def role_statements(iam: Any, role: str) -> Iterable[Statement]:
    """The statements of a role's inline policies; the template has no others."""
    for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
        yield from document["Statement"] if isinstance(document, dict) else json.loads(unquote(document))["Statement"]


def is_allowed(statements: Iterable[Statement], request: Request) -> bool:
    """Whether a statement allows this and none denies it."""
    effects = {statement["Effect"] for statement in statements if applies(statement, request)}
    return "Allow" in effects and "Deny" not in effects


def applies(statement: Statement, request: Request) -> bool:
    """Whether a statement is about this action on this resource in this context."""
    return (
        any(matches(pattern, request.action, re.IGNORECASE) for pattern in as_list(statement["Action"]))
        and any(matches(pattern, request.resource) for pattern in as_list(statement["Resource"]))
        and all(
            condition_holds(operator, key, as_list(values), request.context)
            for operator, keys in statement.get("Condition", {}).items()
            for key, values in keys.items()
        )
    )


def condition_holds(operator: str, key: str, values: Sequence[str], context: Context) -> bool:
    """Whether one condition holds; a key that the request does not have fails it.

    Raises:
        ValueError: the operator is none of those that the template uses.
    """
    if operator not in {"StringEquals", "StringLike", "ArnEquals", "ArnLike"}:
        raise ValueError(f"the local world cannot evaluate the condition operator {operator}")
    if key not in context:
        return False
    if operator == "StringEquals":
        return context[key] in values
    # ArnEquals is ArnLike ("Amazon Resource Name (ARN) condition operators").
    return any(matches(value, context[key]) for value in values)


def matches(pattern: str, text: str, flags: int = 0) -> bool:
    """Whether a policy's pattern, with `*` and `?`, matches the whole text."""
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, text, flags | re.DOTALL) is not None


def as_list(value: str | Sequence[str]) -> Sequence[str]:
    """A policy's element may be one string or a list of them."""
    return [value] if isinstance(value, str) else value
