"""Transactions on one item at the same time: DynamoDB refuses the second, and the adapter tries it again.

Source: "Transaction conflict handling in DynamoDB" (Amazon DynamoDB Developer Guide). How long a transaction holds its
items is not published: HELD_SECONDS is an assumption.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

from relaunch.core.lifecycle.decision import Decision
from relaunch.core.machines.decision import MachineDecision
from relaunch.core.machines.limits import change_of
from relaunch.ports import MachineTakenError, StaleWriteError, TransientError
from relaunch_local.simulation.aws.runtime import Runtime

T = TypeVar("T")

HELD_SECONDS = 0.01
COUNTERS = "counters of machines"
STACK = "slots of the stack"
BUDGET = "budget of the stack"
# As in adapters.aws.dynamodb.table.
_ATTEMPTS = 6
_FIRST_PAUSE_SECONDS = 0.02


class ConflictError(Exception):
    """Another transaction holds an item of this one."""


@dataclass(slots=True)
class Contention:
    """The items that transactions hold, and how often that and a changed version refused one."""

    runtime: Runtime
    refused: Counter[str] = field(default_factory=Counter)
    """By what was written: `conflict: …`; by the error of a condition: `stale: …`."""
    writes: Counter[str] = field(default_factory=Counter)
    """How often each of the items that all jobs share was written."""
    busiest: Counter[str] = field(default_factory=Counter)
    """The most writes of such an item in one second."""
    _free_at: dict[str, datetime] = field(default_factory=dict)
    _second: dict[str, tuple[int, int]] = field(default_factory=dict)

    def write(self, items: list[str], effect: Callable[[], T]) -> T:
        """Write items in one transaction, which holds them for a while.

        Raises:
            ConflictError: another transaction holds one of them.
        """
        now = self.runtime.clock.now()
        for item in items:
            if self._free_at.get(item, now) > now:
                self.refused[f"conflict: {_kind(item)}"] += 1
                raise ConflictError(item)
        try:
            answer = effect()
        except (StaleWriteError, MachineTakenError) as error:
            self.refused[f"stale: {type(error).__name__}"] += 1
            raise
        until = now + timedelta(seconds=HELD_SECONDS)
        for item in items:
            self._free_at[item] = until
            if item in (COUNTERS, STACK, BUDGET):
                self._count(item, int(now.timestamp()))
        return answer

    def retry(self, write: Callable[[], T]) -> T:
        """Write, again after a short pause while other transactions hold an item.

        Raises:
            TransientError: they did so too often.
        """
        for attempt in range(_ATTEMPTS):
            try:
                return write()
            except ConflictError as error:
                stream = self.runtime.chance.stream("conflict-pauses")
                self.runtime.pause(stream.uniform(0, _FIRST_PAUSE_SECONDS * 2**attempt), f"{error} is held by another")
        self.refused["given up for conflicts"] += 1
        raise TransientError(f"in conflict with other transactions {_ATTEMPTS} times")

    def _count(self, item: str, second: int) -> None:
        last, count = self._second.get(item, (second, 0))
        count = count + 1 if last == second else 1
        self._second[item] = (second, count)
        self.writes[item] += 1
        self.busiest[item] = max(self.busiest[item], count)


@dataclass(frozen=True, slots=True)
class ContendedJobs:
    """A store of jobs whose transactions conflict."""

    _store: Any
    _contention: Contention

    def __getattr__(self, name: str) -> Any:
        """Delegate everything else."""
        return getattr(self._store, name)

    def save_job(self, decision: Decision) -> Any:
        """Save a job."""
        return self._contention.write(list(_items_of(decision)), lambda: self._store.save_job(decision))


@dataclass(frozen=True, slots=True)
class ContendedMachines:
    """A store of machines whose transactions conflict."""

    _store: Any
    _contention: Contention

    def __getattr__(self, name: str) -> Any:
        """Delegate everything else."""
        return getattr(self._store, name)

    def save_machine(self, decision: MachineDecision) -> Any:
        """Save a machine."""
        items = list(_items_of_machines([decision]))
        return self._contention.write(items, lambda: self._store.save_machine(decision))


def _items_of(decision: Decision) -> Iterator[str]:
    """Yield the items that other transactions may write as well."""
    yield f"job {decision.job.job_id}"
    if decision.take_slot_limits is not None or decision.release_slot:
        yield STACK
        yield f"slots {decision.job.definition.name}"
    yield from {BUDGET if each.scope == "stack" else f"budget {each.scope}": None for each in decision.budgets}
    yield from _items_of_machines(decision.machines)


def _items_of_machines(decisions: Collection[MachineDecision]) -> Iterator[str]:
    for each in decisions:
        yield f"machine {each.machine.machine_id}"
    if decisions and change_of(decisions).is_needed:
        yield COUNTERS


def _kind(item: str) -> str:
    return item if item in (COUNTERS, STACK, BUDGET) else item.partition(" ")[0]
