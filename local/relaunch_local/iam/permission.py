"""The permissions that calls require."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

ContextValue = str | tuple[str, ...] | None
"""A value of a condition key, several of a multivalued one, or None where the request has none."""


@dataclass(frozen=True, slots=True)
class Permission:
    """A permission that a call requires."""

    access_key: str
    action: str
    """For example `ecs:RunTask`."""
    resource: str
    context: Mapping[str, ContextValue] = field(default_factory=dict)
    """Condition keys with their values; `aws:RequestTag/` stands for every tag that is not named."""


Authorize = Callable[[Permission], bool]
