"""What all functions together know of the requests that set statuses of commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from relaunch.core.records import dataclass

if TYPE_CHECKING:
    from relaunch.core.notices.commit_status import CommitStatus, ShownChange
    from relaunch.core.notices.status_budget import StatusBudget
    from relaunch.core.notices.status_report import StatusReport


@dataclass(frozen=True, slots=True)
class StoredBudget:
    """A budget, and the version on whose condition it is replaced; 0 if there is none yet."""

    budget: StatusBudget
    version: int = 0


@dataclass(frozen=True, slots=True)
class StoredShown:
    """What a context of a commit shows, None before the first status, and its version as above."""

    shown: ShownChange | None = None
    version: int = 0


class CommitStatusStore(Protocol):
    """The budget of the stack's token, and what became of its requests. All calls may raise TransientError."""

    def load_shown(self, status: CommitStatus) -> StoredShown:
        """Return what the context of a status shows, strongly consistent."""
        ...

    def save_shown(self, status: CommitStatus, stored: StoredShown) -> None:
        """Replace what a context shows, of this version.

        Raises:
            StaleWriteError: it was replaced since it was loaded.
        """

    def load_budget(self) -> StoredBudget:
        """Return the budget, strongly consistent; an empty one before the first request."""
        ...

    def save_budget(self, stored: StoredBudget) -> None:
        """Replace a budget of this version.

        Raises:
            StaleWriteError: it was replaced since it was loaded.
        """

    def load_report(self) -> StatusReport:
        """Return what became of the last requests; an empty report before the first one."""
        ...

    def save_report(self, report: StatusReport) -> None:
        """Replace the report of this version.

        Raises:
            StaleWriteError: it was replaced since it was loaded.
        """
