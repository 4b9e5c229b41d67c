"""The tasks of a job of several nodes, seen as one: what they do together, and which of them decides how they ended.

All ranks run the same program, which trains only while all of them do. So they are launched, stopped and judged
together: one that ends without the others stops them, and the attempt has ended when all of them have.

one rank has ended
  ├─ with an error, or stopped by somebody ──▶ the others are stopped; it decides, if it was the first
  └─ with exit code 0, as all that have ended ──▶ the others may take as long as torchrun waits for them

The first rank that ended with an error decides, by the time of its containers: what follows it at the others are
consequences, as torchrun's exit code 1 and aborts of NCCL are. The end of any of the machines explains all of them:
peers fail within seconds of a lost machine, and the event of EC2 comes later.

On ECS each rank is a task of its own. A cluster of Kubernetes has one task for all of them, whose pods its adapter sees
as one by the same rules.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.jobs.attempt import Attempt, IntentKind, StopIntent
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import ReportedCause, StopReport, TaskObservation, TaskPhase
from relaunch.core.lifecycle.decision import Decision, ignore, move, set_next_check
from relaunch.core.lifecycle.events import SurvivorsLeft, TaskMissing
from relaunch.core.lifecycle.stop_reason import BY_RELAUNCH, CLOCK_SKEW, ended_at, exit_code_of

PEERS_MAY_TAKE = timedelta(seconds=300)
"""How long the others may run on after the first rank that ended with 0: torchrun's agents wait so long for each other
(`exit_barrier_timeout`, torch.distributed.elastic.agent.server.api)."""
MET_WITHIN = timedelta(seconds=60)
"""How long a rank waits for the others at least before it fails: the c10d rendezvous for a minute (`read_timeout`), the
static one, which the variables that it is given select, for ten (torch.distributed.elastic.rendezvous). RunTask may be
refused to the next rank for as long."""
POD_REPLACED = "a pod of it was taken away, and the cluster made another one"

_TAKEN_AWAY = frozenset({ReportedCause.INTERRUPTED, ReportedCause.NODE_LOST})


def is_gang(job: Job) -> bool:
    """Return whether the job runs on several nodes."""
    return job.definition.nodes > 1


def has_gang(attempt: Attempt) -> bool:
    """Return whether the attempt has several tasks."""
    return bool(attempt.placement.followers)


def observe_gang(job: Job, seen: Mapping[str, TaskObservation | None], now: datetime) -> TaskObservation | None:
    """Return the tasks of the current attempt as one, by an observation of each; None if the target does not know all.

    While some are known to live, what others do that the target does not know is not waited for; of those the ones that
    lived when they were last seen count as live.
    """
    attempt = job.current_attempt
    task_ids = attempt.placement.task_ids
    known = {rank: found for rank, task_id in enumerate(task_ids) if (found := seen.get(task_id)) is not None}
    live = tuple(rank for rank, each in known.items() if each.phase is not TaskPhase.STOPPED)
    ending = {rank: each for rank, each in known.items() if each.phase.is_ending}
    if not known or (len(known) < len(task_ids) and not (live and ending)):
        return None
    as_one = see_as_one(_as_they_ended(job, known), len(task_ids), job.definition.container, now)
    may_live = set(live) | (set(_find_unseen(job, seen)) & set(attempt.live_ranks))
    return replace(as_one, task_id=task_ids[0], live_ranks=tuple(sorted(may_live)))


def decided_by_part(job: Job, seen: Mapping[str, TaskObservation | None], now: datetime) -> TaskObservation | None:
    """Return the ranks that the target knows as one, if they tell how the attempt ended; None if they do not.

    They do if all of them have stopped, and one failed by itself or was taken away: what the others did is not needed.
    `live_ranks` are those that nobody saw end.
    """
    task_ids = job.current_attempt.placement.task_ids
    known = {rank: found for rank, task_id in enumerate(task_ids) if (found := seen.get(task_id)) is not None}
    if not known or any(each.phase is not TaskPhase.STOPPED for each in known.values()):
        return None
    known = _as_they_ended(job, known)
    container = job.definition.container
    first = known[_deciding(container, known, now)]
    if is_finished(container, first) or _is_consequence(first):
        return None
    unseen = _find_unseen(job, seen)
    as_one = see_as_one(known, len(task_ids), container, now)
    if any(each in job.current_attempt.live_ranks and _is_gone_for_peer(job, each) for each in unseen):
        report = StopReport(as_one.report.text, as_one.report.causes | {ReportedCause.PEER_LOST})
        as_one = replace(as_one, report=report)
    return replace(as_one, task_id=task_ids[0], live_ranks=unseen)


def miss_ranks(job: Job, seen: Mapping[str, TaskObservation | None], now: datetime) -> TaskMissing:
    """Return the event that the target does not know all tasks of the current attempt, by an observation of each."""
    task_ids = job.current_attempt.placement.task_ids
    is_part_live = any(found is not None and found.phase is not TaskPhase.STOPPED for found in map(seen.get, task_ids))
    return TaskMissing(
        task_ids[0],
        others=decided_by_part(job, seen, now),
        ranks=_find_unseen(job, seen),
        is_part_live=is_part_live,
    )


def _find_unseen(job: Job, seen: Mapping[str, TaskObservation | None]) -> tuple[int, ...]:
    task_ids = job.current_attempt.placement.task_ids
    return tuple(rank for rank, task_id in enumerate(task_ids) if seen.get(task_id) is None)


def wait_for_live_part(job: Job, _event: TaskMissing, now: datetime, _limits: StackLimits) -> Decision:
    """Wait for the ranks that live, whose stop is asked for again; the attempt is lost once none of it is left.

    They would cost beside the next attempt, or after the end of the job.
    """
    attempt = job.current_attempt
    if attempt.missing is None:
        return ignore(job, "the target does not know all of its tasks, and the others live")
    found = replace(job, attempt=replace(attempt, missing=None, missing_ranks=()))
    return set_next_check(found, job.wake_at or now)


def has_rank_stopped(attempt: Attempt, seen: TaskObservation) -> bool:
    """Return whether another rank has stopped, and some have not."""
    return 0 < len(seen.live_ranks) < len(attempt.live_ranks)


def newest_version(attempt: Attempt, seen: TaskObservation, *, begins_again: bool) -> int:
    """Return up to which version the tasks are known; that of a newer observation may be lower.

    What loses its place begins its phases again, and ranks that the target has forgotten are missing from the sum.
    """
    may_be_lower = begins_again or has_rank_stopped(attempt, seen)
    return max(attempt.task_version, seen.version) if may_be_lower else seen.version


def find_still_missing(attempt: Attempt, ranks: tuple[int, ...]) -> tuple[int, ...]:
    """Return which of the ranks that the target does not know it did not know at the looks before either.

    ECS is behind for one task after the other.
    """
    return tuple(each for each in ranks if each in (attempt.missing_ranks or ranks))


def end_unseen(job: Job, others: TaskObservation, since: datetime) -> TaskObservation:
    """Return the ranks that tell how the attempt ended (decided_by_part), with when the last of all of them had ended.

    One that nobody saw end may have run until its instance ended, or else until `since`, when the target first did not
    know it. It may have run, and may run on.
    """
    attempt = job.current_attempt
    ranks = attempt.placement.ranks
    is_host_gone = all(ranks[each].instance_id in attempt.lost_instances for each in others.live_ranks)
    host_ended_at = attempt.last_host_ended_at if is_host_gone else None
    until = min(since, host_ended_at or since)
    return replace(others, stopped_at=max(others.stopped_at or until, until), live_ranks=(), may_have_run=True)


def see_as_one(
    known: Mapping[int, TaskObservation], count: int, container: str | None, now: datetime
) -> TaskObservation:
    """Return the ranks that are known, of `count` in all, as one; at least one is.

    `container` is the one whose exit code counts; None: all.
    """
    live = tuple(rank for rank, each in known.items() if each.phase is not TaskPhase.STOPPED)
    ending = {rank: each for rank, each in known.items() if each.phase.is_ending}
    first = _deciding(container, ending, now) if ending else min(known)
    phase = _phase(container, known, ending, now)
    decides = known[first]
    has_waited = _waited_in_vain(decides, known, count, now)
    has_met = len(known) == count and not has_waited
    return replace(
        decides,
        phase=phase,
        # That the others take too long is news without a new version of a task, and older than any new version.
        version=2 * sum(each.version for each in known.values()) + _is_overdue(known, ending, now),
        status=_status(known, phase),
        report=_report(first, decides, phase, known, ending),
        node=known[min(known)].node,
        # One that the target does not know may not have started; those that never met have not trained.
        started_at=_latest(each.started_at for each in known.values()) if has_met else None,
        stopped_at=_latest(each.stopped_at for each in known.values()),
        containers_ended_at=ended_at(decides, now) if decides.phase.is_ending else None,
        created_at=min((each.created_at for each in known.values() if each.created_at is not None), default=None),
        rank_count=count,
        live_ranks=live,
        may_have_run=any(each.may_have_run for each in known.values()),
        waited_in_vain=has_waited,
    )


def _phase(
    container: str | None, known: Mapping[int, TaskObservation], ending: Mapping[int, TaskObservation], now: datetime
) -> TaskPhase:
    phases = {each.phase for each in known.values()}
    if len(phases) == 1:
        return phases.pop()
    if ending:
        return TaskPhase.STOPPING if _ends_others(container, known, ending, now) else TaskPhase.RUNNING
    return TaskPhase.PENDING if TaskPhase.PENDING in phases else TaskPhase.STARTING


def _ends_others(
    container: str | None, known: Mapping[int, TaskObservation], ending: Mapping[int, TaskObservation], now: datetime
) -> bool:
    """Return whether the ranks that have ended let the others end too."""
    return any(not is_finished(container, each) for each in ending.values()) or _is_overdue(known, ending, now)


def _is_overdue(known: Mapping[int, TaskObservation], ending: Mapping[int, TaskObservation], now: datetime) -> bool:
    """Return whether others run on for too long; one whose agent is away may have ended, and is waited for."""
    first = min((ended_at(each, now) for each in ending.values()), default=now)
    runs_on = any(rank not in ending and not each.is_unheard for rank, each in known.items())
    return runs_on and now - first >= PEERS_MAY_TAKE


def is_finished(container: str | None, seen: TaskObservation) -> bool:
    """Return whether a rank that ended did so by itself, with 0."""
    is_by_itself = not seen.report.causes - {ReportedCause.ENDED}
    return exit_code_of(seen, container) == 0 and is_by_itself


def _deciding(container: str | None, ending: Mapping[int, TaskObservation], now: datetime) -> int:
    """Return the rank that decides how the attempt ended.

    It is one that was taken away, or else the first that ended with an error, before it was stopped: peers of a node
    that is lost mostly end before the cluster knows of it.
    """

    def order(rank: int) -> tuple[bool, bool, bool, datetime, int]:
        each = ending[rank]
        causes = each.report.causes
        return (
            is_finished(container, each),
            _is_consequence(each),
            not causes & _TAKEN_AWAY,
            ended_at(each, now),
            rank,
        )

    return min(ending, key=order)


def _is_consequence(seen: TaskObservation) -> bool:
    """Return whether a rank ended for another one; one that Relaunch stops since EC2 warned of its machine does not."""
    return is_stopped_by_relaunch(seen) or ReportedCause.PEER_ENDED in seen.report.causes


def _as_they_ended(job: Job, known: dict[int, TaskObservation]) -> dict[int, TaskObservation]:
    """Return the ranks, of which those that had ended before Relaunch stopped them say so.

    One that was stopped for another rank, and went with its instance before anybody saw it end, was lost: its agent was
    away by then, and the other failed for it. EC2 may say so minutes after that.

    So had those that ended before the one for which they were stopped, however soon that was. It had ended by then: one
    that somebody stops ends with the others later, as all save together, and any of them may be the first.
    """
    intent = job.current_attempt.intent
    first = None
    if intent is None or intent.kind is IntentKind.RANK_ENDED:
        ends = (
            each.containers_ended_at for each in known.values() if each.phase.is_ending and not _is_consequence(each)
        )
        own = (at for at in ends if at is not None and (intent is None or at <= intent.at + CLOCK_SKEW))
        first = min(own, default=None)

    def is_before_first(seen: TaskObservation) -> bool:
        at = seen.containers_ended_at
        return first is not None and at is not None and at < first and is_stopped_by_relaunch(seen)

    def as_found(rank: int, seen: TaskObservation) -> TaskObservation:
        if had_ended(seen, intent) or is_before_first(seen):
            return as_it_ended(seen)
        return _as_lost(seen) if _was_lost(job, rank, seen) else seen

    return {rank: as_found(rank, each) for rank, each in known.items()}


def _was_lost(job: Job, rank: int, seen: TaskObservation) -> bool:
    """Return whether a rank that was stopped for another one went with its instance."""
    has_ended = seen.phase is not TaskPhase.STOPPED or exit_code_of(seen, job.definition.container) is not None
    return _is_gone_for_peer(job, rank) and seen.started_at is not None and not has_ended


def _is_gone_for_peer(job: Job, rank: int) -> bool:
    """Return whether the instance of a rank is gone since all were stopped for another one that ended."""
    attempt = job.current_attempt
    # Whether EC2 or the peer tells it first.
    is_for_peer = attempt.intent is not None and attempt.intent.kind in (IntentKind.RANK_ENDED, IntentKind.INTERRUPTION)
    return is_for_peer and attempt.placement.ranks[rank].instance_id in attempt.lost_instances


def _as_lost(seen: TaskObservation) -> TaskObservation:
    causes = seen.report.causes - {ReportedCause.STOP_CALLED} | {ReportedCause.NODE_LOST}
    return replace(seen, report=StopReport("its instance ended before anybody saw it stop", causes))


def is_stopped_by_relaunch(seen: TaskObservation) -> bool:
    """Return whether Relaunch called for the stop of a task, for another reason than a warning by EC2.

    For a warning it may do so before it can save an intent: nothing tells then which was first.
    """
    causes = seen.report.causes
    is_called = ReportedCause.STOP_CALLED in causes and ReportedCause.INTERRUPTED not in causes
    return is_called and BY_RELAUNCH in seen.report.text


def had_ended(seen: TaskObservation, intent: StopIntent | None) -> bool:
    """Return whether the containers of a task that Relaunch stopped had ended before it meant to.

    A target gives the reason of a stop that it is asked for until it hears of the end, which may have been before that:
    the agent of the instance was away.
    """
    at = seen.containers_ended_at or seen.stopped_at
    return is_stopped_by_relaunch(seen) and intent is not None and at is not None and at + CLOCK_SKEW < intent.at


def as_it_ended(seen: TaskObservation) -> TaskObservation:
    """Return a task that had ended before Relaunch stopped it, without the reason of that stop."""
    causes = seen.report.causes - {ReportedCause.STOP_CALLED} | {ReportedCause.ENDED}
    return replace(seen, report=StopReport("it had ended before it was stopped", causes))


def has_other_pod(job: Job, seen: TaskObservation) -> bool:
    """Return whether a pod of a job of several nodes was made after all of them had started: it replaces another."""
    started_at = job.current_attempt.started_at
    made_at = seen.newest_pod_at
    return started_at is not None and made_at is not None and made_at > started_at


def _waited_in_vain(decides: TaskObservation, known: Mapping[int, TaskObservation], count: int, now: datetime) -> bool:
    """Return whether a rank ended after it had waited for others that had not started: it has not trained.

    One that the target does not know may not have started; whether all were ever seen to is known to the attempt.
    """
    if not decides.phase.is_ending or decides.started_at is None:
        return False
    until = ended_at(decides, now)
    is_late = any(each.started_at is None or each.started_at >= until for each in known.values())
    return (is_late or len(known) < count) and until - decides.started_at >= MET_WITHIN


def _status(known: Mapping[int, TaskObservation], phase: TaskPhase) -> str:
    """Return the status in words: `RUNNING`, or `3 of 4 RUNNING` while they differ."""
    statuses = [each.status for each in known.values()]
    if len(set(statuses)) == 1:
        return statuses[0]
    reached = sum(each.phase is TaskPhase.RUNNING for each in known.values())
    return f"{reached} of {len(known)} RUNNING" if not phase.is_ending else f"{phase.value.upper()}, {reached} RUNNING"


def _report(
    rank: int,
    decides: TaskObservation,
    phase: TaskPhase,
    known: Mapping[int, TaskObservation],
    ending: Mapping[int, TaskObservation],
) -> StopReport:
    report = decides.report
    if not ending:
        return report
    if phase is TaskPhase.STOPPING and len(ending) < len(known) and not report.text:
        late = ", ".join(str(each) for each in known if each not in ending)
        return replace(report, text=f"rank {rank} ended; rank {late} did not end with it")
    return replace(report, text=f"rank {rank}: {report.text}") if report.text else report


def _latest(times: Iterable[datetime | None]) -> datetime | None:
    """Return the latest of these times; None if one is not known."""
    known = tuple(times)
    return max((each for each in known if each is not None), default=None) if None not in known else None


def needs_replacements(job: Job, _event: object = None) -> bool:
    """Return whether those machines of a job of several nodes that are lost may be replaced, and the others kept.

    EC2 takes one away, or has: its tasks are stopped for that, and it is not decided yet.
    """
    attempt = job.attempt
    if attempt is None or job.state is not JobState.STOPPING or not has_gang(attempt):
        return False
    is_interrupted = attempt.intent is not None and attempt.intent.kind is IntentKind.INTERRUPTION
    is_taken = attempt.warned_at is not None or attempt.host_ended_at is not None
    is_decided = bool(job.machine_id) or attempt.leaves_survivors
    return is_interrupted and is_taken and not (is_decided or job.cancel_requested)


def leave_survivors(job: Job, event: SurvivorsLeft, now: datetime, _limits: StackLimits) -> Decision:
    """Note that all machines are given back once the tasks have stopped."""
    left = replace(job, machine_id="", attempt=replace(job.current_attempt, leaves_survivors=True))
    wake_at = job.wake_at or now
    return move(left, job.state, now, event="machines not kept", detail=event.reason, wake_at=wake_at)
