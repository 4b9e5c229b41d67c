"""What the machines in memory have beyond the contract: writes that fail as planned, and machines shared with jobs."""

import pytest

from fakes.jobs import InMemoryJobs
from fakes.stored_machines import change, make_machine
from relaunch.core.machines.decision import MachineTotals
from relaunch.ports import TransientError
from relaunch_local.in_memory.machines import InMemoryMachines
from relaunch_local.in_memory.stores import InMemoryStores


@pytest.mark.parametrize("is_written", [False, True])
def test_a_write_fails_before_or_after_it_takes_effect(is_written: bool) -> None:
    machines = InMemoryMachines()
    machines.fail_next(TransientError("no answer"), after_effect=is_written)

    with pytest.raises(TransientError, match="no answer"):
        machines.save_machine(change(make_machine()))

    assert machines.load_totals() == MachineTotals(int(is_written), 400_000 * is_written)
    assert (machines.load_machine("m-1") is not None) == is_written


def test_the_machines_of_the_stores_are_those_of_their_jobs() -> None:
    machines = InMemoryMachines()
    stores = InMemoryStores(InMemoryJobs(machines))

    saved = machines.save_machine(change(make_machine()))

    assert stores.machines is machines
    assert machines.machine("m-1") == saved
