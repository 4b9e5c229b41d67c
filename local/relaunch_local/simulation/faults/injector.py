"""Injects one of several faults now and then until the faults stop."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from relaunch_local.ecs import Purchase
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.simulation.account import SimulatedAccount


class FaultInjector(ABC):
    """Draws a fault and the pause before the next one from a stream of its own."""

    stream: ClassVar[str]
    pause_seconds: ClassVar[tuple[float, float]]

    def __init__(self, account: SimulatedAccount, cancel: Callable[[], None]) -> None:
        """Schedule the first fault; `cancel` cancels a job, as people do when nothing seems to happen."""
        self._cancel = cancel
        self._account = account
        self._simulator = account.simulator
        self._random = account.chance.stream(self.stream)
        self._faults = self._weighted_faults()
        self._later()

    @abstractmethod
    def _weighted_faults(self) -> Mapping[str, tuple[int, Callable[[], str]]]:
        """Return weights, not probabilities, and functions that inject one fault and return its target, if any."""

    def _share_of(self, _kind: str) -> float:
        """Return how often a fault of this kind is injected when it was chosen: by default always."""
        return 2.0

    def _may_take(self, host: Instance) -> bool:
        """Return whether an instance may be chosen: where deadlines are close, on-demand instances stay."""
        is_spared = self._account.scenario.has_close_deadlines and host.purchase is Purchase.ON_DEMAND
        return not is_spared

    def _change_timing(self, **seconds: float) -> None:
        """Change some delays of the region, and leave those that other faults have changed."""
        self._simulator.set_timing(replace(self._simulator.region.timing, **seconds))

    def _later(self) -> None:
        self._account.clock.call_later(self._random.uniform(*self.pause_seconds), self._act)

    def _act(self) -> None:
        chance = self._account.chance
        if chance.is_calm:
            return
        names = list(self._faults)
        name = self._random.choices(names, [self._faults[each][0] for each in names])[0]
        if chance.strikes(name, self._share_of(name)):
            target = self._faults[name][1]()
            self._account.trace.line(f"FAULT {name}: {target or 'nothing there'}")
            if not target:
                chance.withdraw()
        self._later()
