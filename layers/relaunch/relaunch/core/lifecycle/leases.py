"""What a job reserves of its budgets when it is launched and while it runs, and what follows if there is no room.

job
  ├─ is to be launched ──▶ reserves an hour of it with the claim of its machine; no room ──▶ waits for the budget
  ├─ runs, starts, stops or waits for its machine, and less than RENEWED_BEFORE is left of its lease
  │    ├─ there is room ──▶ reserves an hour from now
  │    └─ no room, and less than STOPPED_BEFORE is left ──▶ saves, stops, waits for the budget; a machine that
  │         is not ready is given back; what stops for longer than that is counted beyond the limit
  └─ has no machine and no task any more ──▶ gives back what it did not need
"""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.jobs.attempt import IntentKind, PlacementState, StopIntent
from relaunch.core.jobs.budgets import (
    COUNTED_BEFORE,
    LEASE,
    RENEWED_BEFORE,
    STOPPED_BEFORE,
    Budget,
    describe_exceeded,
    find_exceeded,
    is_paying,
    left_of_lease,
    reserve,
    settle,
    usd_per_hour,
)
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.lifecycle.charging import with_machines
from relaunch.core.lifecycle.decision import Decision, set_next_check, try_again_at
from relaunch.core.lifecycle.events import BudgetDenied, BudgetsRead, MachineClaimed, OfferingChosen
from relaunch.core.lifecycle.refusal_waits import without_slot
from relaunch.core.lifecycle.stopping import stop_with_intent
from relaunch.core.machines.charges import rate_of, shares_of
from relaunch.core.machines.machine import Machine

BUDGET_POLL_INTERVAL = timedelta(minutes=10)
"""How often a job looks whether its budget has room again: it is raised, others give back, a month begins."""


def with_leases(_before: Job, event: object, decision: Decision, now: datetime) -> Decision:
    """Return the decision with what the job reserves of its budgets for a launch, or what it gives back."""
    job = decision.job
    if decision.is_ignored:
        return decision
    if isinstance(event, MachineClaimed | OfferingChosen) and event.budgets and is_paying(job):
        machines = [each.machine for each in event.decisions] if isinstance(event, MachineClaimed) else []
        claimed = sum(price_of(each, job.job_id) for each in machines)
        reserved, changes = reserve(job, event.budgets, usd_per_hour(job) + claimed, now)
    elif job.reserved.usd:
        reserved, changes = settle(job, now)
    else:
        return decision
    return replace(decision, job=replace(job, reserved=reserved), budgets=(*decision.budgets, *changes))


def price_of(machine: Machine, job_id: str) -> float:
    """Return what a job pays per hour of a machine that it claims."""
    rate = rate_of(machine, job_id)
    if rate is not None:
        return rate.usd_per_hour
    # It is not launched yet.
    share = shares_of(machine.claims, machine.capacity).get(job_id, 1.0)
    return share * (machine.usd_per_hour + machine.beside_usd_per_hour)


def is_lease_due(job: Job, budgets: tuple[Budget, ...], now: datetime) -> bool:
    """Return whether the lease of a job is to be renewed: it has a machine, and little is left of what it reserved."""
    is_wanted = not (job.state.is_final or job.cancel_requested)
    return is_wanted and is_paying(job) and _left_of_lease(job, budgets, now) < RENEWED_BEFORE


def _left_of_lease(job: Job, budgets: tuple[Budget, ...], now: datetime) -> timedelta:
    return left_of_lease(job, [each.scope for each in budgets], now)


def renew_lease(job: Job, event: BudgetsRead, now: datetime, limits: StackLimits) -> Decision:
    """Reserve another hour; without room for it stop the task in time to save, or give the next machine back."""
    job = with_machines(job, event.machines, now)
    per_hour = usd_per_hour(job)
    reserved, changes = reserve(job, event.budgets, per_hour, now)
    exceeded = find_exceeded(event.budgets, changes)
    if exceeded is None:
        renewed = set_next_check(replace(job, reserved=reserved), job.wake_at or now, job.pending)
        return replace(renewed, budgets=changes)
    left = _left_of_lease(job, event.budgets, now)
    if job.state is JobState.STOPPING and left < COUNTED_BEFORE:
        # It is paid for until it has stopped, whatever the limit.
        reserved, changes = reserve(job, event.budgets, per_hour * (STOPPED_BEFORE / LEASE), now)
        counted = set_next_check(replace(job, reserved=reserved), job.wake_at or now, job.pending)
        return replace(counted, budgets=tuple(replace(each, limits=None) for each in changes))
    if job.state is JobState.STOPPING or left >= STOPPED_BEFORE:
        return set_next_check(job, job.wake_at or now, job.pending)
    reason = describe_exceeded(exceeded, per_hour, now)
    if job.state is JobState.WAITING:
        return budget_denied(replace(job, machine_id=""), BudgetDenied(reason), now, limits)
    return stop_with_intent(job, StopIntent(IntentKind.BUDGET, now, reason), now, event="budget used up")


def may_renew(job: Job, _event: BudgetsRead) -> bool:
    """Return whether nobody cancelled the job, whose task, if it has one, can be stopped, and which pays a machine."""
    is_sent = job.state is not JobState.LAUNCHING or job.current_attempt.placement.state is PlacementState.PLACED
    return is_sent and is_paying(job) and not job.cancel_requested


def budget_denied(job: Job, event: BudgetDenied, now: datetime, _limits: StackLimits) -> Decision:
    """Wait until the budget has room; that may take until the next month, so the slot is left to others."""
    released = try_again_at(
        replace(job, has_slot=False), WaitReason.BUDGET, event.reason, now, now + BUDGET_POLL_INTERVAL
    )
    return without_slot(job, released)
