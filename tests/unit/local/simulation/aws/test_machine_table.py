"""Machines in the simulated table: an index that lags, and calls that the SDK repeats."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import make_job
from fakes.stored_machines import change, make_claim, make_gone, make_machine
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.machines.decision import MachineTotals
from relaunch.core.machines.machine import Machine
from relaunch_local.ecs import Clock
from relaunch_local.in_memory.stores import InMemoryStores
from relaunch_local.simulation.aws.calls import Calls
from relaunch_local.simulation.aws.machine_table import CalledMachines, MachineIndexes
from relaunch_local.simulation.aws.runtime import Runtime
from relaunch_local.simulation.aws.table import CalledJobs, Indexes
from relaunch_local.simulation.chance import Chance


@dataclass(slots=True)
class RepeatedCalls(Calls):
    """Calls that the SDK sends twice."""

    def perform(self, _service: str, _action: str, effect: Callable[[], Any], *_how: object) -> Any:
        effect()
        return effect()


class Table:
    """The stores of the simulation over an empty table."""

    def __init__(self) -> None:
        self.clock = Clock()
        chance = Chance(7, self.clock.now)
        calls = RepeatedCalls(Runtime(self.clock, chance, lambda _line: None), chance)
        self.stores = InMemoryStores()
        self.indexes = MachineIndexes(self.clock, chance)
        self.machines = CalledMachines(self.stores.machines, calls, self.indexes, self.indexes.note)
        jobs: Any = (self.stores.jobs, calls, Indexes(self.clock, chance), lambda *_: None, lambda *_: None)
        self.jobs = CalledJobs(
            *jobs, self.indexes.note, _events_may_fail=True, _on_selection=lambda _job, _selection: None
        )

    def make(self, name: str = "m-1", **fields: Any) -> Machine:
        now = self.clock.now()
        return make_machine(name, **{"created_at": now, "wake_at": now, **fields})


@pytest.fixture
def table() -> Table:
    return Table()


def test_a_save_that_the_sdk_repeats_is_counted_once(table: Table) -> None:
    saved = table.machines.save_machine(change(table.make()))

    assert table.machines.load_machine("m-1") == saved
    assert table.machines.load_totals() == MachineTotals(1, 400_000)


def test_a_machine_is_found_once_the_index_has_caught_up(table: Table) -> None:
    machine = table.machines.save_machine(change(table.make()))
    assert table.machines.load_due(table.clock.now(), 9) == table.machines.load_living(9) == []
    assert table.indexes.next_due_at() == machine.wake_at

    table.clock.advance(60)
    assert table.machines.load_due(table.clock.now(), 9) == ["m-1"]
    assert table.machines.load_living(9) == table.machines.load_with_room(9) == ["m-1"]
    assert table.machines.load_living(0) == []

    table.machines.save_machine(change(make_gone(machine), machine))
    assert table.machines.load_living(9) == table.machines.load_with_room(9) == ["m-1"]
    table.clock.advance(60)
    assert table.machines.load_living(9) == table.machines.load_with_room(9) == []
    assert table.indexes.next_due_at() is None


def test_machines_are_found_in_their_order_and_only_when_they_are_due(table: Table) -> None:
    now = table.clock.now()
    for name, minutes in (("a", 3), ("b", 1), ("c", 2)):
        at = now + timedelta(minutes=minutes)
        table.machines.save_machine(change(table.make(name, created_at=at, wake_at=at)))
    table.clock.advance(120)

    assert table.machines.load_due(now + timedelta(minutes=2), 9) == ["b", "c"]
    assert table.machines.load_with_room(9) == ["b", "c", "a"]


def test_a_machine_that_is_saved_with_a_job_is_found_too(table: Table) -> None:
    assert table.jobs.create_job(make_job(), [])
    job = table.jobs.load_job(make_job().job_id)
    machine = table.make(claims=(make_claim(job.job_id),))

    table.jobs.save_job(Decision(job, machines=(change(machine),)))
    table.clock.advance(60)

    assert table.machines.load_machine("m-1") == replace(machine, version=1)
    assert table.machines.load_living(9) == ["m-1"]
    assert table.machines.load_totals() == MachineTotals(1, 400_000)
