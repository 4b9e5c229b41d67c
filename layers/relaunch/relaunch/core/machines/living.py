"""Actions of the transition table for machines whose instance lives.

Each is a pure function of (machine, event, now, limits) and returns the decision to save.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.machines.decision import MachineDecision, move, set_next_check
from relaunch.core.machines.ending import left_until, terminate
from relaunch.core.machines.events import (
    ClaimAsked,
    ClaimReleased,
    InstanceSeen,
    MachineAbandoned,
    MachineDue,
    MachineWarned,
    NodeSeen,
)
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import NOTHING, AdmitJobs, Claim, Machine, MachineState, TellJobs
from relaunch.core.machines.requesting import NEXT_LOOK
from relaunch.core.machines.starts import CLAIMED, RELEASED, RELEASED_UNUSED, forget_unready, remember_unready

NOT_READY = "start deadline"
"""The timeline event of a machine that was ended as it was not ready in time."""
_NOT_CONNECTED = "registered, and its agent is not connected"
_DRAINING = "registered, and is drained"
REGISTERED = "registered"
"""The timeline event of a machine that has registered and is not ready yet."""
BECAME_READY = "ready"
# Agents disconnect and reconnect several times an hour: one that has registered in time may be away at its deadline.
_AGENT_GRACE = timedelta(minutes=3)
ABANDONED = "abandoned"
"""The timeline event of a machine that does not confirm the stop of a task, or whose agent stays away."""
HANDOVER_TIME = timedelta(minutes=10)
"""How long the other jobs of an abandoned machine have to save and leave: twice what the next machine takes."""
# The interval at which a machine that is ready is described, in case its events were lost.
HEARTBEAT = timedelta(minutes=10)


def node_seen(machine: Machine, event: NodeSeen, now: datetime, limits: MachineLimits) -> MachineDecision:
    """Let the jobs launch once the machine has registered with all its accelerators and its agent is connected."""
    seen = replace(machine, node=event.node, unseen_since=None, boot=event.boot or machine.boot)
    lacks = _lacking(event, machine)
    if not lacks:
        ready = replace(seen, registered_at=event.at, reason="")
        job_ids = tuple(each.job_id for each in machine.claims)
        return move(
            ready,
            MachineState.READY,
            now,
            event=BECAME_READY,
            detail=event.node,
            wake_at=now + HEARTBEAT,
            effects=(TellJobs(job_ids), *forget_unready(ready, now), AdmitJobs()),
        )
    wake_at = min(now + NEXT_LOOK, _registration_deadline(replace(seen, reason=lacks), limits))
    if seen.node == machine.node and machine.reason == lacks:
        return set_next_check(seen, wake_at)
    return move(replace(seen, reason=lacks), machine.state, now, event=REGISTERED, detail=lacks, wake_at=wake_at)


def node_draining(machine: Machine, event: NodeSeen, now: datetime, _limits: MachineLimits) -> MachineDecision:
    """Note that the node has registered and takes no tasks: EC2 warned of it, or a person drains it."""
    seen = replace(machine, node=event.node, unseen_since=None, boot=event.boot or machine.boot, reason=_DRAINING)
    if seen.node == machine.node and machine.reason == _DRAINING:
        return set_next_check(seen, machine.wake_at)
    return move(seen, machine.state, now, event=REGISTERED, detail=_DRAINING, wake_at=machine.wake_at)


def _lacking(event: NodeSeen, machine: Machine) -> str:
    registered = event.registered
    needed = machine.capacity
    if registered.gpus < needed.gpus:
        return f"registered with {registered.gpus:g} of its {needed.gpus:g} GPUs"
    if registered.neuron_devices < needed.neuron_devices:
        return f"registered with {registered.neuron_devices} of its {needed.neuron_devices} Neuron devices"
    return "" if event.is_connected else _NOT_CONNECTED


def _registration_deadline(machine: Machine, limits: MachineLimits) -> datetime:
    name = machine.offering.instance_type if machine.offering is not None else ""
    deadline = (machine.launched_at or machine.created_at) + limits.registration_deadline_of(name)
    if machine.reason != _NOT_CONNECTED:
        return deadline
    # Nobody may have looked before: the agent was connected then, and is away for a moment.
    told_at = (each.at for each in machine.timeline if (each.event, each.detail) == (REGISTERED, _NOT_CONNECTED))
    return max(deadline, next(told_at, deadline)) + _AGENT_GRACE


def wake_starting(machine: Machine, _event: MachineDue, now: datetime, limits: MachineLimits) -> MachineDecision:
    """End a machine that did not become ready in time, else look again."""
    deadline = _registration_deadline(machine, limits)
    if now < deadline:
        return set_next_check(machine, min(now + NEXT_LOOK, deadline))
    found = machine.reason or "it never registered with the cluster"
    detail = f"not ready within {deadline - (machine.launched_at or machine.created_at)}: {found}"
    # What is drained has shown that machines of its pool and its image register.
    before = remember_unready(machine, detail, now) if found != _DRAINING else ()
    return terminate(replace(machine, is_unusable=True), now, event=NOT_READY, detail=detail, before=before)


def wake_ready(machine: Machine, _event: MachineDue, now: datetime, limits: MachineLimits) -> MachineDecision:
    """End a machine without claims when it was kept for long enough, else look again."""
    if machine.leave_by is not None and now >= machine.leave_by:
        return terminate(machine, now, event=ABANDONED, detail=machine.reason)
    if machine.claims or machine.idle_since is None:
        # After a warning EC2 ends it within minutes.
        look_at = now + (NEXT_LOOK if machine.is_left or machine.away_since else HEARTBEAT)
        return set_next_check(machine, min(look_at, machine.leave_by or look_at))
    until = machine.idle_since + limits.warm_time
    if now < until:
        return set_next_check(machine, min(until, now + HEARTBEAT))
    return terminate(machine, now, event="idle", detail=f"without a job for {limits.warm_time}")


def is_kept_warm(machine: Machine, now: datetime, limits: MachineLimits) -> bool:
    """Return whether a machine has no job because it is kept for the next one, for as long as the stack says."""
    is_idle = machine.state is MachineState.READY and not machine.claims
    return is_idle and machine.idle_since is not None and now < machine.idle_since + limits.warm_time


def instance_alive(machine: Machine, _event: InstanceSeen, _now: datetime, _limits: MachineLimits) -> MachineDecision:
    """Forget that EC2 did not know the instance."""
    return set_next_check(replace(machine, unseen_since=None), machine.wake_at)


def machine_warned(machine: Machine, event: MachineWarned, now: datetime, _limits: MachineLimits) -> MachineDecision:
    """Give the machine no more jobs; end it at once if no task can be on it yet, or leave that to EC2."""
    warned = replace(machine, warned_at=event.at, left_until=left_until(machine, event))
    detail = event.cause or ("EC2 recommends to rebalance" if event.is_rebalance else "EC2 will interrupt it")
    if machine.state is not MachineState.READY or not machine.claims:
        return terminate(warned, now, event="warned", detail=detail)
    # The jobs whose task is not placed yet choose another machine.
    job_ids = tuple(each.job_id for each in machine.claims)
    return move(
        replace(warned, reason=detail),
        machine.state,
        now,
        event="warned",
        detail=detail,
        wake_at=now + NEXT_LOOK,
        effects=(TellJobs(job_ids),),
    )


def abandon(machine: Machine, event: MachineAbandoned, now: datetime, _limits: MachineLimits) -> MachineDecision:
    """End a machine with a task that nobody waits for; its other jobs leave it before."""
    others = _others(machine, event.job_id)
    leave_by = machine.leave_by or now + HANDOVER_TIME
    # It gets no more jobs, and ends with its last claim, as one that EC2 takes away.
    left = replace(machine, claims=others, is_unusable=True, leave_by=leave_by)
    if not others:
        return terminate(left, now, event=ABANDONED, detail=event.detail)
    job_ids = tuple(each.job_id for each in others)
    return move(
        replace(left, reason=event.detail),
        machine.state,
        now,
        event=ABANDONED,
        detail=f"{event.detail}; its other jobs leave it by {leave_by:%H:%M:%S} UTC",
        # They are warned at the next look.
        wake_at=now,
        effects=(TellJobs(job_ids),),
    )


def add_claim(machine: Machine, event: ClaimAsked, now: datetime, _limits: MachineLimits) -> MachineDecision:
    """Add the claim of a job."""
    claimed = replace(machine, claims=(*machine.claims, event.claim), idle_since=None)
    return move(claimed, machine.state, now, event=CLAIMED, detail=event.claim.job_id, wake_at=machine.wake_at)


def release_claim(machine: Machine, event: ClaimReleased, now: datetime, limits: MachineLimits) -> MachineDecision:
    """Remove the claim of a job; a machine without claims is kept for the warm time, or ended."""
    is_unusable = machine.is_unusable or event.is_unusable
    released = replace(machine, claims=_others(machine, event.job_id), is_unusable=is_unusable)
    wake_at = machine.wake_at
    entry = RELEASED_UNUSED if event.is_unused else RELEASED
    detail = "; ".join(part for part in (event.job_id, event.detail) if part)
    # A job that waits for the limits may fit where this one was.
    admit = (AdmitJobs(),) if released.accepts(NOTHING) else ()
    if released.claims:
        return move(released, machine.state, now, event=entry, detail=detail, wake_at=wake_at, effects=admit)
    if machine.state is MachineState.REQUESTED:
        # EC2 was asked: its answer, or the search for the instance, decides what follows.
        return move(released, machine.state, now, event=entry, detail=detail, wake_at=wake_at)
    is_kept = machine.state is MachineState.READY and bool(limits.warm_time)
    if is_unusable or machine.warned_at is not None or not is_kept:
        return terminate(released, now, event=entry, detail=detail)
    idle = replace(released, idle_since=now)
    return move(
        idle,
        machine.state,
        now,
        event=entry,
        detail=f"{detail}; kept until {now + limits.warm_time:%H:%M:%S} UTC",
        # The warm time may be made shorter, or machines turned off, before it is over.
        wake_at=now + min(limits.warm_time, HEARTBEAT),
        effects=admit,
    )


def _others(machine: Machine, job_id: str) -> tuple[Claim, ...]:
    return tuple(each for each in machine.claims if each.job_id != job_id)
