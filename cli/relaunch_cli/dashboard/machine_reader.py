"""Reads the machines that Relaunch requested, each of them at most every ten seconds."""

from collections.abc import Sequence
from dataclasses import dataclass

from relaunch.core.machines.decision import MachineTotals
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.ports import MachineStore
from relaunch_cli.dashboard.kept import Kept

MOST = 200
"""How many machines are read, each in a read of its own."""
_SECONDS = 10.0


@dataclass(frozen=True)
class MachineList:
    """Machines that are not gone, newest first, and what all of the stack count; `is_cut`: some were left unread."""

    machines: Sequence[Machine]
    totals: MachineTotals
    is_cut: bool = False


def read_machines(store: MachineStore, kept: Kept) -> MachineList:
    """Return the machines of the stack."""
    machine_ids = kept.get("living", _SECONDS, lambda: store.load_living(MOST + 1))
    loaded = [_read(machine_id, store, kept) for machine_id in machine_ids[:MOST]]
    # The index has machines that are gone too, while effects are pending and until it has caught up.
    living = [machine for machine in loaded if machine is not None and machine.state is not MachineState.GONE]
    living.sort(key=lambda machine: (machine.created_at, machine.machine_id), reverse=True)
    return MachineList(living, kept.get("totals", _SECONDS, store.load_totals), len(machine_ids) > MOST)


def _read(machine_id: str, store: MachineStore, kept: Kept) -> Machine | None:
    return kept.get(("machine", machine_id), _SECONDS, lambda: store.load_machine(machine_id))
