"""Machines in the jobs table: every call may fail, and the indexes are eventually consistent."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from relaunch.core.machines.decision import MachineDecision, due_at, has_room
from relaunch.core.machines.machine import Machine
from relaunch_local.simulation.aws.lagging_index import LaggingIndex
from relaunch_local.simulation.aws.table import CalledStore, once


@dataclass
class MachineIndexes(LaggingIndex[Machine]):
    """The indexes `due` and `slots` as far as they have machines."""

    def note(self, machine: Machine) -> None:
        """Propagate a write to the indexes, with a delay."""
        self.note_written(machine.machine_id, machine)

    def due(self) -> list[tuple[datetime, str]]:
        """Return when machines are due, by the index, and their IDs, most overdue first."""
        machines = self.all_shown()
        return sorted((at, each.machine_id) for each in machines if (at := due_at(each)) is not None)

    def with_room(self) -> list[str]:
        """Return IDs of machines with room, oldest first."""
        found = sorted((each.created_at, each.machine_id) for each in self.all_shown() if has_room(each))
        return [machine_id for _, machine_id in found]

    def next_due_at(self) -> datetime | None:
        """Return when the next machine is due, by the table or an index."""
        moments = (due_at(machine) for entries in self._entries.values() for _, machine in entries)
        return min((moment for moment in moments if moment is not None), default=None)


@dataclass
class CalledMachines(CalledStore):
    """The machines, found by eventually consistent indexes; `on_saved` is called with each that was saved."""

    _indexes: MachineIndexes
    _on_saved: Callable[[Machine], None]

    def save_machine(self, decision: MachineDecision) -> Machine:
        """Save a machine, once per call."""

        def effect() -> Machine:
            saved: Machine = self._store.save_machine(decision)
            self._on_saved(saved)
            return saved

        saved: Machine = self._call("save_machine", once(effect))
        return saved

    def load_due(self, now: datetime, limit: int) -> list[str]:
        """Query the index `due`."""
        return self._query("load_due", lambda: [name for at, name in self._indexes.due() if at <= now], limit)

    def load_living(self, limit: int) -> list[str]:
        """Query the index `due`."""
        return self._query("load_living", lambda: [name for _, name in self._indexes.due()], limit)

    def load_with_room(self, limit: int) -> list[str]:
        """Query the index `slots`."""
        return self._query("load_with_room", self._indexes.with_room, limit)

    def _query(self, name: str, find: Callable[[], list[str]], limit: int) -> list[str]:
        found: list[str] = self._call(name, find)
        return found[:limit]
