"""Decisions about stopping tasks and about stopped tasks."""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.attempt import Attempt, IntentKind, PlacementState, Stop, StopIntent, StopKind
from relaunch.core.jobs.charges import Charges
from relaunch.core.jobs.cost import attempt_price
from relaunch.core.jobs.effects import CountRun, Effect, RememberCapacity, RequestLaunch
from relaunch.core.jobs.job import FailedStart, Job
from relaunch.core.jobs.state import JobState, RefusedCall
from relaunch.core.launches.launch import HostObservation, ReportedCause, StopReport, TaskObservation, TaskPhase
from relaunch.core.lifecycle.decision import Decision, end, move, stop_effect, wait_for_launch
from relaunch.core.lifecycle.gangs import has_gang
from relaunch.core.lifecycle.machine_waits import needs_next_machine
from relaunch.core.lifecycle.refusal_waits import wait_until_granted
from relaunch.core.lifecycle.restart_policy import (
    EARLY,
    UNKNOWN_STARTS,
    GiveUp,
    HoldBack,
    decide_restart,
    describe_stop,
    is_early_failure,
    is_failure,
    is_interruption,
    useless_for_all,
)
from relaunch.core.lifecycle.verdicts import held_stop, hold, judge, with_notices
from relaunch.core.offerings.offering import CapacityFailure
from relaunch.core.offerings.spot_runs import Observed, SpotRun, hours_of_one
from relaunch.core.selection.requirements import required_gpus

# How long all jobs avoid an offering: between the three minutes of Karpenter, which returns to a pool that just failed,
# and an hour, which misses one that is available again.
AVOID_AFTER_NO_CAPACITY = timedelta(minutes=30)
# How long a job alone avoids an offering that had none but the instances it is kept from: a machine that starts for it
# too late is idle for 15 minutes before managed scaling ends it. The same after an error of a start that nobody knows.
_AVOID_BY_ITSELF = timedelta(minutes=10)
# How many of the latest starts that failed are kept: each is in a placement constraint of the next launch.
_KEPT_STARTS = 5
# A machine is kept through a back-off that costs less than the start of another one.
_KEPT_SECONDS = 60
# A program that trained for so long has proved its machines: the next one that fails is the first again.
_PROVEN_AFTER = timedelta(hours=1)
# So many machines in a row are taken for faulty because the program or the driver says so.
_FAULTY_MACHINES = 3
_OF_STARTS = (RefusedCall.START, RefusedCall.POD)
# StopTask is repeated if the task is not STOPPED after this time; stopTimeout is at most two minutes on EC2.
STOP_TIMEOUT = timedelta(minutes=3)


def avoid(job: Job, reason: str, at: datetime, *, is_taken: bool = False) -> tuple[Job, tuple[Effect, ...]]:
    """Let the job avoid the current offering, which had no capacity for it at `at`, and all jobs if that is theirs too.

    Returns the job, and the effect that lets all jobs avoid the offering. A launch that was kept from instances says
    nothing of launches that are not: only the job itself avoids the offering after that. `is_taken`: only the machines
    that are there were asked.
    """
    placement = job.current_attempt.placement
    offering = placement.offering
    provider = placement.capacity_provider
    # Whether an instance with part of a GPU (g6f) registers it as one is not documented.
    gpu_count = required_gpus(job.definition, job.revision) if placement.gpu_partition_size == 1 else 0
    if not job.faults.avoided_instances:
        until = at + AVOID_AFTER_NO_CAPACITY
        return job, (RememberCapacity(offering, reason, at, until, provider, gpu_count, is_taken=is_taken),)
    failure = CapacityFailure(offering, reason, at, at + _AVOID_BY_ITSELF, capacity_provider=provider)
    return _with_job_failure(job, failure), ()


def _with_job_failure(job: Job, failure: CapacityFailure) -> Job:
    others = (each for each in job.faults.own_failures if each.key != failure.key)
    return replace(job, faults=replace(job.faults, own_failures=(*others, failure)))


def _avoid_pool(job: Job, reason: str, at: datetime) -> Job:
    """Let the job alone avoid the instance type, zone and purchase option that it was on, for some minutes.

    Where a capacity provider chooses the zone it may choose the same one, so that all zones of those are avoided.
    """
    attempt = job.current_attempt
    until = at + _AVOID_BY_ITSELF
    offering = attempt.placement.offering
    for zone in {attempt.zone or offering.zone: None, None: None}:
        job = _with_job_failure(job, CapacityFailure(replace(offering, zone=zone), reason, at, until))
    return job


def count_run(job: Job, what: Observed, at: datetime, hours: float = 0.0) -> tuple[Effect, ...]:
    """Return the effect that counts what was observed of the current run; empty if it is not on spot."""
    attempt = job.current_attempt
    offering = attempt.placement.offering
    if offering.purchase is not PurchaseOption.SPOT:
        return ()
    ran_on = replace(offering, zone=attempt.zone or offering.zone)
    run_id = f"{job.attempt_key}/{attempt.placement.number}"
    nodes = job.definition.nodes
    is_own = bool(attempt.placement.machine_id)
    return (CountRun(SpotRun(ran_on, run_id, what, at, hours, on_own_machine=is_own, nodes=nodes)),)


def with_task(job: Job, task_id: str, outcome: str, placed_at: datetime, followers: tuple[str, ...] = ()) -> Job:
    """Return the job with this task as that of its current placement, and those of its ranks from 1 on."""
    placement = job.current_attempt.placement
    placed = replace(
        placement,
        state=PlacementState.PLACED,
        task_id=task_id,
        outcome=outcome,
        placed_at=placed_at,
        followers=tuple(
            replace(rank, task_id=each)
            for rank, each in zip(placement.followers, followers or (), strict=bool(followers))
        )
        or placement.followers,
        placed_ids=(),
    )
    # That the target has the task does not prove that it starts.
    refusals = {call: job.refusals[call] for call in _OF_STARTS if call in job.refusals}
    return replace(job, attempt=replace(job.current_attempt, placement=placed), reason="", refusals=refusals)


def task_stopped(job: Job, seen: TaskObservation, now: datetime, host: HostObservation | None = None) -> Decision:
    """Decide what a stop of the task means, then end the job or launch it again; or let that wait for EC2."""
    job = _with_lost_start(with_notices(job, seen, host, now), seen)
    stop = judge(job, seen, now)
    return hold(job, seen, stop, host, now) or follow_stop(job, stop, now)


def _with_lost_start(job: Job, seen: TaskObservation) -> Job:
    """Return the job, whose attempt is spent if nobody knows whether it wrote anything."""
    attempt = job.current_attempt
    if attempt.started_at is not None or not seen.may_have_run:
        return job
    return replace(job, attempt=replace(attempt, placement=replace(attempt.placement, is_lost=True)))


def follow_stop(job: Job, stop: Stop, now: datetime) -> Decision:
    """Account for a stop, then end the job or launch it again."""
    stop, failed_starts = _judge_start(job, _judge_fault(job, stop))
    own_failures = job.faults.own_failures if failed_starts else _failures_since_stop(job)
    job = _account(job, stop)
    job = replace(job, faults=replace(job.faults, failed_starts=failed_starts, own_failures=own_failures))
    before = _count_run(job, stop)
    verdict = decide_restart(job, stop, now)
    if isinstance(verdict, GiveUp):
        event = verdict.state.value.lower().replace("_", " ")
        return end(job, verdict.state, now, event=event, detail=verdict.reason, before=before)
    if isinstance(verdict, HoldBack):
        machine_id = job.current_attempt.placement.machine_id
        if stop.kind is StopKind.START_REFUSED and machine_id:
            before = (*before, useless_for_all(job, machine_id, verdict.reason, now))
        intent = job.current_attempt.intent
        is_pod = intent is not None and intent.kind is IntentKind.START_REFUSED
        held = wait_until_granted(job, RefusedCall.POD if is_pod else RefusedCall.START, verdict.reason, now)
        return replace(held, job=replace(held.job, pending=(*before, *held.job.pending)))
    if stop.kind is StopKind.NO_CAPACITY and _lacked_machine(job.current_attempt):
        job, remembered = avoid(job, verdict.reason, stop.at)
        before = (*before, *remembered)
    if stop.kind is StopKind.UNKNOWN_START and job.definition.target.capabilities.offers_instance_types:
        # What nobody knows may be of the machine, its type or its zone: if there is another pool, that one tells.
        job = _avoid_pool(job, describe_stop(stop, job.definition.target), now)
    if verdict.delay_seconds:
        # The next machine was requested while the task saved or trained on, and costs: another job may need it.
        job = _with_kept_machines(job, stop, verdict.delay_seconds)
    elif has_gang(job.current_attempt) and not _may_keep_survivors(job, stop):
        job = replace(job, machine_id="")
    return wait_for_launch(
        job,
        now,
        event=f"stopped: {stop.kind}",
        detail=verdict.reason,
        delay_seconds=verdict.delay_seconds,
        before=before,
    )


def _may_keep_survivors(job: Job, stop: Stop) -> bool:
    """Return whether the next attempt may begin at once on machines that live.

    After anything but an interruption one of them may be at fault. A rank that nobody saw end may still run while its
    instance shuts down, and would be there beside the next one; the boots of N others take longer than that.
    """
    return is_interruption(stop.kind) and not job.current_attempt.placement.is_lost


def _lacked_machine(attempt: Attempt) -> bool:
    """Return whether a launch without capacity says something of its offering: not if a machine came after all.

    A task that was withdrawn because it had none may get one before its stop takes effect.
    """
    is_withdrawn = attempt.intent is not None and attempt.intent.kind is IntentKind.PLACEMENT_WITHDRAWN
    return not attempt.placement.machine_id and not (is_withdrawn and attempt.node is not None)


def task_lost(job: Job, at: datetime, reason: str, now: datetime) -> Decision:
    """Close the attempt of a task that ended unseen, at `at`: the intent to stop it decides, else its host was lost.

    It did not outlive its instance, if that is known to have ended. The end of one whose verdict waits was seen.
    """
    attempt = job.current_attempt
    if attempt.held is not None:
        return follow_stop(job, held_stop(attempt, attempt.held), now)
    job = replace(job, attempt=replace(attempt, placement=replace(attempt.placement, is_lost=True)))
    if attempt.intent is None:
        ended_at = max(attempt.host_ended_at or at, attempt.started_at or at)
        return follow_stop(job, Stop(StopKind.HOST_LOST, min(at, ended_at), stopped_reason=reason), now)
    gone = TaskObservation(
        attempt.task_id or "",
        job.attempt_key,
        TaskPhase.STOPPED,
        attempt.task_version,
        # What a rank ended for that nobody saw end is not known: it is not taken for a failure.
        report=StopReport(reason, frozenset({ReportedCause.NODE_LOST})),
        # Not before the intent, which then decides.
        stopped_at=max(at, attempt.intent.at),
    )
    return task_stopped(job, gone, now)


def end_with_task(job: Job, state: JobState, kind: StopKind, reason: str, now: datetime, *, event: str) -> Decision:
    """End a job whose task may live on; its cost is counted until now."""
    attempt = job.current_attempt
    job = replace(job, attempt=replace(attempt, placement=replace(attempt.placement, is_lost=True)))
    stop = Stop(kind, now, stopped_reason=reason)
    job = _account(job, stop)
    return end(job, state, now, event=event, detail=reason, before=_count_run(job, stop))


def _failures_since_stop(job: Job) -> tuple[CapacityFailure, ...]:
    """Return the failures of what was requested while the tasks stopped: it will fail alike if it is selected again."""
    intent = job.current_attempt.intent
    return tuple(each for each in job.faults.own_failures if intent is not None and each.at >= intent.at)


def _with_kept_machines(job: Job, stop: Stop, delay_seconds: int) -> Job:
    """Return the job with the machines of our own for its next task: the last ones after a failure soon after a start.

    What fails so soon mostly fails everywhere, and needs no other machine to show it.
    """
    attempt = job.current_attempt
    is_going = any((attempt.warned_at, attempt.host_ended_at, attempt.handover))
    is_kept = is_early_failure(attempt, stop) and delay_seconds <= _KEPT_SECONDS and not is_going
    first, *others = (each.machine_id for each in attempt.placement.ranks)
    return replace(job, machine_id=first, follower_ids=tuple(others)) if is_kept else replace(job, machine_id="")


def _ran_seconds(attempt: Attempt, stop: Stop) -> float:
    return max((stop.at - attempt.started_at).total_seconds(), 0.0) if attempt.started_at else 0.0


def _count_run(job: Job, stop: Stop) -> tuple[Effect, ...]:
    """Return the effect that counts the end of a run on spot; empty if it neither ran nor was interrupted.

    A task that was lost before it was seen on a machine of a capacity provider says nothing of one.
    """
    attempt = job.current_attempt
    hours = hours_of_one(_ran_seconds(attempt, stop) / 3600, job.definition.nodes)
    is_unseen = attempt.placement.is_lost and attempt.node is None and not attempt.placement.machine_id
    if is_interruption(stop.kind) and not (is_unseen and not hours):
        return count_run(job, Observed.INTERRUPTION, stop.at, hours)
    return count_run(job, Observed.END, stop.at, hours) if hours else ()


def _account(job: Job, stop: Stop) -> Job:
    attempt = job.current_attempt
    ran = _ran_seconds(attempt, stop)
    has_run = attempt.started_at is not None
    price = attempt_price(attempt)
    is_charged = job.charges.open_of(attempt.placement.machine_id) is not None
    attempt = replace(
        attempt,
        stop=stop,
        held=None,
        task_status="STOPPED",
        placement=replace(attempt.placement, state=PlacementState.CLOSED),
    )
    early_failures = job.faults.early_failures + is_early_failure(attempt, stop)
    return replace(
        job,
        faults=replace(
            job.faults,
            early_failures=early_failures if ran < EARLY.total_seconds() else 0,
            faulty_machines=_faulty_machines(job, stop),
        ),
        attempt=attempt,
        totals=replace(
            job.totals,
            run_seconds=job.totals.run_seconds + ran,
            cost_usd=job.totals.cost_usd + ran / 3600 * price.usd_per_hour,
            # What a machine of our own costs is known once it is gone.
            cost_basis=job.totals.cost_basis.plus(price.basis) if ran and not is_charged else job.totals.cost_basis,
            first_started_at=job.totals.first_started_at or attempt.started_at,
            failures=job.totals.failures + is_failure(stop.kind),
            interruptions=job.totals.interruptions + is_interruption(stop.kind),
        ),
        machines=replace(job.machines, ran_on=attempt.placement.machine_id) if has_run else job.machines,
        charges=_with_training(job, ran, price.usd_per_hour),
        interrupted_at=job.interrupted_at or _interrupted_at(attempt, stop),
    )


def _with_training(job: Job, ran: float, usd_per_hour: float) -> Charges:
    """Return the charges with what a task cost that ended, if it ran on a machine that is charged."""
    of_ranks = (job.charges.open_of(each.machine_id) for each in job.current_attempt.placement.ranks)
    open_charges = [each for each in of_ranks if each is not None]
    if not open_charges:
        return job.charges
    return replace(
        job.charges,
        own_tasks_usd=job.charges.own_tasks_usd + ran / 3600 * usd_per_hour,
        trained_usd=job.charges.trained_usd + ran / 3600 * sum(each.usage_usd_per_hour for each in open_charges),
    )


def _faulty_machines(job: Job, stop: Stop) -> tuple[str, ...]:
    """Return the latest machines in a row that failed under the job, each within an hour."""
    ran = _ran_seconds(job.current_attempt, stop)
    earlier = job.faults.faulty_machines if ran < _PROVEN_AFTER.total_seconds() else job.faults.faulty_machines[-1:]
    if stop.kind is not StopKind.MACHINE_FAULT:
        return earlier
    return (*(() if ran >= _PROVEN_AFTER.total_seconds() else earlier), _instance_of(job))


def _instance_of(job: Job) -> str:
    attempt = job.current_attempt
    return attempt.instance_id or attempt.node or ""


def _judge_fault(job: Job, stop: Stop) -> Stop:
    """Return the stop, as a failure of the program if it said of too many machines that they are at fault."""
    if stop.kind is not StopKind.MACHINE_FAULT or len(_faulty_machines(job, stop)) <= _FAULTY_MACHINES:
        return stop
    said = f"it said so of {_FAULTY_MACHINES} machines before: {', '.join(job.faults.faulty_machines)}"
    reason = f"{stop.stopped_reason}; {said}" if stop.stopped_reason else said
    return replace(stop, kind=StopKind.USER_ERROR, stopped_reason=reason)


def _judge_start(job: Job, stop: Stop) -> tuple[Stop, tuple[FailedStart, ...]]:
    """Return the stop, and the failed starts after it.

    An error that nobody knows, on two machines, is taken for the same everywhere. A rank may have run whose peers did
    not: the job did not start on its machines for all that.
    """
    starts = job.faults.failed_starts
    if stop.kind not in {StopKind.NOT_STARTED, StopKind.UNKNOWN_START}:
        return stop, () if job.current_attempt.started_at is not None else starts
    is_unknown = stop.kind is StopKind.UNKNOWN_START
    starts = (*starts, FailedStart(_instance_of(job), stop.error, is_unknown))[-_KEPT_STARTS:]
    failed = dict.fromkeys(each.instance for each in starts if each.is_unknown)
    if not is_unknown or len(failed) < UNKNOWN_STARTS:
        return stop, starts
    nowhere = (
        f"it did not start on {len(failed)} machines: {', '.join(failed)}; Relaunch does not know the error, which may "
        "be that of the image, the task definition or what they need of the account"
    )
    reason = f"{stop.stopped_reason}; {nowhere}" if stop.stopped_reason else nowhere
    return replace(stop, kind=StopKind.STARTS_NOWHERE, stopped_reason=reason), starts


def _interrupted_at(attempt: Attempt, stop: Stop) -> datetime | None:
    if attempt.started_at is None or not is_interruption(stop.kind):
        return None
    return min(at for at in (attempt.warned_at, attempt.host_ended_at, stop.at) if at is not None)


def stop_with_intent(job: Job, intent: StopIntent, now: datetime, *, event: str) -> Decision:
    """Save the intent to stop the task; StopTask follows."""
    # Only a job that goes on elsewhere needs the next machine.
    machine_id = job.machine_id if intent.kind in {IntentKind.INTERRUPTION, IntentKind.MOVE} else ""
    attempt = replace(job.current_attempt, intent=intent)
    job = replace(job, attempt=attempt, reason=intent.detail, machine_id=machine_id)
    effects = stop_effect(job, intent.detail)
    wake_at = now + STOP_TIMEOUT
    decision = move(job, JobState.STOPPING, now, event=event, detail=intent.detail, wake_at=wake_at, effects=effects)
    if not needs_next_machine(decision.job):
        return decision
    # After the stop, which it must not delay.
    return replace(decision, job=replace(decision.job, pending=(*effects, RequestLaunch())))
