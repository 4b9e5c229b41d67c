"""What policies allow, right by right: which calls need each right, condition and wildcard.

A right is an action on a resource, as a statement names them. What no call needs can leave the policy; what
refuses no call restricts nothing.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from relaunch_local.iam.conditions import PolicyError, matches_pattern
from relaunch_local.iam.permission import ContextValue, Permission
from relaunch_local.iam.policies import IsWithoutKey, PolicyAuthorizer, PolicyDocument, listed, statements_of

# Values that no condition of ours expects.
_OTHER_ARN = "arn:aws:iam::999999999999:other/other"
_OTHERS: Sequence[ContextValue] = (None, "other", _OTHER_ARN, "false", "99999999")
_OTHER_SETS: Sequence[ContextValue] = (None, ("other",))


@dataclass(frozen=True)
class Right:
    """An action on a resource, both as a statement names them; `place` are the numbers of policy and statement."""

    place: tuple[int, int]
    action: str
    resource: str


@dataclass(frozen=True)
class Restriction:
    """A condition of a statement, or a literal part of a resource pattern that ends at a wildcard."""

    place: tuple[int, int]
    what: str
    without: Sequence[PolicyDocument]
    """The policies without it."""


class Policies:
    """The policies of one role."""

    def __init__(self, documents: Sequence[PolicyDocument], is_without_key: IsWithoutKey) -> None:
        """Look at these policies."""
        self.documents = [{"Statement": list(statements_of(each))} for each in documents]
        self._is_without_key = is_without_key

    def allows(self, permission: Permission, documents: Sequence[PolicyDocument] | None = None) -> bool:
        """Return whether a permission is allowed, by these policies or by others."""
        chosen = self.documents if documents is None else documents
        return PolicyAuthorizer({permission.access_key: chosen}, self._is_without_key)(permission)

    def rights(self) -> Iterator[Right]:
        """Yield every right."""
        for place, statement in self._statements():
            for action in listed(statement["Action"]):
                for resource in listed(statement["Resource"]):
                    yield Right(place, action, resource)

    def users_of(self, right: Right, used: Iterable[Permission]) -> Iterator[Permission]:
        """Yield the permissions that are allowed by this right alone."""
        without = self._without_right(right)
        for permission in used:
            is_named = matches_pattern(permission.action, right.action, ignore_case=True)
            if is_named and self.allows(permission) and not self.allows(permission, without):
                yield permission

    def restrictions(self) -> Iterator[Restriction]:
        """Yield every condition, and every literal part of a resource before a wildcard."""
        for place, statement in self._statements():
            for operator, keys in statement.get("Condition", {}).items():
                for key in keys:
                    rest = {name: each for name, each in keys.items() if name != key}
                    condition = {**statement["Condition"], operator: rest}
                    changed = {**statement, "Condition": {name: each for name, each in condition.items() if each}}
                    yield Restriction(place, f"{operator} {key}", self._replaced(place, [changed]))
            for resource in listed(statement["Resource"]):
                for widened, part in widened_patterns(resource):
                    others = [each for each in listed(statement["Resource"]) if each != resource]
                    changed = {**statement, "Resource": [*others, widened]}
                    yield Restriction(place, f"{part!r} in {resource}", self._replaced(place, [changed]))

    def refused_neighbours(self, used: Iterable[Permission]) -> Sequence[Permission]:
        """Return what is refused of the permissions that differ from an allowed one in a condition key or a name."""
        return [each for permission in used if self.allows(permission) for each in self._refused(permission)]

    def _refused(self, permission: Permission) -> Iterator[Permission]:
        for other in _neighbours(permission):
            # What nothing is known of is no call of ours.
            with suppress(PolicyError):
                if not self.allows(other):
                    yield other

    def refused_by(self, restriction: Restriction, refused: Iterable[Permission]) -> Permission | None:
        """Return one of the permissions that are refused, which is refused because of a restriction alone."""
        number, position = restriction.place
        actions = listed(self.documents[number]["Statement"][position]["Action"])
        for permission in refused:
            if not any(matches_pattern(permission.action, each, ignore_case=True) for each in actions):
                continue
            with suppress(PolicyError):
                if self.allows(permission, restriction.without):
                    return permission
        return None

    def _statements(self) -> Iterator[tuple[tuple[int, int], Mapping[str, Any]]]:
        for number, document in enumerate(self.documents):
            for position, statement in enumerate(document["Statement"]):
                yield (number, position), statement

    def _without_right(self, right: Right) -> Sequence[PolicyDocument]:
        number, position = right.place
        statement = self.documents[number]["Statement"][position]
        actions = [each for each in listed(statement["Action"]) if each != right.action]
        resources = [each for each in listed(statement["Resource"]) if each != right.resource]
        parts = [{**statement, "Action": actions}, {**statement, "Action": right.action, "Resource": resources}]
        return self._replaced(right.place, [each for each in parts if each["Action"] and each["Resource"]])

    def _replaced(self, place: tuple[int, int], statements: Sequence[Mapping[str, Any]]) -> Sequence[PolicyDocument]:
        number, position = place
        document = self.documents[number]["Statement"]
        changed = {"Statement": [*document[:position], *statements, *document[position + 1 :]]}
        return [*self.documents[:number], changed, *self.documents[number + 1 :]]


def widened_patterns(pattern: str) -> Iterator[tuple[str, str]]:
    """Yield a resource pattern with one literal part before a wildcard replaced by a wildcard, and that part.

    A component of an ARN that is a wildcard as a whole has no such part.
    """
    components = pattern.split(":", 5)
    for position, component in enumerate(components):
        for found in re.finditer(r"[^*?/:]+[/:]?(?=[*?])", component):
            widened = component[: found.start()] + "*" + component[found.end() :]
            yield ":".join([*components[:position], widened, *components[position + 1 :]]), found[0]


def _neighbours(permission: Permission) -> Iterator[Permission]:
    """Yield permissions that differ in one condition key, or in one part of the resource."""
    for key, value in permission.context.items():
        others = _OTHER_SETS if isinstance(value, tuple) else _OTHERS
        for other in others:
            if other != value:
                yield replace(permission, context={**permission.context, key: other})
    resource = permission.resource
    for found in re.finditer(r"[^:/]+", resource):
        for other in (f"x{found[0]}", f"{found[0]}x", "other"):
            yield replace(permission, resource=resource[: found.start()] + other + resource[found.end() :])
