"""Actions of the transition table for jobs without a placed task.

Each is a pure function of (job, event, now, limits) and returns the decision to save.
"""

import zlib
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.definitions.durations import write_duration
from relaunch.core.jobs.attempt import Attempt, IntentKind, Placement, PlacementState, Rank, StopIntent
from relaunch.core.jobs.effects import Effect, RequestLaunch
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.overheads import machine_asked_at, with_measured
from relaunch.core.jobs.progress import resumed_step
from relaunch.core.jobs.state import JobState, RefusedCall
from relaunch.core.launches.launch import (
    LaunchConflict,
    LaunchDeferred,
    LaunchRefused,
    LaunchUncertain,
    PlacementFailed,
    Shortage,
    TaskPlaced,
)
from relaunch.core.lifecycle.decision import (
    CLOSE_LOOK,
    LAUNCH_TIMEOUT,
    Decision,
    end,
    ignore,
    move,
    set_next_check,
    stop_effects,
    wait_for_launch,
)
from relaunch.core.lifecycle.events import (
    CancelAsked,
    LaunchAnswered,
    LaunchRepeated,
    OfferingChosen,
    PlacementExpired,
    TimePassed,
)
from relaunch.core.lifecycle.long_waits import where_it_resumes
from relaunch.core.lifecycle.machine_waits import admits_next, next_machine, wait_for_agent, waits_for_agent
from relaunch.core.lifecycle.market_choice import with_market_reason
from relaunch.core.lifecycle.refusal_waits import next_try, wait_limit, wait_until_granted, with_refusal
from relaunch.core.lifecycle.restart_policy import out_of_time, useless_for_all
from relaunch.core.lifecycle.stop_reason import CLOCK_SKEW
from relaunch.core.lifecycle.stopping import avoid, stop_with_intent, with_task
from relaunch.core.lifecycle.withdrawals import start_deadline, with_looks, withdraw_part
from relaunch.core.selection.neuron_devices import NeuronClaim
from relaunch.core.selection.speeds import name_alone

# Throttling lasts seconds; the quota of PROVISIONING tasks has room again within minutes. Waiting jobs together send
# this many requests per second: half of the 40 that RunTask and StopTask share, and enough to fill the quota of 500
# again within a minute, the interval of managed scaling.
_DEFERRED_DELAY_SECONDS = 30
_DEFERRED_PER_SECOND = 20
# The maximum delay of an SQS message.
_LONGEST_DELAY_SECONDS = 900
_UNCERTAIN_DELAY_SECONDS = 5
# The delay of a repeated launch grows: SQS may deliver a message twice, each copy repeats the launch, and at a constant
# rate their number would double every few minutes during an outage.
_LONGEST_REPEAT_DELAY_SECONDS = 300
# An attempt is one item under 4 KB.
_KEPT_PLACEMENTS = 8
_KEPT_GANGS = 2
# How many Neuron devices an attempt tries before the offering counts as full.
_DEVICE_PLACEMENTS = 3
_STOPPED_FOR = {IntentKind.INTERRUPTION: "interruption warning"}
_PORTS_TAKEN = frozenset({Shortage.PORTS})
_TAKEN = frozenset({Shortage.GPU, Shortage.PORTS, Shortage.ROOM})


def request_placement(job: Job, event: OfferingChosen, now: datetime, limits: StackLimits) -> Decision:
    """Save the placement before RunTask is sent, unless the job is out of time."""
    verdict = out_of_time(job, now)
    if verdict is not None:
        return end(job, verdict.state, now, event="out of time", detail=verdict.reason)
    chosen = event.offering
    number, closed = _attempt_to_launch(job.attempt)
    asked_at = machine_asked_at(job)
    job = job if closed else with_measured(job, event.newest, now)
    progress = replace(job.progress, accelerators=name_alone(job.definition, job.revision, chosen.instance_type))
    job = replace(job, machines=replace(job.machines, asked_at=asked_at), progress=progress)
    if event.newest is None:
        job = replace(job, progress=replace(job.progress, first_step=resumed_step(event.resume_uri)))
    placement = Placement(
        number=closed[-1].number + 1 if closed else 1,
        offering=chosen.key,
        capacity_provider=chosen.capacity_provider or "",
        price_usd_per_hour=chosen.expected_usd_per_hour or 0.0,
        requested_at=now,
        resume_uri=event.resume_uri,
        revision_arn=event.prepared.revision_arn,
        neuron_devices=event.prepared.neuron_devices,
        takes_all_neuron=event.prepared.takes_all_neuron,
        gpu_partition_size=chosen.instance_type.gpu_partition_size,
        is_managed=chosen.is_managed,
        is_price_limit=chosen.price_usd_per_hour is None and chosen.expected_usd_per_hour is not None,
        instance_id=(event.machine.instance_id or "") if event.machine else "",
        machine_id=event.machine.machine_id if event.machine else "",
        usd_per_hour_by_zone=chosen.usd_per_hour_by_zone,
        followers=tuple(Rank(each.machine_id, each.instance_id or "") for each in event.followers),
        master_address=event.master_address,
        limit_usd_per_hour=chosen.on_demand_usd_per_hour or 0.0 if chosen.usd_per_hour_by_zone else 0.0,
    )
    attempt = Attempt(number, placement, closed_placements=_kept_placements(closed))
    effects = admits_next(job)
    slots = None if job.has_slot else (job.definition.max_running_jobs, limits.max_running_jobs)
    job = replace(with_market_reason(job, event.selection), attempt=attempt, has_slot=True, reason="", machine_id="")
    where = (
        f" on {', '.join(each.instance_id for each in placement.ranks)}"
        if event.machine
        else f" by {placement.capacity_provider}"
    )
    has_prices = job.definition.target.capabilities.offers_instance_types
    detail = f"{chosen.key}{where} at {placement.price_text}" if has_prices else str(chosen.key)
    detail += f", resuming from {event.resume_uri}" if event.resume_uri else ""
    if event.prepared.neuron_devices:
        detail += f", {NeuronClaim(event.prepared.neuron_devices)}"
    detail += _describe_unusable(event.unusable)
    decision = move(
        job, JobState.LAUNCHING, now, event="launching", detail=detail, wake_at=now + LAUNCH_TIMEOUT, effects=effects
    )
    selected_at = now if event.selection is not None else None
    return replace(decision, selection=event.selection, selected_at=selected_at, take_slot_limits=slots)


def _describe_unusable(unusable: tuple[str, ...]) -> str:
    """Return which newer checkpoints were passed over, the newest in words; empty if none was."""
    others = len(unusable) - 1
    more = f", nor can {others} more" if others > 0 else ""
    return f"; {unusable[0]}{more}" if unusable else ""


def _attempt_to_launch(previous: Attempt | None) -> tuple[int, tuple[Placement, ...]]:
    """Return the number of the attempt and its closed placements; a task that may have started uses up a number."""
    if previous is None:
        return 1, ()
    if previous.is_number_used:
        return previous.number + 1, ()
    return previous.number, (*previous.closed_placements, previous.placement)


def _kept_placements(closed: tuple[Placement, ...]) -> tuple[Placement, ...]:
    """Return the latest placements without their prices, those with a task first: a late event of it needs them."""
    most = _KEPT_GANGS if any(each.followers for each in closed) else _KEPT_PLACEMENTS
    surplus = max(len(closed) - most, 0)
    taskless = [each.number for each in closed[:-1] if each.task_id is None][:surplus]
    kept = [each for each in closed if each.number not in taskless][-most:]
    # Nothing ran there, or it would be another attempt.
    return tuple(replace(each, usd_per_hour_by_zone={}) for each in kept)


def launch_repeated(job: Job, _event: LaunchRepeated, now: datetime, _limits: StackLimits) -> Decision:
    """Store that the placement is sent by a second function, before it is.

    Neither knows what the other one does: the first one can no longer save a refusal as if it were the only one.
    """
    return set_next_check(_with_two_senders(job), now + LAUNCH_TIMEOUT)


def _with_two_senders(job: Job) -> Job:
    attempt = job.current_attempt
    return replace(job, attempt=replace(attempt, placement=replace(attempt.placement, senders=2)))


def launch_answered(job: Job, event: LaunchAnswered, now: datetime, limits: StackLimits) -> Decision:
    """Handle the answer of the target to a launch."""
    outcome = event.outcome
    match outcome:
        case TaskPlaced(task_id, followers, since):
            return _placed(job, task_id, now, limits, followers, since)
        case LaunchConflict((task_id, *others)):
            # The client token is unique, so the task is of this placement, launched before the settings changed.
            return _with_stops(_placed(job, task_id, now, limits), tuple(others))
        case PlacementFailed():
            return _placement_failed(job, outcome, event, now)
        case LaunchDeferred(reason) | LaunchUncertain(reason):
            named = _with_placed(job, outcome.placed)
            delay_seconds = _repeat_delay_seconds(named, outcome, now)
            decision = _send_again(named, reason, now, event="launch to be repeated", delay_seconds=delay_seconds)
            is_refused = isinstance(outcome, LaunchDeferred) and outcome.is_refused
            after = with_refusal(decision.job, RefusedCall.LAUNCH, now) if is_refused else decision.job
            # Saved also if the launch is requested already: should the placement expire, a probe is next.
            return replace(decision, job=after, is_ignored=decision.is_ignored and not is_refused and named is job)
        case LaunchRefused() as refusal:
            return _refused(job, refusal, now)
        case _:  # a conflict that names no task
            return _refused(job, LaunchRefused("ConflictException, and it names no task"), now)


def _with_placed(job: Job, placed: tuple[str, ...]) -> Job:
    """Return the job of which the target has named the tasks of the first ranks; it may not list them later."""
    attempt = job.current_attempt
    if len(placed) <= len(attempt.placement.placed_ids):
        return job
    return replace(job, attempt=replace(attempt, placement=replace(attempt.placement, placed_ids=placed)))


def _placement_failed(job: Job, failed: PlacementFailed, event: LaunchAnswered, now: datetime) -> Decision:
    if failed.placed:
        return withdraw_part(job, failed, now)
    outcome = f"the cluster placed nothing: {', '.join(failed.reasons)}"
    if waits_for_agent(job, failed.shortages, outcome, now):
        return wait_for_agent(job, outcome, now)
    has_lost_device = _lost_device(job, failed.shortages, outcome)
    if has_lost_device:
        # Its machine may have other devices.
        job = replace(job, machine_id=job.current_attempt.placement.machine_id)
    is_full = not has_lost_device
    # A machine that ran other tasks may be full; one that was bought for this one should not be.
    return _next_placement(
        job,
        outcome,
        now,
        event="placement failed",
        is_full=is_full,
        found=failed.detail,
        is_unused=event.is_unused,
        is_taken=failed.shortages <= _TAKEN,
    )


def _repeat_delay_seconds(job: Job, outcome: LaunchDeferred | LaunchUncertain, now: datetime) -> int:
    """Return the delay before the same placement is sent again.

    It grows with the age of the placement, because duplicate messages repeat it too. While the target throttles it
    grows with the number of waiting jobs, which keeps their rate constant, and has jitter.
    """
    waiting = outcome.waiting if isinstance(outcome, LaunchDeferred) else None
    if waiting is None:
        age_seconds = int((now - job.current_attempt.placement.requested_at).total_seconds())
        least = _DEFERRED_DELAY_SECONDS if isinstance(outcome, LaunchDeferred) else _UNCERTAIN_DELAY_SECONDS
        return min(max(age_seconds // 2, least), _LONGEST_REPEAT_DELAY_SECONDS)
    mean = max(waiting // _DEFERRED_PER_SECOND, _DEFERRED_DELAY_SECONDS)
    spread = zlib.crc32(f"{job.job_id}/{job.version}".encode()) % mean
    return min(mean // 2 + spread, _LONGEST_DELAY_SECONDS)


def _lost_device(job: Job, shortages: frozenset[Shortage], outcome: str) -> bool:
    """Return whether another task took the Neuron device; only a few devices are tried."""
    attempt = job.current_attempt
    is_taken = len(attempt.placement.neuron_devices) == 1 and shortages == _PORTS_TAKEN
    return is_taken and sum(each.outcome == outcome for each in attempt.closed_placements) < _DEVICE_PLACEMENTS


def _refused(job: Job, refusal: LaunchRefused, now: datetime) -> Decision:
    if refusal.placed:
        return withdraw_part(job, refusal, now)
    if job.cancel_requested:
        return _cancelled(job, now)
    detail = f"the cluster refuses the launch: {refusal.reason}"
    if refusal.is_about_provider and job.current_attempt.placement.capacity_provider:
        return _provider_refused(job, detail, now)
    if not refusal.may_heal:
        return end(job, JobState.FAILED, now, event="launch refused", detail=detail)
    # Closed, because nothing was launched with its client token: the next one need not ask about this one.
    closed = replace(job.current_attempt.placement, state=PlacementState.CLOSED, outcome=detail)
    job = replace(job, attempt=replace(job.current_attempt, placement=closed))
    return wait_until_granted(job, RefusedCall.LAUNCH, detail, now, machine_id=closed.machine_id)


def _provider_refused(job: Job, detail: str, now: datetime) -> Decision:
    """Try another offering, or this one again later, for as long as a job is held back by a refusal."""
    job = with_refusal(job, RefusedCall.LAUNCH, now)
    has_trained = job.totals.first_started_at is not None
    if next_try(job.refusals[RefusedCall.LAUNCH], has_trained=has_trained, is_bought=False) is None:
        limit = write_duration(wait_limit(has_trained=has_trained))
        detail = f"refused for {limit}: {detail}{where_it_resumes(job)}"
        return end(job, JobState.FAILED, now, event="refused for too long", detail=detail)
    return _next_placement(job, detail, now, event="placement refused", is_full=True)


def _placed(
    job: Job,
    task_id: str,
    now: datetime,
    limits: StackLimits,
    followers: tuple[str, ...] = (),
    since: datetime | None = None,
) -> Decision:
    placed = with_task(job, task_id, "the cluster placed it", since or now, followers)
    attempt = placed.current_attempt
    is_several = bool(attempt.placement.followers)
    if is_several:
        # Each is on its own machine.
        zone = attempt.placement.offering.zone
        placed = replace(placed, attempt=replace(attempt, instance_id=attempt.placement.instance_id, zone=zone))
    if attempt.intent is not None:
        event = _STOPPED_FOR.get(attempt.intent.kind, "cancelling")
        stopped = stop_with_intent(placed, attempt.intent, now, event=event)
        return with_looks(stopped) if is_several else stopped
    wake_at = start_deadline(attempt, limits)
    if not is_several:
        return move(placed, JobState.LAUNCHING, now, event="task placed", detail=task_id, wake_at=wake_at)
    # What was seen of a rank before all were placed was not taken.
    wake_at = min(wake_at, now + CLOSE_LOOK)
    detail = ", ".join(attempt.placement.task_ids)
    return with_looks(move(placed, JobState.LAUNCHING, now, event="task placed", detail=detail, wake_at=wake_at))


def _with_stops(decision: Decision, task_ids: tuple[str, ...]) -> Decision:
    effects = stop_effects(task_ids, "one launch made more than one task")
    return replace(decision, job=replace(decision.job, pending=(*decision.job.pending, *effects)))


def _send_again(job: Job, reason: str, now: datetime, *, event: str, delay_seconds: int) -> Decision:
    if job.wake_at is not None and job.wake_at - LAUNCH_TIMEOUT > now + CLOCK_SKEW:
        # SQS delivers a request twice, and each copy sends the placement: if each asked for a request of its own, their
        # number would double again and again while RunTask is not answered.
        return ignore(job, "the launch is requested already, for later")
    effects = (RequestLaunch(delay_seconds),)
    wake_at = now + timedelta(seconds=delay_seconds) + LAUNCH_TIMEOUT
    job = replace(_with_two_senders(job), reason=reason)
    return move(job, JobState.LAUNCHING, now, event=event, detail=reason, wake_at=wake_at, effects=effects)


def _cancelled(job: Job, now: datetime) -> Decision:
    return end(job, JobState.CANCELLED, now, event="cancelled", detail=job.cancel_requested)


def _next_placement(  # noqa: PLR0913 - all of them named at every call
    job: Job,
    outcome: str,
    now: datetime,
    *,
    event: str,
    is_full: bool,
    found: str = "",
    is_unused: bool = False,
    is_taken: bool = False,
) -> Decision:
    """Close the placement and launch again; `found` is for the timeline only, because an attempt is small.

    `is_unused`: the machine was bought for it, and ran nothing: all jobs with the revision get to know that.
    """
    if job.cancel_requested:
        return _cancelled(job, now)
    closed = replace(job.current_attempt.placement, state=PlacementState.CLOSED, outcome=outcome)
    job = replace(job, attempt=replace(job.current_attempt, placement=closed))
    before: tuple[Effect, ...] = ()
    detail = f"{outcome}; {found}" if found else outcome
    if is_full and closed.machine_id:
        # That one machine has no room says nothing of the next one; if several have none, the job does not fit.
        decision = next_machine(job, detail, now, event=event)
        if not is_unused:
            return decision
        refused = useless_for_all(job, closed.machine_id, outcome, now)
        return replace(decision, job=replace(decision.job, pending=(refused, *decision.job.pending)))
    if is_full:
        job, before = avoid(job, outcome, now, is_taken=is_taken)
    return wait_for_launch(job, now, event=event, detail=detail, before=before)


def placement_expired(job: Job, event: PlacementExpired, now: datetime, _limits: StackLimits) -> Decision:
    """Close a placement without a task and launch again, or end a cancelled job.

    If it was refused the next machine is a probe: this one may be gone.
    """
    placement = job.current_attempt.placement
    refusal = job.refusals.get(RefusedCall.LAUNCH)
    if event.keeps_machine:
        job = replace(job, machine_id=placement.machine_id)
        return _next_placement(job, event.reason, now, event="try closed", is_full=False)
    if refusal is None or refusal.at < placement.requested_at or not placement.machine_id or job.cancel_requested:
        return _next_placement(job, event.reason, now, event="try closed", is_full=False)
    detail = f"the cluster refused the launch, and it was given up: {event.reason}"
    closed = replace(placement, state=PlacementState.CLOSED, outcome=event.reason)
    job = replace(job, attempt=replace(job.current_attempt, placement=closed))
    # The probe that was due since is not left out.
    return wait_until_granted(
        job, RefusedCall.LAUNCH, detail, now, machine_id=placement.machine_id, may_keep=False, refused_at=refusal.at
    )


def cancel_pending(job: Job, event: CancelAsked, now: datetime, _limits: StackLimits) -> Decision:
    """Save the intent; the task, if RunTask starts one, is stopped as soon as it is known."""
    intent = StopIntent(IntentKind.CANCEL, now, event.reason)
    attempt = replace(job.current_attempt, intent=intent)
    cancelling = replace(job, attempt=attempt, cancel_requested=event.reason, reason=event.reason)
    wake_at = now + LAUNCH_TIMEOUT
    effects = (RequestLaunch(),)
    return move(cancelling, job.state, now, event="cancel asked", detail=event.reason, wake_at=wake_at, effects=effects)


def wake_pending(job: Job, _event: TimePassed, now: datetime, _limits: StackLimits) -> Decision:
    """Request that the pending placement is sent again."""
    detail = "the placement try has no task yet"
    return _send_again(job, detail, now, event="launch requested", delay_seconds=0)
