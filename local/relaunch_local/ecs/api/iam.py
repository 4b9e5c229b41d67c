"""Evaluates IAM policies: allow and deny, wildcards, string, boolean and ARN condition operators."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from relaunch_local.ecs.engine.authorization import Permission

PolicyDocument = Mapping[str, Any]
PoliciesOf = Callable[[str], Sequence[PolicyDocument] | None]
"""Returns the policies of an access key, or None if the key is unknown."""

_EXACT = {"StringEquals"}
_BOOL = {"Bool"}
_LIKE = {"StringLike", "ArnEquals", "ArnLike"}


class PolicyAuthorizer:
    """Allows what a policy of the caller allows and none denies; an unknown caller is denied everything."""

    def __init__(self, policies: Mapping[str, Sequence[PolicyDocument]] | PoliciesOf) -> None:
        """Use these policies by access key, or a function that returns them."""
        self._policies_of: PoliciesOf = policies if callable(policies) else policies.get

    def __call__(self, permission: Permission) -> bool:
        """Return whether the caller has the permission."""
        statements = [
            statement
            for document in self._policies_of(permission.access_key) or ()
            for statement in _list(document.get("Statement", ()))
            if _applies(statement, permission)
        ]
        effects = {statement["Effect"] for statement in statements}
        return "Allow" in effects and "Deny" not in effects


def _applies(statement: Mapping[str, Any], permission: Permission) -> bool:
    return (
        _selects(statement, "Action", permission.action, ignore_case=True)
        and _selects(statement, "Resource", permission.resource)
        and all(
            _holds(operator, expected, permission.context)
            for operator, expected in statement.get("Condition", {}).items()
        )
    )


def _selects(statement: Mapping[str, Any], member: str, value: str, *, ignore_case: bool = False) -> bool:
    if f"Not{member}" in statement:
        return not _matches_any(_list(statement[f"Not{member}"]), value, ignore_case=ignore_case)
    return _matches_any(_list(statement.get(member, ())), value, ignore_case=ignore_case)


def _holds(operator: str, expected: Mapping[str, Any], context: Mapping[str, str]) -> bool:
    base, if_exists = operator.removesuffix("IfExists"), operator.endswith("IfExists")
    if base not in _EXACT | _BOOL | _LIKE:
        raise ValueError(f"the simulator does not evaluate the condition operator {operator}")
    for key, values in expected.items():
        actual = context.get(key)
        satisfied = if_exists if actual is None else _is_satisfied(base, _list(values), actual)
        if not satisfied:
            return False
    return True


def _is_satisfied(operator: str, values: Sequence[Any], actual: str) -> bool:
    if operator in _BOOL:
        return actual in [str(value).lower() for value in values]
    return actual in values if operator in _EXACT else _matches_any(values, actual)


def _matches_any(patterns: Iterable[str], value: str, *, ignore_case: bool = False) -> bool:
    return any(_compiled(pattern, ignore_case).fullmatch(value) for pattern in patterns)


@lru_cache(maxsize=1_024)
def _compiled(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    text = "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in pattern)
    return re.compile(text, re.IGNORECASE if ignore_case else 0)


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]
