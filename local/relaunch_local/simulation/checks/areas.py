"""Which use cases and effects a run enters, and which of them meet a fault between their steps."""

import importlib
import inspect
import pkgutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from types import ModuleType
from typing import Any, get_args
from unittest import mock

from relaunch import entrypoints, usecases
from relaunch.core.jobs.effects import Effect
from relaunch.core.machines.machine import MachineEffect
from relaunch.ports import TransientError
from relaunch.usecases.advance_job import JobLifecycle
from relaunch.usecases.advance_machine import MachineLifecycle
from relaunch_local.simulation.aws.runtime import Invocation, KilledError, Runtime
from relaunch_local.simulation.chance import Chance

_MODULES = ("relaunch.", "relaunch_local.")
LEAST_DISTURBED = 20
WHY_NOT_ENTERED: Mapping[str, str] = {
    "keep_images.keep_images": "it is due once a week, and seeds end before that",
    "give_up_task.give_up_task": "a person's command alone calls it, and no seed has a pod out of reach for good",
    "submit_job.submit_direct": "the loads of `make load` call it; functions call `submit_request`, which it calls",
    "plan_jobs.with_fit": "the command alone asks a cluster for its nodes, with the kubeconfig of its user",
}
"""Why no seed enters some use cases."""
_MORE_FREQUENT: Mapping[str, float] = {
    "AbandonMachine": 5.0,
    # Of one event in three it makes one call, of the others none.
    "complete_event.complete_event": 10.0,
    "dead_letters.redrive_dead_letter": 5.0,
    "follow_market.gives_spot_back": 5.0,
}
"""How much more frequent faults have to be in what few seeds enter."""
_BETWEEN_STEPS = ("call-", "function-")


def _find_use_cases() -> dict[str, Callable[..., Any]]:
    # Whoever calls them must be there before a run: a module that is imported during one would keep what counts them.
    list(_import_all(entrypoints))
    return {
        f"{module.__name__.rpartition('.')[2]}.{name}": value
        for module in _import_all(usecases)
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }


def _import_all(package: ModuleType) -> Iterator[ModuleType]:
    return (
        importlib.import_module(f"{package.__name__}.{each.name}") for each in pkgutil.iter_modules(package.__path__)
    )


# At once, before any test replaces one of them.
_USE_CASES = _find_use_cases()


def use_cases() -> Mapping[str, Callable[..., Any]]:
    """Return the public functions of the use cases, by module and name."""
    return _USE_CASES


def effects() -> tuple[str, ...]:
    """Return the names of all effects: those of jobs, then those of machines."""
    return tuple(each.__name__ for each in (*get_args(Effect), *get_args(MachineEffect)))


@dataclass(frozen=True, slots=True)
class SeedAreas:
    """The use cases and effects that occurred in one seed, those that made a call, and those that met a fault."""

    entered: frozenset[str] = frozenset()
    stepped: frozenset[str] = frozenset()
    disturbed: frozenset[str] = frozenset()


@dataclass
class AreaCounts:
    """In how many seeds each use case and each effect occurred, made a call, and met a fault between its steps."""

    entered: Counter[str] = field(default_factory=Counter)
    stepped: Counter[str] = field(default_factory=Counter)
    disturbed: Counter[str] = field(default_factory=Counter)

    def add(self, seed: SeedAreas) -> None:
        """Count a seed."""
        self.entered.update(seed.entered)
        self.stepped.update(seed.stepped)
        self.disturbed.update(seed.disturbed)

    def too_rare(self, seeds: int) -> list[str]:
        """Return what occurred in fewer than 1 % of the seeds, or with a fault in fewer than 20."""
        names = [name for name in (*use_cases(), *effects()) if name not in WHY_NOT_ENTERED]
        return [name for name in names if self.entered[name] * 100 < seeds or self._is_calm(name)]

    def _is_calm(self, name: str) -> bool:
        return self.stepped[name] > 0 and self.disturbed[name] < LEAST_DISTURBED

    def to_json(self) -> dict[str, dict[str, int]]:
        """Return the counts as JSON values."""
        named = {"seeds": self.entered, "with_calls": self.stepped, "with_a_fault": self.disturbed}
        return {name: dict(sorted(counts.items())) for name, counts in named.items()}


class Areas:
    """What one run entered.

    A fault is between the steps of a use case if it is one of the same function's: a call that failed, or was answered
    late, a stall, a time-out, the end of its process; and it came after the use case began and before it returned.
    """

    def __init__(self, runtime: Runtime, chance: Chance) -> None:
        """Count nothing yet."""
        self.entered: set[str] = set()
        self.stepped: set[str] = set()
        """What others could run in between of: it made a call."""
        self.disturbed: set[str] = set()
        self._runtime = runtime
        self._open: dict[Invocation, list[str]] = {}
        self._chance = chance
        self._intensity = chance.intensity
        self._rare_open = Counter[str]()
        """How often each of the rare ones is entered just now, by any function."""
        chance.on_strike = self._struck

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Count what is entered meanwhile: in every module that imported them, use cases are replaced for that time."""
        functions = {id(function): (name, function) for name, function in use_cases().items()}
        with ExitStack() as stack:
            for module in [each for name, each in sys.modules.items() if name.startswith(_MODULES)]:
                for name, value in list(vars(module).items()):
                    if id(value) in functions:
                        stack.enter_context(mock.patch.object(module, name, self._counted(*functions[id(value)])))
            for lifecycle in (JobLifecycle, MachineLifecycle):
                stack.enter_context(mock.patch.object(lifecycle, "perform", self._counted_effect(lifecycle.perform)))
            yield

    def result(self) -> SeedAreas:
        """Return what was entered."""
        return SeedAreas(frozenset(self.entered), frozenset(self.stepped), frozenset(self.disturbed))

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def counted(*arguments: Any, **named: Any) -> Any:
            return self._enter(name, lambda: function(*arguments, **named))

        return counted

    def _counted_effect(self, perform: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(perform)
        def counted(lifecycle: Any, item: Any, effect: Any) -> Any:
            return self._enter(type(effect).__name__, lambda: perform(lifecycle, item, effect))

        return counted

    def _enter(self, name: str, body: Callable[[], Any]) -> Any:
        self.entered.add(name)
        invocation = self._runtime.current
        if invocation is None:
            return body()
        within = self._open.setdefault(invocation, [])
        within.append(name)
        begun_at = self._runtime.steps
        self._rare_changed(name, 1)
        try:
            return body()
        except (KilledError, TransientError):
            self.disturbed.add(name)
            raise
        finally:
            self._rare_changed(name, -1)
            if self._runtime.steps != begun_at:
                self.stepped.add(name)
            within.remove(name)
            if not within:
                del self._open[invocation]

    def _rare_changed(self, name: str, by: int) -> None:
        if name in _MORE_FREQUENT:
            self._rare_open[name] += by
            factors = (factor for each, factor in _MORE_FREQUENT.items() if self._rare_open[each])
            self._chance.intensity = self._intensity * max(factors, default=1.0)

    def _struck(self, kind: str) -> None:
        invocation = self._runtime.current
        if invocation is not None and kind.startswith(_BETWEEN_STEPS):
            self.disturbed.update(self._open.get(invocation, ()))
