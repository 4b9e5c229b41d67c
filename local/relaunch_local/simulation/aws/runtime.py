"""Functions as greenlets on the virtual clock: one runs at a time, and each call of a port lets others run."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from greenlet import getcurrent, greenlet

from relaunch_local.ecs import Clock
from relaunch_local.ecs.clock import Timer
from relaunch_local.simulation.aws.sqs import Message
from relaunch_local.simulation.chance import Chance

# Per step; a message takes ten to thirty steps.
KILL_PROBABILITY = 0.0025
MEMORY_KILL_PROBABILITY = 0.0005


class KilledError(BaseException):
    """The function's process was killed; nothing in it may catch this."""


@dataclass(eq=False)
class Invocation:
    """One invocation of a function.

    `messages` is its batch, those that were begun first; `current` is the index of the message being handled, `begun`
    how many were begun. `clock_offset` is the skew of its clock.
    `container` is its execution environment, where those are distinguished.
    """

    number: int
    function: str
    messages: list[Message] = field(default_factory=list)
    current: int = 0
    begun: int = 0
    lineage: dict[str, int] = field(default_factory=dict)
    clock_offset: timedelta = timedelta(0)
    container: int = 0
    began_at: datetime | None = None
    """When the current message was begun."""
    is_over: bool = False
    kill_reason: str = ""
    told: set[str] = field(default_factory=set)
    """The tasks and instances that RunTask and launches named in answers since the current message was begun."""
    shown: set[str] = field(default_factory=set)
    """The tasks and instances that ECS described since then."""
    refused: list[tuple[str, str, datetime]] = field(default_factory=list)
    """The job and the instance of each RunTask that was refused since then, and when; of each registration, neither."""
    launched_nothing: bool = False
    """Whether CreateFleet answered, since then, that it launched nothing."""
    failed_calls: int = 0
    """How many calls failed for good since then, or since its beginning."""
    uncounted: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The metrics, with their labels, of what it has saved since then and not counted."""
    durations: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)
    """From when until when the durations are that it may count."""
    thread: greenlet | None = None
    timer: Timer | None = None
    deadline_timer: Timer | None = None

    @property
    def has_failed(self) -> bool:
        """Whether it was killed, or a call failed for good since the current message was begun."""
        return bool(self.kill_reason or self.failed_calls)

    def begin(self, number: int) -> None:
        """Note that the message of this number is handled next: functions choose the order."""
        place = next(place for place in range(self.begun, len(self.messages)) if self.messages[place].number == number)
        self.messages[self.begun], self.messages[place] = self.messages[place], self.messages[self.begun]
        self.current, self.begun = self.begun, self.begun + 1
        self.told.clear()
        self.shown.clear()
        self.refused.clear()
        self.launched_nothing = False
        self.failed_calls = 0
        self.uncounted.clear()
        self.durations.clear()


@dataclass(slots=True)
class Runtime:
    """Runs functions, one at a time, in the order of the clock; created on the greenlet that drives the clock."""

    clock: Clock
    chance: Chance
    trace: Callable[[str], None]
    current: Invocation | None = None
    steps: int = 0
    is_killed_at: Callable[[str], bool] | None = None
    """Returns whether a function is killed at a step, which it is asked of each step."""
    _hub: greenlet = field(default_factory=getcurrent)

    def start(
        self, invocation: Invocation, body: Callable[[], Any], on_end: Callable[[Any, BaseException | None], None]
    ) -> None:
        """Run a function's body; `on_end` gets its return value or its exception."""

        def run() -> None:
            answer: Any = None
            error: BaseException | None = None
            try:
                answer = body()
            except KilledError as killed:
                error = killed
            except Exception as failed:  # noqa: BLE001 - Lambda reports whatever a function raises
                error = failed
            invocation.is_over = True
            for timer in (invocation.timer, invocation.deadline_timer):
                if timer is not None:
                    timer.cancel()
            on_end(answer, error)

        invocation.thread = greenlet(run, parent=self._hub)
        self._resume(invocation)

    def pause(self, seconds: float, doing: str) -> None:
        """Let others run for this long; the waiting function may be killed here. Does nothing outside of functions."""
        invocation = self.current
        if invocation is None:
            return
        self.steps += 1
        self._kill_by_chance(invocation, doing)
        invocation.timer = self.clock.call_later(seconds, lambda: self._resume(invocation))
        self._hub.switch()

    def kill(self, invocation: Invocation, how: str) -> None:
        """Kill a waiting function."""
        if not invocation.is_over:
            if invocation.timer is not None:
                invocation.timer.cancel()
            invocation.kill_reason = how
            self._resume(invocation)

    def kill_at_next_step(self, how: str) -> None:
        """Kill the running function when it next waits for something."""
        if self.current is not None:
            self.current.kill_reason = how

    def _kill_by_chance(self, invocation: Invocation, doing: str) -> None:
        site = invocation.function
        note = f"#{invocation.number} {doing}"
        if self.is_killed_at is not None and self.is_killed_at(f"{site}#{invocation.number}: {doing}"):
            invocation.kill_reason = "killed at this step"
        elif self.chance.strikes("function-killed", KILL_PROBABILITY, site=site, note=note):
            invocation.kill_reason = "killed"
        elif self.chance.strikes("function-out-of-memory", MEMORY_KILL_PROBABILITY, site=site, note=note):
            invocation.kill_reason = "out of memory"

    def lineage(self) -> Mapping[str, int]:
        """Return the functions that led to the running one, none outside of functions."""
        return self.current.lineage if self.current is not None else {}

    def began_at(self) -> datetime | None:
        """Return when the running function began its message, None outside of functions."""
        return self.current.began_at if self.current is not None else None

    def _resume(self, invocation: Invocation) -> None:
        thread = invocation.thread
        if invocation.is_over or thread is None:
            return
        previous, self.current = self.current, invocation
        try:
            if invocation.kill_reason:
                self.trace(f"{invocation.function}#{invocation.number} is killed: {invocation.kill_reason}")
                thread.throw(KilledError(invocation.kill_reason))
            else:
                thread.switch()
        finally:
            self.current = previous


@dataclass(frozen=True, slots=True)
class FunctionClock:
    """The clock of the running function, which is skewed."""

    runtime: Runtime

    def now(self) -> datetime:
        """Return the time as this function sees it."""
        invocation = self.runtime.current
        now = self.runtime.clock.now()
        return now if invocation is None else now + invocation.clock_offset
