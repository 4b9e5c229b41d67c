"""Machines of our own: EC2 Fleet, the store of machines, and the queue of their requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from relaunch.core.machines.decision import MachineDecision, MachineTotals
    from relaunch.core.machines.events import FleetAnswer, InstanceObservation
    from relaunch.core.machines.machine import FleetRequest, Machine
    from relaunch.core.machines.starts import StartsByCause, Worth
    from relaunch.core.offerings.offering import OfferingKey


class Termination(StrEnum):
    """The answer of EC2 to the termination of one instance."""

    ENDING = "ending"  # it is shutting down, or terminated already
    ABSENT = "absent"  # EC2 does not know it
    REFUSED = "refused"  # a permission is missing: it is not one of this stack


class MachineSource(Protocol):
    """EC2: machines of our own."""

    def request(self, request: FleetRequest) -> FleetAnswer:
        """Call CreateFleet, or RunInstances for several in a reservation; every response or error is an answer."""
        ...

    def find(self, machine_id: str) -> list[InstanceObservation]:
        """Return the instances with the tag of a machine, those that ended lately included."""
        ...

    def describe(self, instance_ids: Sequence[str]) -> Mapping[str, InstanceObservation | None]:
        """Describe instances; None: EC2 does not know the instance, or not yet."""
        ...

    def find_impaired(self, instance_ids: Sequence[str]) -> frozenset[str]:
        """Return those of the running instances of which a status check of EC2 fails."""
        ...

    def spot_prices(self, offering: OfferingKey, since: datetime) -> list[tuple[datetime, float]]:
        """Return the prices in USD per hour of a spot pool since then, and the one in effect then, oldest first."""
        ...

    def list_instances(self) -> Iterator[Sequence[InstanceObservation]]:
        """Yield the instances with the tag of this stack, in pages, except those that are terminated."""
        ...

    def terminate(self, instance_ids: Sequence[str]) -> Mapping[str, Termination]:
        """Terminate instances; one that EC2 refuses or does not know does not keep it from ending the others."""
        ...


class MachineStore(Protocol):
    """Machines in the jobs table, saved here or with a job (JobStore.save_job).

    Reads are strongly consistent, except load_due, load_living and load_with_room, which read indexes.
    """

    def load_machine(self, machine_id: str) -> Machine | None:
        """Load a machine; None if there is none, or it was gone long ago."""
        ...

    def save_machine(self, decision: MachineDecision) -> Machine:
        """Save a decision if the stored version is `decision.machine.version`, 0 for a new one; return the machine.

        The counters change in the same transaction.

        Raises:
            StaleWriteError: the machine was changed since it was loaded, or exists already.
            StartsChangedError: one of `decision.starts` was.
            MachineLimitError: a limit of `decision.limits` would be exceeded; nothing was written.
            ValueError: the machine is not GONE and would never be due again.
        """
        ...

    def find_by_instance(self, instance_id: str) -> str | None:
        """Return the ID of the machine with this instance, None if no machine has it."""
        ...

    def load_due(self, now: datetime, limit: int) -> list[str]:
        """Return IDs of machines whose `wake_at` is not after `now`, most overdue first."""
        ...

    def load_living(self, limit: int) -> list[str]:
        """Return IDs of machines that are not GONE, and of those that are while effects are pending."""
        ...

    def load_with_room(self, limit: int) -> list[str]:
        """Return IDs of usable machines with room for another claim, oldest first."""
        ...

    def load_totals(self) -> MachineTotals:
        """Return the counters of the stack."""
        ...

    def load_starts(self) -> StartsByCause:
        """Return the machines that start, and those that were of no use lately, by cause."""
        ...

    def settle_start(self, causes: Sequence[OfferingKey], machine: Machine, worth: Worth) -> None:
        """Note for these causes what a machine is worth; doing it again changes nothing.

        Raises:
            TransientError: others wrote at the same time too often.
        """
        ...


class MachineQueue(Protocol):
    """The `machines` queue, whose consumer calls EC2 for machines."""

    def request_calls(self, machine_id: str, delay_seconds: int = 0) -> None:
        """Let the consumer do what EC2 is to be called for, after a delay of at most 900 seconds."""
        ...
