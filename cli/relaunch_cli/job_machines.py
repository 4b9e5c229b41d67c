"""The machines of our own of a job: those it claims, and those that came to nothing for its next attempt."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from relaunch.core.jobs.job import Job, claimed_machines, selected_placement
from relaunch.core.jobs.state import JobSummary, WaitReason
from relaunch.core.machines.machine import Machine, MachineState, machine_id_of

# Each costs a read, and the timeline of the job has the reasons of all.
_MAX_FAILED = 3


class MachineReader(Protocol):
    """What is needed of a MachineStore."""

    def load_machine(self, machine_id: str) -> Machine | None:
        """Load a machine; None if there is none, or it was gone long ago."""


@dataclass(frozen=True, slots=True)
class JobMachines:
    """The machines that a job claims, oldest first, and the latest that it requested in vain, newest first."""

    claimed: tuple[Machine, ...] = ()
    failed: tuple[Machine, ...] = ()


NO_MACHINES = JobMachines()


def load_job_machines(job: Job, store: MachineReader) -> JobMachines:
    """Load the machines of a job; none for a job that has ended."""
    if job.state.is_final:
        return NO_MACHINES
    loaded = [store.load_machine(machine_id) for machine_id in claimed_machines(job)]
    claimed = sorted((each for each in loaded if each is not None), key=lambda each: each.created_at)
    return JobMachines(tuple(claimed), tuple(_failed(job, store)))


def _failed(job: Job, store: MachineReader) -> Iterator[Machine]:
    attempt_number, _ = selected_placement(job, is_placed=False)
    claimed = claimed_machines(job)
    first = max(job.machines.requested - _MAX_FAILED, 0) + 1
    for number in range(job.machines.requested, first - 1, -1):
        machine_id = machine_id_of(job.job_id, attempt_number, number)
        machine = store.load_machine(machine_id) if machine_id not in claimed else None
        if machine is not None and machine.state in (MachineState.ENDING, MachineState.GONE):
            yield machine


def load_awaited(jobs: Iterable[JobSummary], store: MachineReader) -> Mapping[str, Machine]:
    """Load the machines that jobs wait for, by ID; each costs one read."""
    awaited = {each.machine_id for each in jobs if each.waiting and each.waiting.reason is WaitReason.MACHINE}
    loaded = (store.load_machine(machine_id) for machine_id in sorted(awaited - {""}))
    return {machine.machine_id: machine for machine in loaded if machine is not None}
