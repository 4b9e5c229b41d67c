"""Concurrency groups: create a job as the newest one of its group, and let a job of a group go on, wait or leave."""

from collections.abc import Sequence
from datetime import datetime

from relaunch.core.jobs.groups import GroupStanding
from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.lifecycle.events import SlotDenied
from relaunch.core.lifecycle.groups import enter_group, jobs_to_wake, slot_of, waits_for_group, with_place
from relaunch.core.lifecycle.job_changes import as_created
from relaunch.ports import JobDependencies, StaleWriteError

# Each conflict means that another job of the group was created.
_ATTEMPTS = 6


def create_job(
    job: Job, timeline: Sequence[TimelineEntry], event_at: datetime | None, deps: JobDependencies
) -> Job | None:
    """Create a job, in its concurrency group if it has one; return it as it was created, None if it is there already.

    `event_at` is when what started it happened, None if that is not known.

    Raises:
        StaleWriteError: others created jobs of the group several times in a row; retry.
    """
    job = with_place(job, event_at)
    slot = slot_of(job)
    if not slot:
        created = as_created(job, _reason(timeline))
        return created if deps.jobs.create_job(created, timeline) else None
    for _ in range(_ATTEMPTS):
        standing = deps.jobs.load_group(slot)
        entered, entries, newest = enter_group(job, timeline, standing)
        created = as_created(entered, _reason(entries))
        try:
            is_new = deps.jobs.create_job(created, entries, newest)
        except StaleWriteError:
            continue
        return created if is_new else None
    raise StaleWriteError(f"{_ATTEMPTS} jobs of the concurrency group {job.group.name} were created at the same time")


def _reason(timeline: Sequence[TimelineEntry]) -> str:
    return "; ".join(entry.detail for entry in timeline)


def load_standing(job: Job, deps: JobDependencies) -> GroupStanding | None:
    """Load what is stored of the group of an open job; None if it is in none.

    Raises:
        TransientError: throttled or unreachable.
    """
    slot = slot_of(job)
    return deps.jobs.load_group(slot) if slot and not job.state.is_final else None


def find_denial(job: Job, standing: GroupStanding, deps: JobDependencies) -> SlotDenied | None:
    """Return that another job holds the group of a job, as it was loaded for the launch; None if it may be launched.

    Raises:
        TransientError: throttled or unreachable.
    """
    denial = waits_for_group(job, standing)
    if denial is not None and _is_over(denial.holder, deps):
        # An earlier release, which knows no groups, ended it, or its table was restored.
        deps.jobs.release_group(slot_of(job), denial.holder)
        return None
    return denial


def _is_over(job_id: str, deps: JobDependencies) -> bool:
    holder = deps.jobs.load_job(job_id)
    return holder is None or holder.state.is_final


def wake_group(job: Job, deps: JobDependencies) -> None:
    """Let the other jobs of a group look at it: those that a new job replaces, or the newest one when a job has ended.

    Raises:
        TransientError: throttled or unreachable.
    """
    slot = slot_of(job)
    for job_id in jobs_to_wake(job, deps.jobs.load_group(slot)) if slot else ():
        deps.launches.request_launch(job_id)
