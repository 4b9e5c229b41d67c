"""The pace of RunTask: below what RunTask and StopTask share, so that stops always find a full bucket.

ECS takes 100 of both at once and 40 per second ("Request throttling for the Amazon ECS API").
"""

import time
from collections.abc import Callable

LAUNCHERS = 24
"""Containers of launch_attempt at once: the MaximumConcurrency of its queue in template.yaml."""
LAUNCHES_PER_SECOND = 38.0
"""Of all of them together."""
_YIELD_SECONDS = 3.0


class RateLimiter:
    """Keeps the launches of one container apart; after one that ECS throttled, a little longer: stops go first."""

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Begin; `now` and `sleep` are in seconds."""
        self._now = now
        self._sleep = sleep
        self._next_at = 0.0

    def wait(self) -> None:
        """Wait for this container's next turn."""
        delay = self._next_at - self._now()
        if delay > 0:
            self._sleep(delay)
        self._next_at = self._now() + LAUNCHERS / LAUNCHES_PER_SECOND

    def give_way(self) -> None:
        """Leave out some turns: ECS throttles."""
        self._next_at = self._now() + _YIELD_SECONDS
