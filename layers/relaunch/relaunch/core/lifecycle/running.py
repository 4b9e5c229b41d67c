"""Actions of the transition table for placed tasks.

Each is a pure function of (job, event, now, limits) and returns the decision to save.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.jobs.attempt import IntentKind, StopIntent
from relaunch.core.jobs.effects import LookForWarning, RequestLaunch
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import ReportedCause, TaskObservation, TaskPhase
from relaunch.core.lifecycle.decision import CLOSE_LOOK, Decision, ignore, move, set_next_check, watch_closely
from relaunch.core.lifecycle.events import (
    CancelAsked,
    HostEnded,
    HostWarned,
    NextMachineReady,
    TaskMissing,
    TaskSeen,
    TimePassed,
)
from relaunch.core.lifecycle.gangs import (
    POD_REPLACED,
    end_unseen,
    find_still_missing,
    has_gang,
    has_other_pod,
    is_gang,
    newest_version,
)
from relaunch.core.lifecycle.machine_waits import needs_next_machine
from relaunch.core.lifecycle.moves import (
    is_last_moment,
    keep_training,
    keeps_training,
    last_moment,
    may_keep_training,
    may_move,
    next_look,
    stops_by,
    with_move,
)
from relaunch.core.lifecycle.restart_policy import out_of_time
from relaunch.core.lifecycle.seen_images import with_seen_image
from relaunch.core.lifecycle.stop_reason import find_first_ended
from relaunch.core.lifecycle.stopping import (
    STOP_TIMEOUT,
    count_run,
    stop_with_intent,
    task_lost,
    task_stopped,
    with_task,
)
from relaunch.core.lifecycle.unconfirmed_stops import ELSEWHERE, is_host_gone, lose_host
from relaunch.core.lifecycle.verdicts import wake_of
from relaunch.core.lifecycle.withdrawals import start_deadline
from relaunch.core.offerings.spot_runs import Observed

# A task that ECS does not know is lost only if ECS still does not know it after this time: the API is eventually
# consistent, and the documentation of RunTask tells callers to retry for up to five minutes.
MISSING_GRACE = timedelta(minutes=5)
# How long nobody may have looked: a target that knew the task meanwhile would go unnoticed.
LONGEST_UNWATCHED = timedelta(minutes=5)
# How a target reports that it does not start what it has taken, for now or for good.
_START_REFUSED = frozenset({ReportedCause.START_REFUSED})
_NOT_STARTED = _START_REFUSED | {ReportedCause.STARTS_NOWHERE}
UNKNOWN_TASK = "the cluster does not know the task any more"
"""The reason of a stop whose time is not known."""
_WARNING = "interruption warning"


def task_seen(job: Job, event: TaskSeen, now: datetime, limits: StackLimits) -> Decision:
    """Update the attempt from an observation of its task."""
    seen = event.observation
    job = observed(job, event, now)
    if seen.phase is TaskPhase.STOPPED:
        return task_stopped(job, seen, now, event.host)
    return _with_link(_live(job, seen, now, limits), event)


def instance_told(job: Job, event: TaskSeen, now: datetime, _limits: StackLimits) -> Decision:
    """Keep where the task runs: a warning of that instance finds the job by it."""
    located = _located(job, event)
    return _with_link(set_next_check(located, job.wake_at or now, job.pending), event)


def _with_link(decision: Decision, event: TaskSeen) -> Decision:
    attempt = decision.job.current_attempt
    if event.node is None or not attempt.instance_id:
        return decision
    instances = dict.fromkeys((attempt.instance_id, *(each.instance_id for each in attempt.placement.followers)))
    pending = (*decision.job.pending, *(LookForWarning(each) for each in instances))
    return replace(decision, job=replace(decision.job, pending=pending), link_instance=True)


def _live(job: Job, seen: TaskObservation, now: datetime, limits: StackLimits) -> Decision:
    intent = job.current_attempt.intent
    if intent is not None and job.state is JobState.LAUNCHING:
        # Cancelled before the task was known.
        return stop_with_intent(job, intent, now, event="cancelling")
    if has_lost_place(job, seen):
        event, what = _lost_place(seen)
        lost = StopIntent(IntentKind.INTERRUPTION, now, f"{what}: {seen.waiting_for}" if seen.waiting_for else what)
        return stop_with_intent(job, lost, now, event=event)
    if seen.phase.is_ending or job.state is JobState.STOPPING:
        return _stopping(job, seen, now)
    if seen.phase is TaskPhase.RUNNING or job.state is JobState.RUNNING:
        return _running(job, now)
    job = replace(job, reason=seen.waiting_for)
    if ReportedCause.STARTS_NOWHERE in seen.report.causes:
        intent = StopIntent(IntentKind.STARTS_NOWHERE, now, seen.waiting_for)
        return stop_with_intent(job, intent, now, event="start refused")
    wake_at = watch_closely(job, start_deadline(job.current_attempt, limits), now)
    detail = _where(job) or seen.waiting_for
    return move(job, JobState.LAUNCHING, now, event=f"task {seen.status}", detail=detail, wake_at=wake_at)


def _stopping(job: Job, seen: TaskObservation, now: datetime) -> Decision:
    """Wait for the stop; the others of a job of several nodes are stopped with the rank that ends."""
    # The first timeline entry has the reason, the following ones the status.
    is_known = job.state is JobState.STOPPING
    detail = seen.status if is_known else seen.report.text or seen.status
    attempt = job.current_attempt
    if attempt.intent is None and is_gang(job):
        # A cluster announces with the end of a pod that it is taken away, and EC2 before.
        kind = IntentKind.RANK_ENDED if seen.warned_at is None else IntentKind.INTERRUPTION
        # Saved with the stop: once the pod is gone nothing shows that it was announced.
        job = replace(job, attempt=replace(attempt, warned_at=attempt.warned_at or seen.warned_at))
        detail = f"{detail}; {seen.warning}" if seen.warning else detail
        return stop_with_intent(job, StopIntent(kind, now, detail), now, event="rank ended")
    return move(job, JobState.STOPPING, now, event="task stopping", detail=detail, wake_at=now + STOP_TIMEOUT)


def has_lost_place(job: Job, seen: TaskObservation) -> bool:
    """Return whether a task that had a place waits for one again, and would go on with what it started with.

    A queue took it; or, on a server before 1.25, its pod went with its node or by force, and what the Job controller
    makes instead is refused, or waits for the others of a job of several nodes, which had met without it. The
    task is stopped, so that the next one resumes from the newest checkpoint.
    """
    return _begins_again(job, seen) and _had_place(job) and job.current_attempt.intent is None


def _begins_again(job: Job, seen: TaskObservation) -> bool:
    is_refused = seen.phase is TaskPhase.PENDING and bool(seen.report.causes & _NOT_STARTED)
    return seen.is_suspended or is_refused or has_other_pod(job, seen)


def _lost_place(seen: TaskObservation) -> tuple[str, str]:
    """Return how a task lost its place, for the timeline, and in a sentence."""
    if seen.is_suspended:
        return "suspended", "a queue took its place"
    if seen.newest_pod_at is not None and not seen.report.causes & _NOT_STARTED:
        return "pod replaced", POD_REPLACED
    return "pod refused", "its pod is gone, and another one is refused"


def _had_place(job: Job) -> bool:
    return job.current_attempt.node is not None or job.current_attempt.started_at is not None


def observed(job: Job, event: TaskSeen, now: datetime) -> Job:
    """Return the job with what the observation tells of its task."""
    seen = event.observation
    if job.current_attempt.task_id is None:
        # The event arrived before the response of RunTask was saved: their order is not guaranteed.
        job = with_task(job, seen.task_id, "task seen before the answer to its launch", now)
    if job.definition.target.capabilities.runs_pods:
        job = with_seen_image(job, seen)
    job = _with_queue(_located(job, event), seen, now)
    attempt = replace(
        job.current_attempt,
        task_status=seen.status,
        task_version=newest_version(job.current_attempt, seen, begins_again=_begins_again(job, seen)),
        started_at=job.current_attempt.started_at or seen.started_at,
        pulled=job.current_attempt.pulled or seen.pulled,
        program_ended_at=job.current_attempt.program_ended_at or seen.containers_ended_at,
        missing=None,
        missing_ranks=(),
        cluster=seen.cluster,
        live_ranks=seen.live_ranks,
        refused_since=(job.current_attempt.refused_since or now) if seen.report.causes & _START_REFUSED else None,
    )
    return with_first_ended(replace(job, attempt=attempt), seen)


def _with_queue(job: Job, seen: TaskObservation, now: datetime) -> Job:
    """Return the job with since when a queue holds its task back; the time for its start begins when that lets it go.

    What it waited there is a wait behind others.
    """
    attempt = job.current_attempt
    since = attempt.suspended_since
    if seen.is_suspended:
        return job if _had_place(job) else replace(job, attempt=replace(attempt, suspended_since=since or now))
    if since is None:
        return job
    waited = (now - since).total_seconds()
    waits = job.waits
    if job.totals.first_started_at is None:
        held_back = waits.held_back_before_seconds + waited
        queued = waits.queued_before_seconds + waited
        waits = replace(waits, held_back_before_seconds=held_back, queued_before_seconds=queued)
    else:
        held_back = waits.held_back_seconds + waited
        waits = replace(waits, held_back_seconds=held_back, queued_seconds=waits.queued_seconds + waited)
    placement = replace(attempt.placement, placed_at=min(now, seen.started_at or now))
    return replace(job, attempt=replace(attempt, suspended_since=None, placement=placement), waits=waits)


def with_first_ended(job: Job, seen: TaskObservation) -> Job:
    """Return the job with the container for whose end ECS stops its task, once that is known."""
    attempt = job.current_attempt
    first = attempt.ended_first or find_first_ended(seen, job.definition.container, job.revision.essential_names)
    return replace(job, attempt=replace(attempt, ended_first=first))


def note_first_ended(job: Job, event: TaskSeen, now: datetime, _limits: StackLimits) -> Decision:
    """Keep what an older observation tells of the order in which the containers ended."""
    return set_next_check(with_first_ended(job, event.observation), job.wake_at or now + STOP_TIMEOUT)


def _located(job: Job, event: TaskSeen) -> Job:
    seen = event.observation
    node = event.node
    attempt = job.current_attempt
    # The node of a pod that has no room for it is none yet.
    has_none = ReportedCause.NO_CAPACITY in seen.report.causes and not seen.phase.is_ending
    located = replace(
        attempt,
        node=None if has_none else seen.node or attempt.node,
        instance_id=node.instance_id if node else attempt.instance_id,
        zone=seen.zone or (node.zone if node else None) or attempt.zone,
    )
    return replace(job, attempt=located)


def _where(job: Job) -> str:
    attempt = job.current_attempt
    return " ".join(part for part in (attempt.instance_id, attempt.zone) if part)


def _running(job: Job, now: datetime) -> Decision:
    attempt = replace(job.current_attempt, started_at=job.current_attempt.started_at or now)
    event = "still running" if job.state is JobState.RUNNING else "running"
    job = replace(
        job,
        attempt=attempt,
        totals=replace(job.totals, first_started_at=job.totals.first_started_at or attempt.started_at),
        reason="",
        interrupted_at=None,
        faults=replace(job.faults, failed_starts=(), own_failures=()),
        machines=replace(job.machines, failed=0, refused_since=None),
        refusals={},
    )
    is_start = job.state is not JobState.RUNNING
    effects = count_run(job, Observed.START, attempt.started_at or now) if is_start else ()
    wake_at = next_look(job, now)
    if has_gang(attempt):
        wake_at = watch_closely(job, wake_at, now)
    return move(job, JobState.RUNNING, now, event=event, detail=_where(job), wake_at=wake_at, effects=effects)


def task_missing(job: Job, event: TaskMissing, now: datetime, _limits: StackLimits) -> Decision:
    """Consider the task lost if the target does not know it throughout the grace period.

    One that was seen in another cluster may live on there. One whose host had ended by the last look lives no more.
    """
    attempt = job.current_attempt
    is_elsewhere = bool(attempt.cluster and event.cluster) and attempt.cluster != event.cluster
    if is_elsewhere and job.state is JobState.STOPPING:
        return ignore(job, ELSEWHERE)
    first, last = attempt.missing or (now, now)
    ranks = find_still_missing(attempt, event.ranks)
    is_watched = now - last <= LONGEST_UNWATCHED or is_host_gone(job, event, last)
    is_same = is_watched and len(ranks) >= min(len(event.ranks), 1)
    since = first if is_same else now
    is_lost_at = since + MISSING_GRACE
    if now < is_lost_at:
        wake_at = min(now + CLOSE_LOOK, is_lost_at, stops_by(job) or is_lost_at)
        ranks = ranks if is_same else event.ranks
        missing = replace(job, attempt=replace(attempt, missing=(since, now), missing_ranks=ranks))
        if attempt.missing is not None:
            return set_next_check(missing, wake_at)
        return move(missing, job.state, now, event="task missing", detail=event.task_id, wake_at=wake_at)
    if is_elsewhere:
        return stop_with_intent(job, StopIntent(IntentKind.INTERRUPTION, now, ELSEWHERE), now, event="cluster changed")
    if has_gang(attempt) and job.state is not JobState.STOPPING:
        # The others live.
        return stop_with_intent(job, StopIntent(IntentKind.INTERRUPTION, now, UNKNOWN_TASK), now, event="rank missing")
    return _end_missing(job, event.others, since, now)


def _end_missing(job: Job, others: TaskObservation | None, since: datetime, now: datetime) -> Decision:
    """Close the attempt of a task that is lost, by those of several that tell how it ended (decided_by_part)."""
    intent = job.current_attempt.intent
    if others is None or intent is None or intent.kind is not IntentKind.RANK_ENDED:
        return task_lost(job, since, UNKNOWN_TASK, now)
    return task_stopped(job, end_unseen(job, others, since), now)


def host_warned(job: Job, event: HostWarned, now: datetime, limits: StackLimits) -> Decision:
    """Stop the task, so that it can save a checkpoint: now, or when the next machine is ready.

    ECS does not: draining does not stop standalone tasks ("Draining Amazon ECS container instances").
    """
    warned, reason = _warned(job, event)
    if may_keep_training(job, limits.machines):
        if event.is_rebalance:
            # No interruption is announced: an exit after it is the program's own.
            return keep_training(job, reason, None, now, event=_WARNING)
        stop_by = last_moment(job, event.at, event.ends_at)
        if now < stop_by:
            return keep_training(warned, reason, stop_by, now, event=_WARNING)
    return stop_with_intent(warned, StopIntent(IntentKind.INTERRUPTION, now, reason), now, event=_WARNING)


def host_warned_late(job: Job, event: HostWarned, now: datetime, limits: StackLimits) -> Decision:
    """Store the warning for a task that is stopping already: it may be the cause.

    A training that polls the instance metadata may exit with 0 before the warning arrives.
    """
    if event.is_rebalance and keeps_training(job, limits.machines):
        return ignore(job, "no interruption is announced, and the task is stopping")
    warned, reason = _warned(job, event)
    return move(warned, job.state, now, event=_WARNING, detail=reason, wake_at=wake_of(job, now + STOP_TIMEOUT))


def _warned(job: Job, event: HostWarned) -> tuple[Job, str]:
    attempt = job.current_attempt
    attempt = replace(attempt, warned_at=event.at, instance_id=attempt.instance_id or event.instance_id or None)
    return replace(job, attempt=attempt), f"{_notice(event)} for {event.instance_id or attempt.node or event.task_id}"


def _notice(event: HostWarned) -> str:
    if event.is_rebalance:
        return "rebalance recommendation"
    if event.ends_at is None:
        return event.cause or "spot interruption warning"
    # A retirement is announced days ahead.
    form = "%H:%M" if event.ends_at - event.at < timedelta(days=1) else "%Y-%m-%d %H:%M"
    return f"{event.cause or 'end of the Capacity Block'}, to be left by {event.ends_at:{form}} UTC,"


def host_ended(job: Job, event: HostEnded, now: datetime, _limits: StackLimits) -> Decision:
    """Store when the instance ended, and check the task soon; of a job of several nodes stop the others."""
    # The events of its states, `shutting-down` and `terminated`, come in any order.
    attempt = job.current_attempt
    ended_at = min(attempt.host_ended_at or event.at, event.at)
    lost = (*attempt.lost_instances, event.instance_id) if has_gang(attempt) else ()
    last = max(attempt.last_host_ended_at or event.at, event.at) if lost else None
    noted = replace(job, attempt=replace(attempt, host_ended_at=ended_at, lost_instances=lost, last_host_ended_at=last))
    detail = f"{event.instance_id} is {event.instance_state}"
    if lost and job.state is not JobState.STOPPING:
        # The others may wait for it for ten minutes, as NCCL does, and then fail.
        return stop_with_intent(noted, StopIntent(IntentKind.INTERRUPTION, now, detail), now, event="machine ended")
    return move(noted, job.state, now, event="machine ended", detail=detail, wake_at=wake_of(job, now + CLOSE_LOOK))


def cancel_task(job: Job, event: CancelAsked, now: datetime, _limits: StackLimits) -> Decision:
    """Stop the task; the job ends when the task is STOPPED."""
    wished = replace(job, cancel_requested=event.reason)
    return stop_with_intent(wished, StopIntent(IntentKind.CANCEL, now, event.reason), now, event="cancelling")


def cancel_stopping(job: Job, event: CancelAsked, now: datetime, _limits: StackLimits) -> Decision:
    """Let the job end instead of launching it again after the stop."""
    # It needs no next machine.
    wished = replace(job, cancel_requested=event.reason, machine_id="")
    wake_at = wake_of(job, now + STOP_TIMEOUT)
    return move(wished, job.state, now, event="cancel asked", detail=event.reason, wake_at=wake_at)


def wake_running(job: Job, event: TimePassed, now: datetime, _limits: StackLimits) -> Decision:
    """Stop the task of a job that is out of time, or whose machine is about to end; else set the next check's time."""
    if is_host_gone(job, event, now):
        return lose_host(job, now)
    verdict = out_of_time(job, now)
    if verdict is not None:
        return stop_with_intent(job, StopIntent(IntentKind.TIME_OUT, now, verdict.reason), now, event="out of time")
    handover = job.current_attempt.handover
    if handover is not None and is_last_moment(job, now):
        intent = StopIntent(IntentKind.INTERRUPTION, now, handover.reason)
        return stop_with_intent(job, intent, now, event="last moment to save")
    # A next machine that is claimed may be ready and its message lost; EC2 may have one now, and spot may be had again.
    effects = (RequestLaunch(),) if job.machine_id or needs_next_machine(job) or may_move(job) else ()
    return set_next_check(job, watch_closely(job, next_look(job, now), now), effects)


def next_machine_ready(job: Job, _event: NextMachineReady, now: datetime, _limits: StackLimits) -> Decision:
    """Stop the task, which goes on there."""
    handover = job.current_attempt.handover
    reason = handover.reason if handover is not None else _WARNING
    is_move = handover is not None and handover.is_move
    kind = IntentKind.MOVE if is_move else IntentKind.INTERRUPTION
    job = with_move(job, now) if is_move else job
    return stop_with_intent(job, StopIntent(kind, now, reason), now, event="next machine ready")
