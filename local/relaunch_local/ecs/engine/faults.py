"""Faults injected into calls: an error before or after the call takes effect, throttling, a closed connection."""

from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum

from relaunch_local.ecs.errors import DroppedConnectionError, EcsError, throttled


class FaultMoment(StrEnum):
    """When a call fails."""

    BEFORE = "before"
    """The call has no effect and returns an error."""
    AFTER = "after"
    """The call takes effect but returns an error."""
    THROTTLE = "throttle"
    """The call has no effect and returns ThrottlingException."""


@dataclass(frozen=True, slots=True)
class Fault:
    """How a call fails."""

    moment: FaultMoment
    code: str = "ServerException"
    message: str = "Injected fault."
    drop_connection: bool = False
    """Whether the connection is closed without a response instead."""

    def error(self) -> Exception:
        """Return the exception for the caller."""
        if self.drop_connection:
            return DroppedConnectionError(self.message)
        return throttled() if self.moment is FaultMoment.THROTTLE else EcsError(self.code, self.message)


@dataclass(slots=True)
class Faults:
    """The faults of the next calls."""

    _planned: dict[str, list[Fault]] = field(default_factory=lambda: defaultdict(list))

    def fail_next(self, action: str, times: int, fault: Fault) -> None:
        """Make the next `times` calls of an action fail."""
        self._planned[action] += [fault] * times

    def take(self, action: str) -> Fault | None:
        """Remove and return the fault of this call, if any."""
        return self._planned[action].pop(0) if self._planned[action] else None
