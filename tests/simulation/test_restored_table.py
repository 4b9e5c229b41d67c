"""After point-in-time recovery the table is older than what lives, and nothing of that is ended."""

import copy
import copyreg
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import pytest

from relaunch_local.simulation import Options
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.aws.template import CLUSTER
from relaunch_local.simulation.run import SeedRun

STORES = ("jobs", "machines", "capacity", "maintenance")
# The table is that of this time, and is in place again after AWAY.
BACKED_UP = timedelta(minutes=20)
AWAY = timedelta(minutes=45)


def back_up(account: SimulatedAccount) -> Mapping[str, Any]:
    return {name: copy.deepcopy(vars(getattr(account.stores, name))) for name in STORES}


def restore(account: SimulatedAccount, backup: Mapping[str, Any]) -> None:
    """Put the table of the backup in place of the present one, with its indexes."""
    stores = account.stores
    for name, content in backup.items():
        vars(getattr(stores, name)).update(content)
    stores.jobs.machines = stores.machines
    for index in (account.indexes, account.machine_indexes):
        index._entries.clear()
    for record in stores.jobs._records.values():
        account.indexes.note(record.job)
    for machine in stores.machines._machines.values():
        account.machine_indexes.note(machine)


# The backup lacks the job and its machine; lacks the jobs, and has their machine; has the job, and not the attempt.
@pytest.mark.parametrize("seed", [7, 17, 19])
def test_what_lives_ends_by_itself_after_the_table_was_restored(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # copy knows no mapping that is read alone.
    monkeypatch.setitem(copyreg.dispatch_table, MappingProxyType, lambda each: (MappingProxyType, (dict(each),)))
    run = SeedRun(seed, Options(without_faults=True))
    account = run.account
    account.clock.advance_to(account.started_at + BACKED_UP)
    backup = back_up(account)
    account.clock.advance_to(account.clock.now() + AWAY)
    cluster = account.simulator.clusters.get(CLUSTER)
    living = [task for task in cluster.tasks.values() if task.instance is not None]
    assert living

    restore(account, backup)
    account.clock.advance_to(account.clock.now() + timedelta(hours=24))

    ended = {str(task.stop_code) for task in living if task.is_stopped}
    assert ended <= {"EssentialContainerExited"}, [task.stopped_reason for task in living]
    # What the table has goes on to its end.
    assert all(record.job.state.is_final for record in account.stores.jobs._records.values())
    assert account.stores.machines.load_totals().machines == 0
    assert not [violation for violation in account.invariants.violations if "never two live tasks" in violation]
