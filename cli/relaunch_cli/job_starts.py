"""The starts of a job: of its attempts, and of the machines of our own for the next one."""

from collections.abc import Iterator
from datetime import datetime

from relaunch.core.jobs.job import selected_placement
from relaunch.core.lifecycle.start_stages import Start, StartRecord, find_start
from relaunch.ports import JobHistory, MachineStore
from relaunch_cli.job_machines import load_failed


def load_starts(history: JobHistory, store: MachineStore, now: datetime) -> tuple[Start, ...]:
    """Load the starts of a job, oldest first; each machine costs a read."""
    found = (find_start(record, history.job, history.timeline, now) for record in _records(history, store))
    return tuple(sorted(found, key=lambda each: each.began_at))


def _records(history: JobHistory, store: MachineStore) -> Iterator[StartRecord]:
    job = history.job
    known = {each.placement.machine_id for each in history.attempts}
    for attempt in history.attempts:
        machine_id = attempt.placement.machine_id
        yield StartRecord(attempt.number, attempt, store.load_machine(machine_id) if machine_id else None)
    number, _ = selected_placement(job, is_placed=False)
    awaited = store.load_machine(job.machine_id) if job.machine_id not in {"", *known} else None
    for machine in (*load_failed(job, store), awaited):
        if machine is not None and machine.machine_id not in known:
            yield StartRecord(number, machine=machine)
