"""What policies reach among the resources of somebody else, whatever the caller puts into a request.

A statement is asked about each resource with the values of condition keys that it expects, where the caller chooses
them; what AWS itself knows of a resource, such as its tags, is as it is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

from relaunch_local.iam.conditions import matches_arn, parse_operator
from relaunch_local.iam.permission import ContextValue, Permission
from relaunch_local.iam.policies import PolicyAuthorizer, PolicyDocument, listed, statements_of
from relaunch_local.iam.reference import actions_like, find_action

# Of these a request names no resource of the type that exists: the call makes it ("Actions, resources, and condition
# keys for Amazon EC2").
_MADE_BY_THE_CALL = {"ec2:RunInstances", "ec2:CreateFleet"}
_MADE = {"instance", "volume", "fleet", "network-interface", "spot-instances-request"}
_IN_A_CLUSTER = {"task", "container-instance"}
CALLER = "caller"
"""The access key of whom permissions are asked for."""


@dataclass(frozen=True)
class Somebody:
    """Whose resources are looked for: their ARNs, and what AWS knows of them, by condition key.

    `elsewhere` are values that a request may name instead of one's own, such as the ARN of their cluster.
    """

    arns: Sequence[str]
    facts: Mapping[str, ContextValue] = field(default_factory=dict)
    elsewhere: Mapping[str, Sequence[ContextValue]] = field(default_factory=dict)

    @cached_property
    def by_service(self) -> Mapping[str, Sequence[str]]:
        """The ARNs by the prefix of the service's actions."""
        return {service: list(arns) for service, arns in groupby(sorted(self.arns, key=_service), key=_service)}


@dataclass(frozen=True, slots=True, order=True)
class Reached:
    """An action that is allowed on a resource of somebody else, or for what a request names."""

    action: str
    resource: str


def reach(documents: Sequence[PolicyDocument], somebody: Somebody, own: Sequence[str] = ()) -> Iterator[Reached]:
    """Yield what the policies allow of somebody else's; `own` are the ARNs of whose policies they are."""
    authorize = authorizer_of(documents)
    found: set[Reached] = set()
    for action, statement in allowed(documents):
        expected = expected_values(statement)
        found.update(_of_resources(action, statement, expected, somebody, authorize))
        found.update(_of_keys(action, expected, somebody, [*own, "*"], authorize))
    yield from sorted(found)


def authorizer_of(documents: Sequence[PolicyDocument]) -> PolicyAuthorizer:
    """Return what evaluates these policies; a request has no condition key but those that are given."""
    return PolicyAuthorizer({CALLER: documents}, lambda _action, _resource, _key: True)


def allowed(documents: Sequence[PolicyDocument]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the actions that the policies allow, each with its statement."""
    for document in documents:
        for statement in statements_of(document):
            if statement["Effect"] == "Allow":
                yield from ((action, statement) for action in _actions(statement))


def account_wide(documents: Sequence[PolicyDocument]) -> list[str]:
    """Return the actions that the policies allow and that no policy can hold to a resource."""
    return sorted({action for action, _ in allowed(documents) if not find_action(action).resource_types})


def _service(arn: str) -> str:
    return arn.split(":")[2]


def _actions(statement: Mapping[str, Any]) -> Iterator[str]:
    for pattern in listed(statement.get("Action", ())):
        yield from actions_like(pattern) if {"*", "?"} & set(pattern) else [find_action(pattern).action]


def _of_resources(
    action: str,
    statement: Mapping[str, Any],
    expected: Mapping[str, ContextValue],
    somebody: Somebody,
    authorize: Callable[[Permission], bool],
) -> Iterator[Reached]:
    patterns = listed(statement["Resource"])
    for arn in somebody.by_service.get(action.partition(":")[0], ()):
        if not any(pattern == "*" or matches_arn(arn, pattern) for pattern in patterns):
            continue
        if may_reach(action, arn, expected, somebody, authorize):
            yield Reached(action, arn)


def may_reach(
    action: str,
    arn: str,
    chosen: Mapping[str, ContextValue],
    somebody: Somebody,
    authorize: Callable[[Permission], bool],
) -> bool:
    """Return whether an action is allowed on a resource of somebody; `chosen` are condition keys of the request.

    What AWS knows of the resource is as it is. An action that has no such resource does nothing to it.
    """
    kind = find_action(action).type_of(arn)
    if kind is None or (action in _MADE_BY_THE_CALL and kind in _MADE):
        return False
    context = {**chosen, **dict(_facts_of(kind, somebody, chosen))}
    return authorize(Permission(CALLER, action, arn, context))


def _facts_of(
    kind: str, somebody: Somebody, expected: Mapping[str, ContextValue]
) -> Iterator[tuple[str, ContextValue]]:
    for key, value in somebody.facts.items():
        if key in expected:
            yield key, value
    if "ecs:cluster" in expected and _tells(kind, "ecs:cluster"):
        yield "ecs:cluster", somebody.elsewhere["ecs:cluster"][0]


def _of_keys(
    action: str,
    expected: Mapping[str, ContextValue],
    somebody: Somebody,
    own: Sequence[str],
    authorize: Callable[[Permission], bool],
) -> Iterator[Reached]:
    """Yield what a request names of somebody else's beside its resource, which is one's own."""
    reference = find_action(action)
    named = {key: values for key, values in somebody.elsewhere.items() if key.lower() in reference.keys}
    kinds = {arn: reference.type_of(arn) for arn in own} if named else {}
    for key, values in named.items():
        fitting = [arn for arn, kind in kinds.items() if arn == "*" or (kind and not _tells(kind, key))]
        if not reference.has_key(key, fitting[0]):
            continue
        for value in values:
            context = {**expected, key: value}
            if any(authorize(Permission(CALLER, action, arn, context)) for arn in fitting):
                yield Reached(action, f"{key}={value}")


def _tells(kind: str, key: str) -> bool:
    """Return whether the resource itself tells a condition key: nobody can name another cluster of a task."""
    return key == "ecs:cluster" and kind in _IN_A_CLUSTER


def expected_values(statement: Mapping[str, Any]) -> dict[str, ContextValue]:
    """Return the values of condition keys that a statement's conditions hold for; a pattern matches itself."""
    found: dict[str, ContextValue] = {}
    for written, keys in statement.get("Condition", {}).items():
        operator = parse_operator(written)
        if operator.name == "Null" or operator.is_negated:
            continue
        for key, values in keys.items():
            first = str(listed(values)[0])
            found[key] = (first,) if operator.over else first
    return found
