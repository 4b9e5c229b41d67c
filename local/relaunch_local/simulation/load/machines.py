"""Machines of our own in a load: instances that start as the simulator's do, and an index that is fast."""

from dataclasses import dataclass, field

from relaunch.core.machines.decision import has_room
from relaunch.core.machines.machine import Machine
from relaunch_local.ecs.engine.settings import SOUND, HostPlan
from relaunch_local.simulation.aws.fleet import FaultyEc2
from relaunch_local.simulation.aws.machine_table import MachineIndexes

CREATE_FLEET_SECONDS = 1.0
"""How long CreateFleet takes that launches: an assumption; of four offerings that it was refused it took 4 s."""


class SoundEc2(FaultyEc2):
    """EC2, whose instances all start in the same time."""

    def plan(self, note: str) -> HostPlan:  # noqa: ARG002 - of the base class
        """Return the plan of an instance on which nothing goes wrong."""
        return SOUND


@dataclass
class FastMachineIndexes(MachineIndexes):
    """Indexes that look only at machines that may have room, for speed."""

    _may_have_room: dict[str, None] = field(default_factory=dict)

    def note(self, machine: Machine) -> None:
        """Propagate a write to the indexes, with a delay."""
        super().note(machine)
        if has_room(machine):
            self._may_have_room[machine.machine_id] = None

    def with_room(self) -> list[str]:
        """Return IDs of machines with room, oldest first."""
        found = []
        for machine_id in list(self._may_have_room):
            machine = self._shown(machine_id)
            if machine is not None and has_room(machine):
                found.append((machine.created_at, machine_id))
            elif not any(has_room(each) for _, each in self._entries[machine_id]):
                del self._may_have_room[machine_id]
        return [machine_id for _, machine_id in sorted(found)]
