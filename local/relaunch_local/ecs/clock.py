"""Time: timers that fire in a fixed order, on a virtual clock or along the wall clock."""

import heapq
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""Where a virtual clock starts unless told otherwise."""


class Timer:
    """A call that is due at a moment and can be cancelled until then."""

    __slots__ = ("action", "due_at")

    def __init__(self, due_at: datetime, action: Callable[[], None]) -> None:
        """Remember what is to be called, and when."""
        self.due_at = due_at
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """Forget the call; cancelling twice, or after it was made, does nothing."""
        self.action = None


class Clock:
    """A virtual clock: time moves only when it is advanced, and timers due at the same moment fire in their order."""

    def __init__(self, start: datetime = EPOCH, *, speed: float = 1.0) -> None:
        """Start at an aware moment; `speed` divides every delay that is asked for."""
        self.lock = threading.RLock()
        self._now = start
        self._speed = speed
        self._timers: list[tuple[datetime, int, Timer]] = []
        self._sequence = 0

    @property
    def speed(self) -> float:
        """By how much delays are shortened."""
        return self._speed

    def now(self) -> datetime:
        """The present moment, aware, in UTC."""
        return self._now

    def call_later(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Call `action` once, `seconds` (divided by the speed) from now."""
        timer = Timer(self._now + timedelta(seconds=max(0.0, seconds) / self._speed), action)
        self._sequence += 1
        heapq.heappush(self._timers, (timer.due_at, self._sequence, timer))
        return timer

    def next_due_at(self) -> datetime | None:
        """When the next timer fires, or None when there is none."""
        while self._timers and self._timers[0][2].action is None:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def step(self, limit: datetime | None = None) -> bool:
        """Move to the next timer and fire it; False when there is none up to `limit`."""
        due_at = self.next_due_at()
        if due_at is None or (limit is not None and due_at > limit):
            return False
        timer = heapq.heappop(self._timers)[2]
        self._now = max(self._now, due_at)
        action, timer.action = timer.action, None
        if action is not None:
            action()
        return True

    def advance_to(self, moment: datetime) -> None:
        """Fire everything due up to `moment`, then stand at it."""
        while self.step(moment):
            pass
        self._now = max(self._now, moment)

    def advance(self, seconds: float) -> None:
        """Move on by this many seconds, firing what falls due."""
        self.advance_to(self._now + timedelta(seconds=seconds))

    def run_until(self, condition: Callable[[], bool], limit_seconds: float = 86_400.0) -> bool:
        """Fire timers one by one until the condition holds; False when the limit or the last timer came first."""
        limit = self._now + timedelta(seconds=limit_seconds)
        while not condition():
            if not self.step(limit):
                return condition()
        return True

    def synchronize(self) -> None:
        """Catch up with the world; a virtual clock has nothing to catch up with."""


class WallClock(Clock):
    """A clock that a thread drives along real time; `speed` shortens the simulated delays, not the time stamps."""

    def __init__(self, *, speed: float = 1.0) -> None:
        """Start at the present moment; call `start` to let time pass."""
        super().__init__(datetime.now(UTC), speed=speed)
        self._wake = threading.Condition(self.lock)
        self._running = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Let time pass."""
        self._running = True
        self._thread = threading.Thread(target=self._drive, name="ecs-simulator-clock", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let time stand still, and wait until the driver has ended."""
        with self._wake:
            self._running = False
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join()

    def call_later(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Call `action` once, `seconds` divided by the speed from now."""
        with self._wake:
            self.synchronize_now_only()
            timer = super().call_later(seconds, action)
            self._wake.notify_all()
            return timer

    def synchronize_now_only(self) -> None:
        """Take the present moment over without firing timers, so that a delay counts from when it was asked for."""
        due_at = self.next_due_at()
        present = datetime.now(UTC)
        self._now = max(self._now, present if due_at is None else min(present, due_at))

    def synchronize(self) -> None:
        """Fire everything that is due by now."""
        self.advance_to(datetime.now(UTC))

    def _drive(self) -> None:
        with self._wake:
            while self._running:
                self.synchronize()
                due_at = self.next_due_at()
                self._wake.wait(None if due_at is None else max(0.0, (due_at - datetime.now(UTC)).total_seconds()))
