"""Evaluates identity-based policies: what no statement allows is denied, and what one denies is denied.

Source: "Policy evaluation logic" in the IAM User Guide, without resource-based policies, permissions boundaries and
organizations, which no role here has.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from relaunch_local.iam.conditions import PolicyError, matches_arn, matches_pattern, parse_operator
from relaunch_local.iam.permission import ContextValue, Permission

PolicyDocument = Mapping[str, Any]
PoliciesOf = Callable[[str], Sequence[PolicyDocument] | None]
"""Returns the policies of an access key, or None if the key is unknown."""
IsWithoutKey = Callable[[str, str, str], bool]
"""Returns whether an action on a resource has no value for a condition key."""

_ELEMENTS = {"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition"}
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_ESCAPES = {"*", "?", "$"}


class PolicyAuthorizer:
    """Allows what a policy of the caller allows and none denies; an unknown caller is denied everything."""

    def __init__(
        self,
        policies: Mapping[str, Sequence[PolicyDocument]] | PoliciesOf,
        is_without_key: IsWithoutKey = lambda _action, _resource, _key: False,
    ) -> None:
        """Use these policies by access key, or a function that returns them.

        A condition on a key that the permission does not mention is an error, unless `is_without_key` says that the
        action has no value for it.
        """
        self._policies_of: PoliciesOf = policies if callable(policies) else policies.get
        self._is_without_key = is_without_key

    def __call__(self, permission: Permission) -> bool:
        """Return whether the caller has the permission.

        Raises:
            PolicyError: a statement about this action and resource cannot be evaluated.
        """
        effects = {
            statement["Effect"]
            for document in self._policies_of(permission.access_key) or ()
            for statement in statements_of(document)
            if self._applies(statement, permission)
        }
        return "Allow" in effects and "Deny" not in effects

    def _applies(self, statement: Mapping[str, Any], permission: Permission) -> bool:
        return (
            _selects(statement, "Action", permission, permission.action)
            and _selects(statement, "Resource", permission, permission.resource)
            and all(
                parse_operator(operator).holds(self._value(key, permission), _expected(values, permission))
                for operator, keys in statement.get("Condition", {}).items()
                for key, values in keys.items()
            )
        )

    def _value(self, key: str, permission: Permission) -> ContextValue:
        context = {name.casefold(): value for name, value in permission.context.items()}
        prefix, slash, _ = key.casefold().partition("/")
        # Names of condition keys are not case-sensitive.
        for name in (key.casefold(), prefix + slash):
            if name in context:
                return context[name]
        if self._is_without_key(permission.action, permission.resource, key):
            return None
        raise PolicyError(f"the value of {key} in {permission.action} on {permission.resource} is not known here")


def statements_of(document: PolicyDocument) -> Iterator[Mapping[str, Any]]:
    """Yield the statements of a policy.

    Raises:
        PolicyError: a statement contains an element that identity-based policies do not have.
    """
    for statement in listed(document.get("Statement", ())):
        if unknown := set(statement) - _ELEMENTS:
            raise PolicyError(f"identity-based policies have no element {', '.join(sorted(unknown))}")
        yield statement


def listed(value: Any) -> Sequence[Any]:
    """Return an element of a policy as a list: IAM takes a single value for one."""
    return value if isinstance(value, list | tuple) else [value]


def _selects(statement: Mapping[str, Any], element: str, permission: Permission, value: str) -> bool:
    is_excluding = f"Not{element}" in statement
    patterns = listed(statement.get(f"Not{element}" if is_excluding else element, ()))
    if element == "Action":
        return any(matches_pattern(value, each, ignore_case=True) for each in patterns) is not is_excluding
    matched = (_substitute(each, permission) for each in patterns)
    return any(each is not None and _names(each, value) for each in matched) is not is_excluding


def _names(pattern: str, resource: str) -> bool:
    # A call that names no resource is called on `*`, which no pattern but itself stands for.
    return pattern in ("*", resource) or matches_arn(resource, pattern)


def _expected(values: Any, permission: Permission) -> list[Any]:
    texts = (_substitute(each, permission) if isinstance(each, str) else each for each in listed(values))
    return [each for each in texts if each is not None]


def _substitute(text: str, permission: Permission) -> str | None:
    """Return a text with its policy variables replaced, None if the request has no value for one of them."""
    if "${" not in text:
        return text
    for name in _VARIABLE.findall(text):
        if name in _ESCAPES:
            raise PolicyError(f"the escape ${{{name}}} is not evaluated here")
        if name not in permission.context:
            raise PolicyError(f"what the policy variable {name} stands for is not known here")
        value = permission.context[name]
        if value is None:
            return None
        text = text.replace(f"${{{name}}}", value if isinstance(value, str) else ",".join(value))
    return text
