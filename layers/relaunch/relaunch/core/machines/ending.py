"""Actions of the transition table that end machines.

Each is a pure function of (machine, event, now, limits) and returns the decision to save.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.decision import MachineDecision, MachineTotals, ignore, micro_usd, move, set_next_check
from relaunch.core.machines.events import InstanceMissing, InstanceSeen, InstanceState, MachineDue, MachineWarned
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import (
    AdmitJobs,
    DeregisterNode,
    Machine,
    MachineEffect,
    MachineState,
    TellJobs,
    TerminateInstance,
)
from relaunch.core.machines.starts import is_told_by_client, remember_unready

NOT_TERMINATED = "not terminated"
"""The timeline event of a machine whose instance lives, and which EC2 refuses to terminate."""
ENDING_LOOK = timedelta(minutes=1)
ENDING_LIMIT = timedelta(minutes=30)
"""How long an instance may take to end: those with accelerators take up to six minutes."""
TOLD_EVERY = timedelta(hours=1)
"""How often an alert names an instance that EC2 does not end: it is paid as long as it lives."""
# EC2 does not bill a spot instance that it interrupts within its first hour, and one that its user ends to the second
# ("Billing for interrupted Spot Instances", EC2 User Guide). It interrupts two minutes after its warning, if at all.
_FREE_HOUR = timedelta(hours=1)
_WARNING_LEAD = timedelta(minutes=2)
_LEFT_FOR = timedelta(minutes=3)
# What EC2 describes is eventually consistent and up to a minute behind a launch.
MISSING_GRACE = timedelta(minutes=5)


def left_until(machine: Machine, event: MachineWarned) -> datetime | None:
    """Return until when EC2 is left to interrupt the machine, None if it does not, or that saves nothing."""
    is_interrupted = machine.request.purchase is PurchaseOption.SPOT and not event.is_rebalance and not event.cause
    age = event.at + _WARNING_LEAD - (machine.launched_at or machine.created_at)
    return event.at + _LEFT_FOR if is_interrupted and age < _FREE_HOUR else None


def leave_to_ec2(machine: Machine, event: MachineWarned, _now: datetime, _limits: MachineLimits) -> MachineDecision:
    """Leave a machine to EC2 that was warned for another reason before, or ends already, or note that it was."""
    until = left_until(machine, event)
    wake_at = until if machine.state is MachineState.ENDING else machine.wake_at
    return set_next_check(replace(machine, left_until=until), wake_at)


def is_left_to_ec2(machine: Machine, now: datetime) -> bool:
    """Return whether the instance is not to be terminated yet, because EC2 is about to, for nothing."""
    return machine.left_until is not None and now < machine.left_until


def terminate(
    machine: Machine, now: datetime, *, event: str, detail: str, before: tuple[MachineEffect, ...] = ()
) -> MachineDecision:
    """End a machine: its jobs choose another one, and its instance is terminated; `before` are effects that come first.

    It counts until EC2 confirms that it is gone: accelerated instances take up to six minutes. One that is left to EC2
    is terminated only if it outlives its interruption.
    """
    if is_left_to_ec2(machine, now):
        decision = _end(machine, now, event=event, detail=f"{detail}; left to EC2", effects=before)
        return replace(decision, machine=replace(decision.machine, wake_at=machine.left_until))
    instance = (TerminateInstance(machine.instance_id),) if machine.instance_id else ()
    return _end(machine, now, event=event, detail=detail, effects=(*before, *instance))


def _end(
    machine: Machine, now: datetime, *, event: str, detail: str, effects: tuple[MachineEffect, ...]
) -> MachineDecision:
    ended, notices = _without_claims(machine)
    return move(
        replace(ended, reason=detail),
        MachineState.ENDING,
        now,
        event=event,
        detail=detail,
        wake_at=now + ENDING_LOOK,
        effects=(*effects, *notices),
    )


def _without_claims(machine: Machine) -> tuple[Machine, tuple[MachineEffect, ...]]:
    """Return the machine without claims, and the effect that tells the jobs."""
    job_ids = tuple(each.job_id for each in machine.claims)
    return replace(machine, claims=()), (TellJobs(job_ids),) if job_ids else ()


def gone(
    machine: Machine, now: datetime, *, event: str, detail: str, before: tuple[MachineEffect, ...] = ()
) -> MachineDecision:
    """Let a machine be gone, which gives back its place in the counters."""
    ended, notices = _without_claims(machine)
    node = (DeregisterNode(machine.node),) if machine.node else ()
    effects = (*before, *notices, *node, AdmitJobs())
    reason = detail or machine.reason
    decision = move(
        replace(ended, reason=reason),
        MachineState.GONE,
        now,
        event=event,
        detail=detail,
        # It is due only until its effects are done.
        wake_at=now + ENDING_LOOK,
        effects=effects,
    )
    return replace(decision, added=MachineTotals(-1, -micro_usd(machine.usd_per_hour)))


def instance_ending(machine: Machine, event: InstanceSeen, now: datetime, _limits: MachineLimits) -> MachineDecision:
    """Follow an instance that ends: by EC2, by its watchdog, or by somebody else."""
    seen = event.observation
    detail = ", ".join(part for part in (f"{seen.instance_id} is {seen.state}", seen.state_reason) if part)
    end_reason = seen.state_reason or machine.end_reason
    ended = replace(machine, ended_at=min(machine.ended_at or event.at, event.at), end_reason=end_reason)
    # Events have no reason; EC2's description of the instance, which is looked at next, has one.
    is_unready = machine.lacks_reason or (machine.state is MachineState.STARTING and machine.warned_at is None)
    is_late = now - ended.ended_at >= MISSING_GRACE if ended.ended_at else False
    ended = replace(ended, lacks_reason=is_unready and not seen.state_reason and not is_late)
    is_unready = is_unready and is_told_by_client(seen.state_reason)
    learned = remember_unready(machine, detail, now) if is_unready else ()
    if seen.state is InstanceState.TERMINATED and not ended.lacks_reason:
        return gone(ended, now, event="terminated", detail=detail, before=learned)
    # Stopped instances keep their volumes, which cost: ours are never stopped, only terminated.
    is_stopping = seen.state in (InstanceState.STOPPING, InstanceState.STOPPED)
    effects = (*learned, TerminateInstance(seen.instance_id)) if is_stopping else learned
    if machine.state is MachineState.ENDING:
        return _not_gone(replace(ended, reason=detail if learned else ended.reason), detail, now, effects)
    return _end(ended, now, event="instance ends", detail=detail, effects=effects)


def note_earlier_end(machine: Machine, event: InstanceSeen, _now: datetime, _limits: MachineLimits) -> MachineDecision:
    """Note that an instance had ended before what was heard first, as it shuts down for minutes before it has ended."""
    return set_next_check(replace(machine, ended_at=event.at), machine.wake_at)


def terminate_again(machine: Machine, event: InstanceSeen, now: datetime, _limits: MachineLimits) -> MachineDecision:
    """Terminate an instance that goes on running although it was to end, unless EC2 is left to do it."""
    if is_left_to_ec2(machine, now):
        return set_next_check(machine, machine.left_until)
    seen = event.observation
    effects = (TerminateInstance(seen.instance_id),)
    return _not_gone(replace(machine, left_until=None), f"{seen.instance_id} is {seen.state}", now, effects)


def _not_gone(machine: Machine, found: str, now: datetime, effects: tuple[MachineEffect, ...] = ()) -> MachineDecision:
    """Look again at an instance that is not gone, and tell somebody at times if it takes too long."""
    since = machine.state_since or machine.created_at
    is_known = machine.reason == _refusal(machine) or _is_told(machine, now)
    if now - since < ENDING_LIMIT or is_known:
        return set_next_check(machine, now + ENDING_LOOK, effects)
    minutes = (now - since) // timedelta(minutes=1)
    detail = f"EC2 has not ended it in {minutes} minutes, though it was asked to: {found}; it may cost until it is gone"
    return _tell(machine, detail, now, now + ENDING_LOOK, effects)


def _is_told(machine: Machine, now: datetime) -> bool:
    return machine.told_at is not None and now - machine.told_at < TOLD_EVERY


def _tell(
    machine: Machine, detail: str, now: datetime, wake_at: datetime | None, effects: tuple[MachineEffect, ...]
) -> MachineDecision:
    alerted = replace(machine, is_alert=True, reason=detail, told_at=now)
    return move(alerted, machine.state, now, event=NOT_TERMINATED, detail=detail, wake_at=wake_at, effects=effects)


def _refusal(machine: Machine) -> str:
    return f"EC2 refuses to terminate {machine.instance_id}, which lives: check its tags, and the role that asks"


def termination_refused(machine: Machine, now: datetime) -> MachineDecision:
    """Note at times that EC2 refuses to terminate the instance, which lives: somebody has to do something about it.

    It is no event of the table, for it leads nowhere: what EC2 describes goes on to decide what follows.
    """
    detail = _refusal(machine)
    if machine.reason == detail and _is_told(machine, now):
        return ignore(machine, "the refusal is known")
    return _tell(machine, detail, now, machine.wake_at, machine.pending)


def instance_missing(
    machine: Machine, _event: InstanceMissing, now: datetime, _limits: MachineLimits
) -> MachineDecision:
    """Consider the instance gone if EC2 does not know it after the grace period either."""
    if machine.unseen_since is None:
        return set_next_check(replace(machine, unseen_since=now), now + ENDING_LOOK)
    if now - machine.unseen_since < MISSING_GRACE:
        return ignore(machine, "not known to EC2 for less than the grace period")
    return gone(machine, now, event="terminated", detail="EC2 does not know the instance any more")


def wake_ending(machine: Machine, _event: MachineDue, now: datetime, _limits: MachineLimits) -> MachineDecision:
    """Look again later: EC2 did not answer."""
    if is_left_to_ec2(machine, now):
        return set_next_check(machine, max(now + ENDING_LOOK, machine.left_until or now))
    return _not_gone(machine, f"EC2 does not say what became of {machine.instance_id}", now)
