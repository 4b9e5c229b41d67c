"""Functions as greenlets on the simulated clock: one runs at a time, and each call of a port lets the others on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from greenlet import getcurrent, greenlet

from relaunch_local.ecs import Clock
from relaunch_local.ecs.clock import Timer
from relaunch_local.simulation.aws.sqs import Message
from relaunch_local.simulation.faults.chance import Chance

# One fault in a few thousand steps; a message takes ten to thirty.
KILL_PROBABILITY = 0.0025
MEMORY_KILL_PROBABILITY = 0.0005


class KilledError(BaseException):
    """The function's process is gone: nothing in it may catch this."""


@dataclass(eq=False)
class Invocation:
    """One run of a function.

    `messages` are those of its batch, `current` the index of the one that it handles. `clock_offset` is how far this
    function's clock is off. `container` is where it runs, where containers are told apart.
    """

    number: int
    function: str
    messages: list[Message] = field(default_factory=list)
    current: int = 0
    lineage: dict[str, int] = field(default_factory=dict)
    clock_offset: timedelta = timedelta(0)
    deadline: datetime | None = None
    step: int = 0
    container: int = 0
    is_over: bool = False
    is_spared: bool = False
    doom: str = ""
    thread: greenlet | None = None
    timer: Timer | None = None
    deadline_timer: Timer | None = None

    def may_be_disturbed(self, *, wholly: bool) -> bool:
        """Tell whether another fault leaves its messages enough tries."""
        if self.is_spared:
            return False
        at_stake = self.messages[self.current :] if wholly else self.messages[self.current : self.current + 1]
        return all(message.may_be_disturbed for message in at_stake)

    def disturb(self, *, wholly: bool) -> None:
        """Note that this receive of its messages met a fault."""
        at_stake = self.messages[self.current :] if wholly else self.messages[self.current : self.current + 1]
        for message in at_stake:
            message.disturbed_receives.add(message.receives)


class Runtime:
    """Runs functions, one at a time, in the order the clock says."""

    def __init__(self, clock: Clock, chance: Chance, trace: Callable[[str], None]) -> None:
        """Run nothing yet; must be made on the greenlet that drives the clock."""
        self.clock = clock
        self.chance = chance
        self.trace = trace
        self.current: Invocation | None = None
        self.steps = 0
        self.kill_at_step: int | None = None
        self.visited: list[str] = []
        self._hub = getcurrent()

    def start(
        self, invocation: Invocation, body: Callable[[], Any], on_end: Callable[[Any, BaseException | None], None]
    ) -> None:
        """Run a function's body; `on_end` gets its answer, or the exception it ended with."""

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
        """Let others run for so long; the function that waits may be killed here. Outside functions nothing happens."""
        invocation = self.current
        if invocation is None:
            return
        self.steps += 1
        invocation.step += 1
        if self.kill_at_step is not None:
            self.visited.append(f"{invocation.function}: {doing}")
        if self._is_doomed(invocation, doing):
            invocation.disturb(wholly=True)
        invocation.timer = self.clock.call_later(seconds, lambda: self._resume(invocation))
        self._hub.switch()

    def kill(self, invocation: Invocation, how: str) -> None:
        """End a function that waits, from outside."""
        if not invocation.is_over:
            if invocation.timer is not None:
                invocation.timer.cancel()
            invocation.doom = how
            self._resume(invocation)

    def _is_doomed(self, invocation: Invocation, doing: str) -> bool:
        if self.kill_at_step == self.steps:
            invocation.doom = "killed at this step"
        elif invocation.may_be_disturbed(wholly=True):
            site, note = invocation.function, f"#{invocation.number} {doing}"
            if self.chance.strikes("function-killed", KILL_PROBABILITY, site=site, note=note):
                invocation.doom = "killed"
            elif self.chance.strikes("function-out-of-memory", MEMORY_KILL_PROBABILITY, site=site, note=note):
                invocation.doom = "out of memory"
        return bool(invocation.doom)

    def _resume(self, invocation: Invocation) -> None:
        thread = invocation.thread
        if invocation.is_over or thread is None:
            return
        previous, self.current = self.current, invocation
        try:
            if invocation.doom:
                self.trace(f"{invocation.function}#{invocation.number} dies: {invocation.doom}")
                thread.throw(KilledError(invocation.doom))
            else:
                thread.switch()
        finally:
            self.current = previous
