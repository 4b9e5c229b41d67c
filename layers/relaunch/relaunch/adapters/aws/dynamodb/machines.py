"""Machines in the jobs table: one item each, saved by a transaction of their own or of a job."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from relaunch.adapters.aws.dynamodb import machine_items as items
from relaunch.adapters.aws.dynamodb.machine_counters import count, limit_error, load_totals
from relaunch.adapters.aws.dynamodb.machine_starts import load_starts, save_starts, settle_start
from relaunch.adapters.aws.dynamodb.table import Action, CancelledError, Item, JobsTable, number, put, stamp, text
from relaunch.core.machines.decision import MachineDecision, MachineTotals
from relaunch.core.machines.limits import change_of
from relaunch.core.machines.machine import Machine
from relaunch.core.machines.starts import StartsByCause, Worth
from relaunch.core.offerings.offering import OfferingKey
from relaunch.ports import MachineLimitError, MachineTakenError, StaleWriteError, StartsChangedError


class DynamoDbMachines:
    """Implements MachineStore."""

    def __init__(self, table: JobsTable) -> None:
        self._table = table

    def load_machine(self, machine_id: str) -> Machine | None:
        item = self._table.get(items.machine_pk(machine_id), items.MACHINE)
        return self._table.read(item, items.BODY) if item else None

    def save_machine(self, decision: MachineDecision) -> Machine:
        write_id = str(uuid.uuid4())
        saved = next_version(decision)
        try:
            self._table.transact(save_machines([decision], write_id), write_id, f"saving machine {saved.machine_id}")
        except CancelledError as error:
            # A call that took effect and timed out was retried: the other write is this one.
            if error.is_own(write_id):
                return saved
            if 0 not in error.failed:
                raise refusal([decision], error, 0) from error
            message = f"machine {saved.machine_id} is no longer at version {decision.machine.version}"
            raise StaleWriteError(message) from error
        return saved

    def find_by_instance(self, instance_id: str) -> str | None:
        item = self._table.get(items.instance_pk(instance_id), items.MACHINE)
        return item["machine_id"]["S"] if item else None

    def load_due(self, now: datetime, limit: int) -> list[str]:
        values = {":due": text(items.DUE), ":now": text(stamp(now))}
        return _machine_ids(self._table.query("due = :due AND wake_at <= :now", values, index="due", limit=limit))

    def load_living(self, limit: int) -> list[str]:
        return _machine_ids(self._table.query("due = :due", {":due": text(items.DUE)}, index="due", limit=limit))

    def load_with_room(self, limit: int) -> list[str]:
        return _machine_ids(self._table.query("slot = :slot", {":slot": text(items.ROOM)}, index="slots", limit=limit))

    def load_totals(self) -> MachineTotals:
        return load_totals(self._table)

    def load_starts(self) -> StartsByCause:
        return load_starts(self._table)

    def settle_start(self, causes: Sequence[OfferingKey], machine: Machine, worth: Worth) -> None:
        settle_start(self._table, causes, machine, worth)


def next_version(decision: MachineDecision) -> Machine:
    """Return the machine as a decision saves it."""
    return replace(decision.machine, version=decision.machine.version + 1)


def save_machines(decisions: Sequence[MachineDecision], write_id: str) -> list[Action]:
    """Return the actions that save machines: one for each decision, in their order; then the others.

    The first of the others is that of the counters, if it can fail; those of `starts` come after it.

    Raises:
        ValueError: there are two decisions about one machine, or one is not gone and has no `wake_at`.
    """
    machines = [next_version(each) for each in decisions]
    starts = save_starts([starts for each in decisions for starts in each.starts])
    links = [put(items.instance_item(each, each.instance_id)) for each in machines if each.instance_id]
    return [*(_save(each, write_id) for each in machines), *count(decisions), *starts, *links]


def refusal(
    decisions: Sequence[MachineDecision], error: CancelledError, first: int
) -> MachineTakenError | MachineLimitError | StartsChangedError:
    """Return why a transaction was cancelled whose actions from position `first` on are those of `save_machines`."""
    for position, decision in enumerate(decisions, first):
        if position in error.failed:
            return MachineTakenError(decision.machine.machine_id)
    counters = first + len(decisions)
    if counters not in error.failed or not change_of(decisions).is_needed:
        return StartsChangedError("others requested a machine for the same cause")
    return limit_error(decisions, error.failed[counters])


def _save(machine: Machine, write_id: str) -> Action:
    item = items.machine_item(machine, write_id)
    before = machine.version - 1
    if not before:
        return put(item, "attribute_not_exists(pk)")
    return put(item, "version = :version", {":version": number(before)})


def _machine_ids(found: Iterable[Item]) -> list[str]:
    return [items.machine_id_of(item["pk"]["S"]) for item in found]
