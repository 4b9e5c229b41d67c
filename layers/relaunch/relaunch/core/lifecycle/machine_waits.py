"""Actions of the transition table for jobs that need a machine of our own, or wait for its ECS agent (`AGENT`).

Each is a pure function of (job, event, now, limits) and returns the decision to save.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.jobs.attempt import Attempt, IntentKind, PlacementState, StopKind
from relaunch.core.jobs.effects import AdmitWaiting, Effect, ReleaseMachine, RequestLaunch, RequestMachine
from relaunch.core.jobs.job import Job, claimed_machines
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import REFUSED_WAITS, JobState, RefusedCall, Waiting, WaitReason
from relaunch.core.launches.launch import PlacementFailed, Shortage
from relaunch.core.lifecycle.decision import (
    LAUNCH_TIMEOUT,
    Decision,
    end,
    move,
    set_next_check,
    wait,
    wait_for_launch,
    waits_for_slot,
)
from relaunch.core.lifecycle.events import (
    LaunchAnswered,
    MachineAwaited,
    MachineClaimed,
    MachineLimitReached,
    MachineLost,
    SurvivorsLeft,
)
from relaunch.core.lifecycle.gangs import has_gang, leave_survivors, needs_replacements
from relaunch.core.lifecycle.market_choice import with_market_reason
from relaunch.core.lifecycle.refusal_waits import lacks_useful_machine, lose_kept_machine, wait_until_granted
from relaunch.core.lifecycle.restart_policy import next_machine_at, out_of_time, with_useless_machine
from relaunch.core.machines.machine import Consequence, MachineState
from relaunch.core.machines.refusals import POOL_AVOIDED, delay_before
from relaunch.core.offerings.offering import CapacityFailure

# Its machine tells the job; this interval covers a lost message.
_MACHINE_POLL_INTERVAL = timedelta(minutes=2)
# A machine that is gone admits the next job; this interval covers a lost message.
LIMIT_POLL_INTERVAL = timedelta(minutes=5)
"""How long after the last look a job that waits for a limit on machines is looked at again, if nothing wakes it."""
# As long as for a pool without one.
_GANG_AVOIDS = POOL_AVOIDED
# So many machines do not fail alike by chance: the image, the launch template or the network does.
_FAILED_MACHINES = 3


def claim_machine(job: Job, event: MachineClaimed, now: datetime, limits: StackLimits) -> Decision:
    """Wait for a machine that was requested for the job, or has room for it; take a slot."""
    verdict = out_of_time(job, now)
    if verdict is not None:
        return end(job, verdict.state, now, event="out of time", detail=verdict.reason)
    slots = None if job.has_slot else (job.definition.max_running_jobs, limits.max_running_jobs)
    waiting = Waiting(WaitReason.MACHINE, now, event.detail)
    decision = wait(
        replace(_with_claim(job, event), has_slot=True),
        waiting,
        now,
        event="machine claimed",
        wake_at=now + _MACHINE_POLL_INTERVAL,
        effects=(*_effects(event), *admits_next(job)),
    )
    return _with_selection(replace(decision, machines=event.decisions, take_slot_limits=slots), event, now)


def claim_next_machine(job: Job, event: MachineClaimed, now: datetime, _limits: StackLimits) -> Decision:
    """Let the next machine start while the task on the old one saves its checkpoint, or trains on."""
    wake_at = job.wake_at or now
    decision = move(
        _with_claim(job, event),
        job.state,
        now,
        event="next machine claimed",
        detail=event.detail,
        wake_at=wake_at,
        effects=_effects(event),
    )
    return _with_selection(replace(decision, machines=event.decisions), event, now)


def _with_selection(decision: Decision, event: MachineClaimed, now: datetime) -> Decision:
    """Return the decision with what the machine was selected from, which belongs to the next placement."""
    return decision if event.selection is None else replace(decision, selection=event.selection, selected_at=now)


def _with_claim(job: Job, event: MachineClaimed) -> Job:
    requests = job.machines.requested + (1 if event.is_new else 0)
    job = with_market_reason(job, event.selection)
    first, *others = event.ranks or (each.machine.machine_id for each in event.decisions)
    return replace(
        job, machine_id=first, follower_ids=tuple(others), machines=replace(job.machines, requested=requests)
    )


def _effects(event: MachineClaimed) -> tuple[Effect, ...]:
    machine = event.decision.machine
    if event.is_new:
        return (RequestMachine(machine.machine_id),)
    # The jobs of one that is ready know already.
    return (RequestLaunch(),) if machine.state is MachineState.READY else ()


def await_machine(job: Job, event: MachineAwaited, now: datetime, _limits: StackLimits) -> Decision:
    """Go on waiting for the machine, and say how far it is."""
    waiting = Waiting(WaitReason.MACHINE, now, event.detail)
    wake_at = min(now + _MACHINE_POLL_INTERVAL, event.until or now + _MACHINE_POLL_INTERVAL)
    return wait(job, waiting, now, event="waiting for machine", wake_at=wake_at)


def machine_lost(job: Job, event: MachineLost, now: datetime, _limits: StackLimits) -> Decision:
    """Choose another machine: at once, or later if that would fail alike."""
    lost = with_shortage(replace(job, machine_id=""), event, now)
    if job.waiting is not None and job.waiting.reason in REFUSED_WAITS:
        return lose_kept_machine(lost, job.waiting, now)
    if event.refusal is None:
        # There was an instance, which did not become ready; or EC2 never said whether it launched one, and shows none.
        was_launched = not event.machines or any(each.instance_id for each in event.machines)
        return next_machine(lost, event.reason, now, event="machine lost", was_launched=was_launched)
    if event.refusal is Consequence.PAUSE:
        # Nothing that another offering would change: somebody has to do something first.
        refused_since = lost.machines.refused_since or now
        pause = delay_before(event.refusal, now - refused_since, lost.job_id)
        lost = replace(lost, machines=replace(lost.machines, refused_since=refused_since))
        call = RefusedCall.USEFUL_MACHINE if next_machine_at(lost, now) > now else RefusedCall.MACHINE
        return wait_until_granted(lost, call, event.reason, now, pause=pause)
    return _choose_after(lost, event.refusal, event.reason, now, event="machine lost")


def next_machine(job: Job, reason: str, now: datetime, *, event: str, was_launched: bool = True) -> Decision:
    """Choose another machine after one of no use to the job: at once, or as a probe after several in a row.

    One that EC2 did not launch is none of those that the job may have in a day.
    """
    failed = job.machines.failed + 1
    job = replace(job, machines=replace(job.machines, failed=failed))
    job = with_useless_machine(job, now) if was_launched else job
    if failed < _FAILED_MACHINES and next_machine_at(job, now) <= now:
        return _choose_after(job, Consequence.NEXT, reason, now, event=event)
    in_a_row = f"{reason}; {failed} machines in a row were of no use to the job"
    return wait_until_granted(job, RefusedCall.USEFUL_MACHINE, in_a_row, now)


def with_shortage(job: Job, event: MachineLost, now: datetime) -> Job:
    """Return the job, which alone avoids the offerings that EC2 does not have as many of at once as it needs."""
    of_others = [each for each in job.faults.own_failures if each.key not in event.offerings]
    avoided = [CapacityFailure(key, event.reason, now, now + _GANG_AVOIDS) for key in event.offerings]
    return replace(job, faults=replace(job.faults, own_failures=(*of_others, *avoided))) if avoided else job


def _choose_after(job: Job, consequence: Consequence, reason: str, now: datetime, *, event: str) -> Decision:
    refused_since = None if consequence is Consequence.NEXT else job.machines.refused_since or now
    delay = delay_before(consequence, now - (refused_since or now), job.job_id)
    job = replace(job, machines=replace(job.machines, refused_since=refused_since))
    return wait_for_launch(job, now, event=event, detail=reason, delay_seconds=int(delay.total_seconds()))


def next_machine_lost(job: Job, event: MachineLost, now: datetime, limits: StackLimits) -> Decision:
    """Forget the machine for the next placement; ask for another one if EC2 had none of that kind."""
    without = with_shortage(replace(job, machine_id=""), event, now)
    if event.refusal is None:
        without = with_useless_machine(without, now)
    attempt = job.current_attempt
    if has_gang(attempt):
        # Others are selected once its tasks have stopped: all of them, as those that live are not kept any more.
        return leave_survivors(without, SurvivorsLeft(event.reason), now, limits)
    handover = job.current_attempt.handover
    # Without a handover nothing takes its machine away: it was to be moved, and there was none to be requested.
    is_move = handover.is_move if handover is not None else job.state is JobState.RUNNING
    if is_move:
        # It may stay where it is.
        reason = f"there was no machine on spot to move it to: {event.reason}"
        stays = replace(without, market=replace(without.market, reason=reason), attempt=replace(attempt, handover=None))
        return set_next_check(stays, job.wake_at or now)
    effects: tuple[Effect, ...] = (RequestLaunch(),) if event.refusal is Consequence.NEXT else ()
    return set_next_check(without, job.wake_at or now, effects)


def machine_limit_reached(job: Job, event: MachineLimitReached, now: datetime, _limits: StackLimits) -> Decision:
    """Wait until a machine of the stack is gone, or one that starts is ready."""
    waiting = Waiting(WaitReason.MACHINE_LIMIT, now, describe_limit(event))
    # The job was admitted to a slot and leaves it free: admit the next one.
    effects = (AdmitWaiting(),) if waits_for_slot(job) else ()
    wake_at = now + LIMIT_POLL_INTERVAL
    return wait(job, waiting, now, event="waiting for machine limit", wake_at=wake_at, effects=effects)


def describe_limit(event: MachineLimitReached) -> str:
    """Return which limit of the stack is reached, in words."""
    if event.detail:
        return event.detail
    unit = "machines of its own" if event.limit == "machines" else "USD per hour for machines of its own"
    return f"the stack has reached its limit of {unit}"


def admits_next(job: Job) -> tuple[Effect, ...]:
    """Return the effect that admits the next job if this one was admitted to a slot, or to the limits on machines.

    Jobs that end at the same time may all admit the same job, and so may machines.
    """
    waited = job.waiting is not None and job.waiting.reason is WaitReason.MACHINE_LIMIT
    return (AdmitWaiting(),) if waited or waits_for_slot(job) else ()


def needs_next_machine(job: Job, _event: object = None) -> bool:
    """Return whether the next machine is to be requested for a task on one of our own that EC2 takes away."""
    attempt = job.attempt
    if attempt is None or not attempt.placement.machine_id or job.machine_id or job.cancel_requested:
        return False
    if has_gang(attempt):
        # N others would cost as much again: those that are lost are replaced (core.lifecycle.survivors).
        return needs_replacements(job)
    if job.state is JobState.RUNNING:
        return attempt.handover is not None
    is_interrupted = attempt.intent is not None and attempt.intent.kind is IntentKind.INTERRUPTION
    return job.state is JobState.STOPPING and is_interrupted


# The machine of a task that stopped so is not used again.
_UNUSABLE_AFTER = frozenset(
    {
        StopKind.INTERRUPTION,
        StopKind.HOST_LOST,
        StopKind.NOT_STARTED,
        StopKind.UNKNOWN_START,
        StopKind.STARTS_NOWHERE,
        StopKind.NO_CAPACITY,
        StopKind.MACHINE_FAULT,
    }
)


def _at_fault(before: Job, event: object, attempt: Attempt | None, nodes: int) -> set[str]:
    """Return the machines on which tasks could not start, if any could not: of a part the first that was not placed."""
    if attempt is None:
        return set()
    ranks = attempt.placement.ranks
    if len(ranks) == nodes:
        return {each.machine_id for each in ranks}
    is_refused = isinstance(event, LaunchAnswered) and isinstance(event.outcome, PlacementFailed)
    asked = before.attempt.placement.ranks[len(ranks) :] if before.attempt is not None and is_refused else ()
    return {each.machine_id for each in asked[:1]}


def with_releases(before: Job, event: object, decision: Decision, _now: datetime) -> Decision:
    """Return the decision with the effects that release the machines that the job does not need any more."""
    after = decision.job
    released = sorted(claimed_machines(before) - claimed_machines(after))
    if not released:
        return decision
    attempt = after.attempt
    stop = attempt.stop if attempt is not None else None
    used = {each.machine_id for each in attempt.placement.ranks} if attempt is not None else set()
    at_fault = _at_fault(before, event, attempt, after.definition.nodes)
    could_not_start = stop is None or stop.kind in _UNUSABLE_AFTER
    # A refusal says nothing of the machine that was up for the call; an error of its own does.
    is_refused = after.waiting is not None and after.waiting.reason in REFUSED_WAITS
    is_at_fault = lacks_useful_machine(after) or (stop is not None and stop.kind is StopKind.NOT_STARTED)
    could_not_start = could_not_start and (is_at_fault or not is_refused)
    has_task = attempt is not None and attempt.placement.task_id is not None
    # A task that was not allowed to start costs as little as none, and its machine as much.
    # The release before `was_refused` has only the kind.
    was_refused = stop is not None and (stop.was_refused or stop.kind is StopKind.START_REFUSED)
    had_task = {after.machines.ran_on, *(used if has_task and not was_refused else ())}
    effects = (
        ReleaseMachine(
            each,
            after.reason or str(after.state),
            is_unusable=each in at_fault and could_not_start,
            is_unused=each not in had_task,
        )
        for each in released
    )
    # A finished job is due only until its effects are done.
    wake_at = after.wake_at or (after.ended_at and after.ended_at + LAUNCH_TIMEOUT)
    return replace(decision, job=replace(after, wake_at=wake_at, pending=(*effects, *after.pending)))


# An agent disconnects and reconnects several times an hour as part of its normal operation ("Container instance state
# change events", Amazon ECS Developer Guide), mostly within seconds. A new machine takes minutes and may never come.
_SHORTEST_DELAY = timedelta(seconds=5)
_LONGEST_WAIT = timedelta(minutes=3)


def waits_for_agent(job: Job, shortages: frozenset[Shortage], outcome: str, now: datetime) -> bool:
    """Return whether the job keeps its machine, whose agent is not connected: for three minutes at most.

    `outcome` is that of its placement. The placement constraint admits no other instance than the job's machine.
    """
    is_away = bool(job.current_attempt.placement.machine_id) and Shortage.AGENT in shortages
    return is_away and not job.cancel_requested and _away_for(job, outcome, now) < _LONGEST_WAIT


def wait_for_agent(job: Job, outcome: str, now: datetime) -> Decision:
    """Close the placement, and let the next one follow on the same machine.

    The same request would be answered alike: ECS repeats the failures of a client token that it knows ("Ensuring
    idempotency", Amazon ECS API Reference).
    """
    away_for = _away_for(job, outcome, now)
    until = now + min(max(away_for, _SHORTEST_DELAY), _LONGEST_WAIT - away_for)
    placement = job.current_attempt.placement
    closed = replace(placement, state=PlacementState.CLOSED, outcome=outcome)
    job = replace(job, machine_id=placement.machine_id, attempt=replace(job.current_attempt, placement=closed))
    waiting = Waiting(WaitReason.MACHINE, now, f"the agent of {placement.instance_id} is not connected", until)
    launch = RequestLaunch(int((until - now).total_seconds()))
    wake_at = until + LAUNCH_TIMEOUT
    return wait(job, waiting, now, event="agent not connected", wake_at=wake_at, effects=(launch,))


def _away_for(job: Job, outcome: str, now: datetime) -> timedelta:
    """Return for how long placements on the job's machine have had this outcome, since the second one was requested.

    The first one may have been requested long before it was answered.
    """
    attempt = job.current_attempt
    placement = attempt.placement
    closed = [
        each for each in attempt.closed_placements if (each.machine_id, each.outcome) == (placement.machine_id, outcome)
    ]
    return now - [*closed, placement][1].requested_at if closed else timedelta(0)
