"""A virtual clock and a wall clock with timers that fire in a fixed order."""

import heapq
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""The default start of a virtual clock."""


@dataclass(slots=True, eq=False)
class Timer:
    """A scheduled call that can be cancelled until it is made."""

    due_at: datetime
    action: Callable[[], None] | None

    def cancel(self) -> None:
        """Cancel the call; does nothing if it was cancelled or made before."""
        self.action = None


class Clock:
    """A virtual clock: time passes only when it is advanced; timers due at the same time fire in creation order."""

    def __init__(self, start: datetime = EPOCH, *, speed: float = 1.0) -> None:
        """Start at an aware datetime; `speed` divides every delay."""
        self.lock = threading.RLock()
        self._now = start
        self.speed = speed
        """The factor that delays are divided by."""
        self._timers: list[tuple[datetime, int, Timer]] = []
        self._sequence = 0

    def now(self) -> datetime:
        """Return the current time as an aware datetime in UTC."""
        return self._now

    def call_later(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Call `action` once, in `seconds` divided by the speed."""
        timer = Timer(self._now + timedelta(seconds=max(0.0, seconds) / self.speed), action)
        self._sequence += 1
        heapq.heappush(self._timers, (timer.due_at, self._sequence, timer))
        return timer

    def next_due_at(self) -> datetime | None:
        """Return when the next timer fires, or None if there is none."""
        while self._timers and self._timers[0][2].action is None:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def step(self, limit: datetime | None = None) -> bool:
        """Advance to the next timer and fire it; return False if there is none up to `limit`."""
        due_at = self.next_due_at()
        if due_at is None or (limit is not None and due_at > limit):
            return False
        timer = heapq.heappop(self._timers)[2]
        self._now = max(self._now, due_at)
        action, timer.action = timer.action, None
        if action is not None:
            action()
        return True

    def advance_to(self, time: datetime) -> None:
        """Advance to `time` and fire the timers due by then."""
        while self.step(time):
            pass
        self._now = max(self._now, time)

    def advance(self, seconds: float) -> None:
        """Advance by this many seconds and fire the timers due by then."""
        self.advance_to(self._now + timedelta(seconds=seconds))

    def run_until(self, condition: Callable[[], bool], limit_seconds: float = 86_400.0) -> bool:
        """Fire timers one by one until the condition is true; return False if it did not become true in time."""
        limit = self._now + timedelta(seconds=limit_seconds)
        while not condition():
            if not self.step(limit):
                return condition()
        return True

    def synchronize(self) -> None:
        """Advance to real time; a virtual clock does nothing."""


class WallClock(Clock):
    """A clock that a thread advances in real time; `speed` divides delays, not timestamps."""

    def __init__(self, *, speed: float = 1.0) -> None:
        """Start at the current time; call `start` to let timers fire."""
        super().__init__(datetime.now(UTC), speed=speed)
        self._wake = threading.Condition(self.lock)
        self._running = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._running = True
        self._thread = threading.Thread(target=self._drive, name="ecs-simulator-clock", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait until it has ended."""
        with self._wake:
            self._running = False
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join()

    def call_later(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Call `action` once, in `seconds` divided by the speed."""
        with self._wake:
            self._update_now()
            timer = super().call_later(seconds, action)
            self._wake.notify_all()
            return timer

    def _update_now(self) -> None:
        """Advance `now` without firing timers, so that a delay counts from the call that asked for it."""
        due_at = self.next_due_at()
        real_time = datetime.now(UTC)
        self._now = max(self._now, real_time if due_at is None else min(real_time, due_at))

    def synchronize(self) -> None:
        """Advance to real time and fire the timers due by now."""
        self.advance_to(datetime.now(UTC))

    def _drive(self) -> None:
        with self._wake:
            while self._running:
                self.synchronize()
                due_at = self.next_due_at()
                self._wake.wait(None if due_at is None else max(0.0, (due_at - datetime.now(UTC)).total_seconds()))
