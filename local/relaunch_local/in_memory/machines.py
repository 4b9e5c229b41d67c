"""Machines in memory, with versions, counters and stale writes as in DynamoDB; the contract tests compare the two."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from relaunch.core.machines.decision import MachineDecision, MachineTotals, due_at, has_room
from relaunch.core.machines.limits import add, change_of, exceeded_limit, is_within
from relaunch.core.machines.machine import Machine
from relaunch.core.machines.starts import Starts, StartsByCause, Worth, counted_as, settled
from relaunch.core.offerings.offering import OfferingKey
from relaunch.ports import MachineLimitError, MachineTakenError, StaleWriteError, StartsChangedError
from relaunch_local.in_memory.write_faults import WriteFaults


class InMemoryMachines(WriteFaults):
    """Implements MachineStore.

    `fail_next` makes the next calls of save_machine fail before or after they take effect.
    """

    def __init__(self) -> None:
        super().__init__()
        self._machines: dict[str, Machine] = {}
        self._instances: dict[str, str] = {}
        self._totals = MachineTotals()
        self._starts: dict[OfferingKey, Starts] = {}

    def machine(self, machine_id: str) -> Machine:
        """Return a machine that must be there."""
        return self._machines[machine_id]

    def load_machine(self, machine_id: str) -> Machine | None:
        return self._machines.get(machine_id)

    def save_machine(self, decision: MachineDecision) -> Machine:
        due_at(decision.machine)
        late_error = self._fault()
        try:
            self.check([decision])
        except MachineTakenError as error:
            machine = decision.machine
            raise StaleWriteError(f"machine {machine.machine_id} is no longer at version {machine.version}") from error
        self.write([decision])
        if late_error:
            raise late_error
        return self._machines[decision.machine.machine_id]

    def check(self, decisions: Collection[MachineDecision]) -> None:
        """Check the conditions on which decisions are written.

        Raises:
            MachineTakenError: a machine was changed since it was loaded, or exists already.
            MachineLimitError: a limit would be exceeded.
            StartsChangedError: what is known of a cause was changed since it was loaded.
            ValueError: there are two decisions about one machine, or one whose machine would never be due again.
        """
        change = change_of(decisions)
        for machine in (each.machine for each in decisions):
            due_at(machine)
            stored = self._machines.get(machine.machine_id)
            if machine.version != (stored.version if stored else 0):
                raise MachineTakenError(machine.machine_id)
        after = add(self._totals, change.added)
        if not is_within(after, change.limits):
            raise MachineLimitError(exceeded_limit(after, change.limits))
        for starts in (starts for each in decisions for starts in each.starts):
            known = self._starts.get(starts.cause, Starts(starts.cause))
            if starts.version != known.version:
                raise StartsChangedError(str(starts.cause))

    def write(self, decisions: Collection[MachineDecision]) -> None:
        """Write decisions whose conditions hold."""
        self._totals = add(self._totals, change_of(decisions).added)
        for starts in (starts for each in decisions for starts in each.starts):
            self._starts[starts.cause] = replace(starts, version=starts.version + 1)
        for machine in (each.machine for each in decisions):
            self._machines[machine.machine_id] = replace(machine, version=machine.version + 1)
            if machine.instance_id:
                self._instances[machine.instance_id] = machine.machine_id

    def find_by_instance(self, instance_id: str) -> str | None:
        return self._instances.get(instance_id)

    def load_due(self, now: datetime, limit: int) -> list[str]:
        due = [(at, machine.machine_id) for machine in self._machines.values() if (at := due_at(machine)) and at <= now]
        return [machine_id for _, machine_id in sorted(due)][:limit]

    def load_living(self, limit: int) -> list[str]:
        return [machine.machine_id for machine in self._machines.values() if due_at(machine)][:limit]

    def load_with_room(self, limit: int) -> list[str]:
        found = [machine for machine in self._machines.values() if has_room(machine)]
        return [machine.machine_id for machine in sorted(found, key=lambda machine: machine.created_at)][:limit]

    def load_totals(self) -> MachineTotals:
        return self._totals

    def load_starts(self) -> StartsByCause:
        return dict(self._starts)

    def settle_start(self, causes: Sequence[OfferingKey], machine: Machine, worth: Worth) -> None:
        for cause in causes:
            before = self._starts.get(cause, Starts(cause))
            after = settled(before, counted_as(machine), machine.launched_at or machine.created_at, worth)
            if after != before and (before.version or worth is Worth.USELESS):
                self._starts[cause] = replace(after, version=before.version + 1)
