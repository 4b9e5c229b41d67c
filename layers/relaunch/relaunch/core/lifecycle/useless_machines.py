"""The bound of machines that are paid for and never run a task of the job that they were requested for.

Whatever the reason: they do not become ready, the cluster places nothing on them, or a permission is missing once they
are up. A few in a row follow one another at once, then one is bought as a probe (core.lifecycle.refusal_waits); and
whatever happens in between, a job gets no more than MOST_IN_A_DAY in any 24 hours. What keeps the tasks of a revision
from all machines is told to all jobs with it, which buy probes together (core.machines.starts).
"""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.jobs.effects import RememberCapacity
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.events import UnusedMachinePaid
from relaunch.core.offerings.capacity_scopes import placement_scope

MOST_IN_A_DAY = 6
"""The machines of no use that a job gets in any 24 hours: three at once, and the probes of the first four hours."""
DAY = timedelta(hours=24)


def with_useless_machine(job: Job, now: datetime) -> Job:
    """Return the job with another machine that was of no use to it, which it lost just now."""
    return replace(job, useless_machines_at=(*job.useless_machines_at, now)[-MOST_IN_A_DAY:])


def add_unused_machine(job: Job, event: UnusedMachinePaid, _now: datetime, _limits: StackLimits) -> Decision:
    """Add what a machine cost that never ran a task of the job."""
    return Decision(replace(job, useless_machines_usd=job.useless_machines_usd + event.usd))


def useless_for_all(job: Job, machine_id: str, reason: str, now: datetime) -> RememberCapacity:
    """Return the effect that tells all jobs of a machine that was of no use for tasks of the job's revision."""
    return RememberCapacity(placement_scope(job.revision.arn), reason, now, now, machine_id=machine_id)


def next_machine_at(job: Job, now: datetime) -> datetime:
    """Return from when on the job may get a new machine: now, unless it had too many of no use within a day."""
    lost_at = job.useless_machines_at
    return now if len(lost_at) < MOST_IN_A_DAY else max(lost_at[0] + DAY, now)


def describe_bound(job: Job) -> str:
    """Return why the job gets no new machine yet."""
    until = job.useless_machines_at[0] + DAY
    return (
        f"{MOST_IN_A_DAY} machines within 24 hours never ran its task; another one is requested after "
        f"{until:%Y-%m-%d %H:%M} UTC"
    )
