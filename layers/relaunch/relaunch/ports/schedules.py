"""The schedules of EventBridge Scheduler that start jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from relaunch.core.triggers.schedules import FoundSchedule, Schedule


class Schedules(Protocol):
    """The schedules of the stack's group, which `apply` makes.

    Their calls raise TransientError when throttled, unreachable, or changed by others at the same time, else
    PermanentError.
    """

    @property
    def takes_schedules(self) -> bool:
        """Whether the stack has a group, and a queue that times are sent to."""
        ...

    def list_schedules(self) -> list[FoundSchedule]:
        """Return the schedules of the group."""
        ...

    def put_schedule(self, schedule: Schedule) -> None:
        """Create or replace a schedule, enabled, with the stack's queue as its target."""
        ...

    def remove_schedule(self, name: str) -> None:
        """Remove a schedule; no error if it does not exist."""
        ...
