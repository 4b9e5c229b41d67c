"""Which decisions change a job for those who watch it: each becomes one event, numbered by the job.

A change is a new state, another reason to wait, a new attempt, the warning that a machine will be taken away, and that
a training saves nothing newer, or does again.
Everything else is saved quietly.
"""

from dataclasses import replace
from datetime import datetime

from relaunch.core.jobs.attempt import Attempt
from relaunch.core.jobs.changes import MAX_REASON, ChangedPart, ChangeMachine, JobChange, cut
from relaunch.core.jobs.cost import cost_so_far
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import resumed_step, work_at_risk
from relaunch.core.jobs.state import WaitReason
from relaunch.core.lifecycle.decision import Decision


def with_change(before: Job, _event: object, decision: Decision, now: datetime) -> Decision:
    """Return the decision, whose job has an event to send if it changed for those who watch it."""
    changed = () if decision.is_ignored else changed_parts(before, decision.job)
    if not changed:
        return decision
    words = "; ".join(entry.detail or entry.event for entry in decision.timeline)
    change = _change(before, decision.job, changed, words or decision.job.reason, now)
    return replace(decision, job=replace(decision.job, outbox=decision.job.outbox.with_change(change)))


def as_created(job: Job, reason: str) -> Job:
    """Return a new job, whose creation is its first event."""
    waits = (ChangedPart.WAITING_FOR,) if job.waiting is not None else ()
    change = _change(None, job, (ChangedPart.STATE, *waits), reason, job.accepted_at)
    return replace(job, outbox=job.outbox.with_change(change))


def changed_parts(before: Job, after: Job) -> tuple[ChangedPart, ...]:
    """Return what changed for those who watch a job; empty if nothing did."""
    pairs = {
        ChangedPart.STATE: (before.state, after.state),
        ChangedPart.WAITING_FOR: (_waiting_for(before), _waiting_for(after)),
        ChangedPart.ATTEMPT: (_number(before), _number(after)),
    }
    changed = [part for part, (was, is_now) in pairs.items() if was != is_now]
    was_warned = before.attempt is not None and before.attempt.warned_at is not None
    is_warned = after.attempt is not None and after.attempt.warned_at is not None
    if is_warned and not (was_warned and _number(before) == _number(after)):
        changed.append(ChangedPart.WARNING)
    if _is_stalled(before) != _is_stalled(after):
        changed.append(ChangedPart.PROGRESS)
    return tuple(changed)


def _change(before: Job | None, job: Job, changed: tuple[ChangedPart, ...], reason: str, now: datetime) -> JobChange:
    usd, basis = cost_so_far(job, now)
    attempt = job.attempt
    at_risk = None if attempt is None else work_at_risk(job, now)
    open_charges = [each for each in job.charges.open if each.until is None]
    instance = sum(each.usage_usd_per_hour for each in open_charges)
    beside = sum(each.usd_per_hour for each in open_charges) - instance
    return JobChange(
        sequence=job.outbox.sequence + 1,
        at=now,
        state=job.state,
        state_before=before.state if before is not None else None,
        changed=changed,
        reason=cut(reason, MAX_REASON),
        waiting_for=_waiting_for(job),
        attempt=_number(job),
        machine=_machine(attempt) if attempt is not None else None,
        step=(resumed_step(attempt.placement.resume_uri) or None) if attempt is not None else None,
        noted=job.noted,
        cost_usd=round(usd, 6),
        cost_basis=basis,
        instance_usd_per_hour=round(instance, 6) if open_charges else None,
        beside_usd_per_hour=round(beside, 6) if open_charges else None,
        at_risk_seconds=None if at_risk is None else round(at_risk.total_seconds(), 3),
    )


def _machine(attempt: Attempt) -> ChangeMachine:
    placement = attempt.placement
    return ChangeMachine(
        instance_type=placement.offering.instance_type,
        purchase=placement.offering.purchase.value,
        zone=attempt.zone or placement.offering.zone or "",
        instance_id=attempt.instance_id or placement.instance_id,
        node=attempt.node or "",
        capacity_provider=placement.capacity_provider,
        machine_id=placement.machine_id,
    )


def _is_stalled(job: Job) -> bool:
    return job.noted is not None and job.noted.stalled_since is not None


def _waiting_for(job: Job) -> WaitReason | None:
    return job.waiting.reason if job.waiting is not None else None


def _number(job: Job) -> int | None:
    return job.attempt.number if job.attempt is not None else None
