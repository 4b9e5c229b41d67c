"""The EventBridge rules that send watched uploads to the stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from relaunch.core.triggers.upload_rules import FoundRule, UploadRule


class UploadRules(Protocol):
    """The rules that `apply` makes; others are never listed or changed.

    Their calls raise TransientError when throttled, unreachable, or changed by others at the same time, else
    PermanentError.
    """

    @property
    def name_prefix(self) -> str:
        """Return how the names of the stack's rules begin."""
        ...

    @property
    def takes_uploads(self) -> bool:
        """Whether the stack has a queue that uploads are sent to; without one no rule is of use."""
        ...

    def list_rules(self) -> list[FoundRule]:
        """Return the stack's rules."""
        ...

    def put_rule(self, rule: UploadRule) -> None:
        """Create or replace a rule, enabled, with the stack's queue as its target."""
        ...

    def remove_rule(self, name: str) -> None:
        """Remove a rule and its targets; no error if it does not exist."""
        ...
