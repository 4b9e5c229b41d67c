"""What becomes of a job by its concurrency group: it holds the group, waits for it, or is replaced by a newer job."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.definitions.concurrency import Concurrency, hash_of, write_group
from relaunch.core.jobs.effects import AdmitWaiting
from relaunch.core.jobs.groups import GroupChange, GroupPlace, GroupStanding
from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import LAUNCH_TIMEOUT, Decision
from relaunch.core.lifecycle.events import CancelAsked, SlotDenied

# The clocks of GitHub, of who sends an event and of functions differ.
_CLOCK_SKEW = timedelta(minutes=1)


def slot_of(job: Job) -> str:
    """Return the name under which the group of a job is stored and is waited for; empty if it is in none."""
    return f"{job.definition.name}#{hash_of(job.group.name)}" if job.group.name else ""


def describe_replacement(group: str, newest: str) -> str:
    """Return why a job is cancelled of which a newer one is in its group."""
    return f"replaced by job {newest}, the newest of its concurrency group {group}"


def with_place(job: Job, event_at: datetime | None) -> Job:
    """Return a new job with the group that its definition gives it.

    `event_at` is when what started it happened, None if it is ordered by its acceptance. Whoever sends an event may say
    that it comes from the future: nothing is newer than its acceptance, as far as clocks tell.
    """
    concurrency = job.definition.concurrency
    if concurrency is None or job.state.is_final:
        return job
    name = write_group(concurrency, job.definition.name, job.trigger.environment, job.inputs)
    at = min(event_at, job.accepted_at + _CLOCK_SKEW).replace(microsecond=0) if event_at is not None else None
    return replace(job, group=GroupPlace(name, at)) if name else job


def enter_group(
    job: Job, timeline: Sequence[TimelineEntry], standing: GroupStanding
) -> tuple[Job, tuple[TimelineEntry, ...], GroupStanding | None]:
    """Return a new job as it is to be created, and what its group is then; None if the group stays as it is.

    The job becomes the newest one, and the older ones are woken, which leave or go on; or its event came late, and
    the job ends, for a newer one was accepted before.
    """
    at = job.group.event_at
    if at is None:
        # It is newer than what was accepted before it, whatever clocks say.
        at = job.accepted_at.replace(microsecond=0)
        at = max(at, standing.event_at or at)
    elif standing.is_newer_than(at, job.accepted_at, job.job_id):
        reason = describe_replacement(job.group.name, standing.newest)
        late = replace(
            job,
            state=JobState.CANCELLED,
            reason=reason,
            waiting=None,
            wake_at=None,
            pending=(),
            ended_at=job.accepted_at,
        )
        entry = TimelineEntry(job.accepted_at, JobState.CANCELLED, "cancelled", reason)
        return late, (*timeline, entry), None
    policy = job.definition.concurrency or Concurrency("")
    newest = GroupStanding(job.job_id, at, job.accepted_at, policy.cancel_in_progress, standing.holder)
    place = replace(job.group, event_at=at, after=standing.newest)
    return replace(job, group=place, pending=(*job.pending, AdmitWaiting())), tuple(timeline), newest


def leaves_group(job: Job, standing: GroupStanding) -> CancelAsked | None:
    """Return the cancellation of a job of which a newer one is in its group, None if it may stay.

    A job that was launched ends by itself, unless the newest one has it cancelled. It holds the group, or was launched
    by an earlier release.
    """
    is_over = job.state.is_final or bool(job.cancel_requested)
    if is_over or standing.newest in ("", job.job_id) or (job.attempt is not None and not standing.cancels):
        return None
    return CancelAsked(describe_replacement(job.group.name, standing.newest))


def waits_for_group(job: Job, standing: GroupStanding) -> SlotDenied | None:
    """Return that another job holds the group of a job, None if it may be launched."""
    if job.attempt is not None or standing.holder in ("", job.job_id):
        return None
    return SlotDenied(slot_of(job), 1, holder=standing.holder)


def jobs_to_wake(job: Job, standing: GroupStanding) -> tuple[str, ...]:
    """Return which other jobs of its group are to look at the group: after a job was created, and when it has ended."""
    others = {job.group.after, standing.holder, standing.newest}
    return tuple(sorted(others - {"", job.job_id}))


def with_group(before: Job, _event: object, decision: Decision, now: datetime) -> Decision:
    """Return the decision, which takes the group of a job with its first placement, and releases it with its end."""
    job = decision.job
    is_first = before.attempt is None and job.attempt is not None
    is_holder = bool(job.group.name) and not job.state.is_final and (before.group.is_holder or is_first)
    if decision.is_ignored or is_holder == before.group.is_holder:
        return decision
    job = replace(job, group=replace(job.group, is_holder=is_holder))
    if is_holder:
        return replace(decision, job=job, group_change=GroupChange.TAKE)
    # Whoever waits for the group is launched.
    pending = job.pending if AdmitWaiting() in job.pending else (*job.pending, AdmitWaiting())
    job = replace(job, pending=pending, wake_at=job.wake_at or now + LAUNCH_TIMEOUT)
    return replace(decision, job=job, group_change=GroupChange.RELEASE)
