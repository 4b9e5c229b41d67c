"""What costs of jobs are not in the sums yet: machines that are not charged, and tasks elsewhere that run."""

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

from relaunch.core.jobs.cost import CostEntry, cost_key, running_task, task_costs
from relaunch.core.jobs.job import Job
from relaunch.core.machines.charges import days_of

if TYPE_CHECKING:
    from relaunch.ports import Dependencies

MOST = 1_000
"""How many machines, and how many tasks elsewhere, are read: one by one."""


def load_running_costs(deps: "Dependencies", now: datetime) -> tuple[list[CostEntry], bool]:
    """Return what machines of our own that are not charged, and tasks elsewhere that run, have cost until now.

    The second value is whether others were left unread. A machine costs its price when it was launched: what it was in
    each hour is read once it is gone.
    """
    machine_ids = deps.machines.load_living(MOST + 1)
    holders = deps.jobs.load_slot_holders(MOST + 1)
    load_job = cache(deps.jobs.load_job)
    found = list[CostEntry]()
    for machine_id in machine_ids[:MOST]:
        machine = deps.machines.load_machine(machine_id)
        if machine is None:
            continue
        for job_id, days in days_of(machine, (), now).items():
            job = load_job(job_id)
            # One that is gone is read until all its jobs are charged.
            if job is not None and not job.charges.has_charged(machine_id):
                found.append(CostEntry(cost_key(job, machine.offering), days))
    for job_id in holders[:MOST]:
        job = load_job(job_id)
        if job is not None:
            found += _running_elsewhere(job, now)
    return found, len(machine_ids) > MOST or len(holders) > MOST


def _running_elsewhere(job: Job, now: datetime) -> Iterator[CostEntry]:
    running = running_task(job)
    if running is not None and not running.machine_id:
        attempt = job.current_attempt
        yield task_costs(job, attempt, min(now, attempt.program_ended_at or now) - running.since)
