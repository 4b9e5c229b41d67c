"""Limits the rate of RunTask below the rate that it shares with StopTask, so that stops are not throttled.

RunTask and StopTask share a burst rate of 100 and a sustained rate of 40 per second ("Request throttling for the Amazon
ECS API").
"""

import time
from collections.abc import Callable

MAX_CONCURRENCY = 24
"""The MaximumConcurrency of the event source mapping of launch_attempt in template.yaml."""
LAUNCHES_PER_SECOND = 38.0
"""The rate of all concurrent function instances together."""
_BACKOFF_SECONDS = 3.0


class RateLimiter:
    """Spaces the launches of one function instance evenly."""

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Initialize; `now` and `sleep` are in seconds."""
        self._now = now
        self._sleep = sleep
        self._next_at = 0.0

    def wait(self) -> None:
        """Wait until the next launch is allowed."""
        delay = self._next_at - self._now()
        if delay > 0:
            self._sleep(delay)
        self._next_at = self._now() + MAX_CONCURRENCY / LAUNCHES_PER_SECOND

    def back_off(self) -> None:
        """Delay the next launch after ECS throttled one."""
        self._next_at = self._now() + _BACKOFF_SECONDS
