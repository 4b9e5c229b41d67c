"""The starts of a job: of its attempts, and of the machines of our own that no attempt was placed on."""

from collections.abc import Iterator
from datetime import datetime

from relaunch.core.jobs.job import selected_placement
from relaunch.core.lifecycle.start_stages import Start, StartRecord, find_start, machine_of_start
from relaunch.core.machines.machine import machine_id_of
from relaunch.ports import JobHistory
from relaunch_cli.job_machines import MachineReader

# The newest start is among these; each costs a read or two.
_LATEST_REQUESTS = 2


def load_starts(history: JobHistory, store: MachineReader, now: datetime, *, is_full: bool) -> tuple[Start, ...]:
    """Load the latest starts of a job, or all of them, oldest first; each machine costs a read."""
    attempts = history.attempts if is_full else history.attempts[-1:]
    records = [
        StartRecord(each.number, each, store.load_machine(machine_id))
        if (machine_id := machine_of_start(each, history.job))
        else StartRecord(each.number, each)
        for each in attempts
    ]
    records += _unplaced(history, store, is_full=is_full)
    found = (find_start(record, history.job, history.timeline, now) for record in records)
    return tuple(sorted(found, key=lambda each: each.began_at))


def has_more(history: JobHistory) -> bool:
    """Return whether a job has had several starts."""
    return len(history.attempts) > 1 or history.job.machines.requested > 1


def _unplaced(history: JobHistory, store: MachineReader, *, is_full: bool) -> Iterator[StartRecord]:
    """Yield the machines on which no attempt was placed: those that came to nothing, and the one that is awaited."""
    job = history.job
    known = {rank.machine_id for each in history.attempts for rank in each.placement.ranks}
    next_number, _ = selected_placement(job, is_placed=False)
    number = 1 if is_full or job.attempt is None else job.attempt.number
    first = 1 if is_full else max(job.machines.requested - _LATEST_REQUESTS, 0) + 1
    # Requests are counted through all attempts: those of an attempt follow those of the one before it.
    for request in range(first, job.machines.requested + 1):
        for candidate in range(number, next_number + 1):
            machine_id = machine_id_of(job.job_id, candidate, request)
            if machine_id in known:
                number = candidate
                break
            machine = store.load_machine(machine_id)
            if machine is not None:
                known.add(machine_id)
                number = candidate
                yield StartRecord(candidate, machine=machine)
                break
    awaited = store.load_machine(job.machine_id) if job.machine_id not in {"", *known} else None
    if awaited is not None:
        yield StartRecord(next_number, machine=awaited)
