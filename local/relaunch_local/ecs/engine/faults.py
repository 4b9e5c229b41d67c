"""Calls that fail on demand: before they took effect, after it, throttled, or with a broken connection."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from relaunch_local.ecs.errors import DroppedConnectionError, EcsError, throttled


class FaultMoment(StrEnum):
    """When a call fails."""

    BEFORE = "before"
    """Nothing happens, and an error is answered."""
    AFTER = "after"
    """Everything happens, and an error is answered all the same."""
    THROTTLE = "throttle"
    """Nothing happens, and ThrottlingException is answered."""


@dataclass(frozen=True, slots=True)
class Fault:
    """How a call fails."""

    moment: FaultMoment
    code: str = "ServerException"
    message: str = "Injected fault."
    drop_connection: bool = False
    """Answer nothing at all, so that the caller sees a broken connection instead of the error."""

    def error(self) -> Exception:
        """What the caller meets."""
        if self.drop_connection:
            return DroppedConnectionError(self.message)
        return throttled() if self.moment is FaultMoment.THROTTLE else EcsError(self.code, self.message)


@dataclass(slots=True)
class Faults:
    """The faults that are still to come."""

    decide: Callable[[str], Fault | None] | None = None
    """Asked for every call that no planned fault takes; lets a seeded scheduler decide."""
    _planned: dict[str, list[Fault]] = field(default_factory=dict)

    def fail_next(self, action: str, times: int, fault: Fault) -> None:
        """Let the next `times` calls of an action fail."""
        self._planned.setdefault(action, []).extend([fault] * times)

    def take(self, action: str) -> Fault | None:
        """The fault of this call, which is then used up."""
        planned = self._planned.get(action)
        if planned:
            return planned.pop(0)
        return self.decide(action) if self.decide is not None else None
