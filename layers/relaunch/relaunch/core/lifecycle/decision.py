"""A decision about a job: what to save, and which effects follow.

Tasks of targets that send no events are looked at. ECS publishes a state change of every task; a function cannot hold a
watch of a Kubernetes API server: its Jobs are listed every minute, as long as one of them is of an open job.
"""

from dataclasses import field, replace
from datetime import datetime, timedelta

from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.jobs.budgets import BudgetChange
from relaunch.core.jobs.cost import CostEntry
from relaunch.core.jobs.effects import AdmitWaiting, Effect, RequestLaunch, StopTask
from relaunch.core.jobs.groups import GroupChange
from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.jobs.state import JobState, Waiting, WaitReason
from relaunch.core.lifecycle.events import TimePassed
from relaunch.core.machines.decision import MachineDecision
from relaunch.core.records import dataclass
from relaunch.core.selection.selection import Selection

# A job whose message was lost is checked again after this time, which is longer than messages usually take.
LAUNCH_TIMEOUT = timedelta(minutes=5)
# The interval at which a running task is described, in case its events were lost.
HEARTBEAT = timedelta(minutes=10)
# The interval of looks at a task that seems to be gone. Looks fail too: with two in ten minutes none may succeed.
CLOSE_LOOK = timedelta(minutes=1)
# A stop is counted from when the target took it, if that was later than this after it was decided.
_SENT_LATE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Decision:
    """The job to save, and everything saved in the same transaction.

    The effects that follow the save are in `job.pending`. `selection` was made at `selected_at`. `take_slot_limits`
    (the limit of the definition, that of the stack): take a slot of both, for a job without slots. `release_slot`:
    release both, for a job with slots. `group_change`: the job takes its concurrency group, which only the newest job
    can while no other one holds it, or releases it. `link_instance`: store that the current attempt runs on
    `attempt.instance_id`, and on those of its other ranks; `unlinked_instances`: that the job runs on these no more.
    `machines`: a machine that is requested for the job, claims and releases; each machine at most once.
    `costs`: what is added to the sums of what jobs cost. `budgets`: what the job reserves of budgets, or gives back.
    An ignored decision changes nothing; `note` says why. `action` is the name of the action that decided; empty if
    there was none.
    """

    job: Job
    timeline: tuple[TimelineEntry, ...] = ()
    selection: Selection | None = None
    selected_at: datetime | None = None
    take_slot_limits: tuple[int, int] | None = None
    release_slot: bool = False
    group_change: GroupChange | None = None
    link_instance: bool = False
    unlinked_instances: tuple[str, ...] = ()
    machines: tuple[MachineDecision, ...] = ()
    costs: tuple[CostEntry, ...] = ()
    budgets: tuple[BudgetChange, ...] = ()
    is_ignored: bool = False
    note: str = ""
    action: str = field(default="", compare=False)

    def followed_by(self, later: "Decision") -> "Decision":
        """Return one decision of two; the later one was made about the job of this one.

        One of both changes nothing but the job, the sums of costs and what is given back to budgets.
        """
        if later.is_ignored:
            return self
        whole = later if later.timeline else self
        costs = (*self.costs, *later.costs)
        budgets = (*self.budgets, *later.budgets)
        timeline = (*self.timeline, *later.timeline)
        return replace(whole, job=later.job, timeline=timeline, costs=costs, budgets=budgets)


def ignore(job: Job, note: str) -> Decision:
    """Return a decision that changes nothing."""
    return Decision(job, is_ignored=True, note=note)


def move(  # noqa: PLR0913 - the parts of one transition, all of them named at every call
    job: Job,
    state: JobState,
    now: datetime,
    *,
    event: str,
    detail: str = "",
    wake_at: datetime | None = None,
    effects: tuple[Effect, ...] = (),
) -> Decision:
    """Move a job to a state, or keep it there, with one timeline entry."""
    if state is not JobState.WAITING:
        job = _end_wait(job, now)
    moved = replace(
        job,
        state=state,
        state_since=job.state_since if state is job.state else now,
        wake_at=wake_at,
        waiting=job.waiting if state is JobState.WAITING else None,
        pending=effects,
    )
    number = moved.attempt.number if moved.attempt else None
    return Decision(moved, (TimelineEntry(now, state, event, detail, number),))


def set_next_check(job: Job, wake_at: datetime, effects: tuple[Effect, ...] = ()) -> Decision:
    """Set the time of the next check, without a timeline entry."""
    return Decision(replace(job, wake_at=wake_at, pending=effects))


def wait(
    job: Job,
    waiting: Waiting,
    now: datetime,
    *,
    event: str,
    wake_at: datetime,
    effects: tuple[Effect, ...] = (),
) -> Decision:
    """Let a job wait.

    A job that waited for the same before keeps `since`, and its timeline gets no entry.
    """
    before = job.waiting
    is_same = before is not None and (before.reason, before.slot) == (waiting.reason, waiting.slot)
    if before is not None and is_same:
        waiting = replace(waiting, since=before.since)
    else:
        job = _end_wait(job, now)
    job = replace(job, waiting=waiting, reason=waiting.detail)
    decision = move(job, JobState.WAITING, now, event=event, detail=waiting.detail, wake_at=wake_at, effects=effects)
    return replace(decision, timeline=()) if is_same else decision


def _end_wait(job: Job, now: datetime) -> Job:
    queued = job.queued_time(now).total_seconds()
    if job.totals.first_started_at is None:
        held_back = job.held_back_in_all(now).total_seconds()
        waits = replace(job.waits, held_back_before_seconds=held_back, queued_before_seconds=queued)
    else:
        held_back = job.held_back_time(now).total_seconds()
        waits = replace(job.waits, held_back_seconds=held_back, queued_seconds=queued)
    return replace(job, waits=waits)


def watch_closely(job: Job, wake_at: datetime, now: datetime) -> datetime:
    """Return when to look at a task: at `wake_at`, or soon if its host has ended or the target does not know it.

    Several tasks that start are looked at soon, too: an answer about one may be old when the last event comes.
    """
    attempt = job.current_attempt
    is_forming = job.state is JobState.LAUNCHING and len(attempt.placement.ranks) > 1
    has_lost_ranks = 0 < len(attempt.live_ranks) < len(attempt.placement.ranks)
    is_doubtful = attempt.host_ended_at is not None or attempt.missing is not None or has_lost_ranks or is_forming
    return min(wake_at, now + CLOSE_LOOK) if is_doubtful else wake_at


def try_again_at(job: Job, reason: WaitReason, detail: str, now: datetime, retry_at: datetime) -> Decision:
    """Wait until then, or until the deadline of the job if that is earlier."""
    if job.definition.deadline is not None:
        retry_at = min(retry_at, job.accepted_at + job.definition.deadline)
    # The job was admitted and leaves its slot free: admit the next one.
    effects = (AdmitWaiting(),) if waits_for_slot(job) else ()
    waiting = Waiting(reason, now, detail, retry_at)
    return wait(job, waiting, now, event=f"waiting for {reason}", wake_at=retry_at, effects=effects)


def wait_for_launch(
    job: Job, now: datetime, *, event: str, detail: str, delay_seconds: int = 0, before: tuple[Effect, ...] = ()
) -> Decision:
    """Request the next launch; `before` are effects that come first."""
    effects = (*before, RequestLaunch(delay_seconds))
    delay = timedelta(seconds=delay_seconds)
    waiting = Waiting(
        WaitReason.BACKOFF if delay_seconds else WaitReason.LAUNCH, now, detail, now + delay if delay_seconds else None
    )
    return wait(job, waiting, now, event=event, wake_at=now + delay + LAUNCH_TIMEOUT, effects=effects)


def waits_for_slot(job: Job) -> bool:
    """Return whether the job waits for a slot; if it is admitted and takes none, the slot is for the next job."""
    return job.waiting is not None and job.waiting.reason is WaitReason.SLOT


def end(
    job: Job, state: JobState, now: datetime, *, event: str, detail: str, before: tuple[Effect, ...] = ()
) -> Decision:
    """Move a job to a final state, release its slot and admit the next job; `before` are effects that come first."""
    ended = replace(job, ended_at=now, reason=detail, has_slot=False)
    effects = (*before, AdmitWaiting()) if job.has_slot or waits_for_slot(job) else before
    # A finished job is due only until its effects are done.
    wake_at = now + LAUNCH_TIMEOUT if effects else None
    decision = move(ended, state, now, event=event, detail=detail, wake_at=wake_at, effects=effects)
    return replace(decision, release_slot=job.has_slot)


def stop_effect(job: Job, reason: str) -> tuple[Effect, ...]:
    """Return the effects that stop all tasks of the job; empty if there is none."""
    return stop_effects(job.attempt.placement.task_ids if job.attempt else (), reason)


def stop_effects(task_ids: tuple[str, ...], reason: str) -> tuple[Effect, ...]:
    """Return the effects that stop these tasks; `reason` becomes their `stoppedReason`."""
    return tuple(StopTask(arn, f"Relaunch: {reason}") for arn in task_ids)


def note_stop_sent(job: Job, now: datetime) -> Job:
    """Return a job that is stopping, and whose pending effects are done now, with a StopTask noted that was held back.

    A target that does not answer, or a permission that is missing, holds it back for up to hours, in which no host can
    confirm it.
    """
    attempt = job.current_attempt
    if attempt.stop_sent_at is not None:
        return job
    is_sent = any(isinstance(each, StopTask) and each.task_id in attempt.placement.task_ids for each in job.pending)
    if not is_sent or now - stopping_since(job) < _SENT_LATE:
        return job
    return replace(job, attempt=replace(attempt, stop_sent_at=now))


def stopping_since(job: Job) -> datetime:
    """Return when the target took the stop of a job that is stopping, as far as it is known to be later than its state.

    A job of the previous release has no time of its state.
    """
    return job.current_attempt.stop_sent_at or job.state_since or job.accepted_at


def with_unlink(before: Job, _event: object, decision: Decision, _now: datetime) -> Decision:
    """Return the decision, which unlinks the job from the instance of a task that it closes.

    An instance that is kept warm, or that a capacity provider keeps, runs hundreds of tasks one after the other: its
    warning must find those that run.
    """
    instances = linked_instances(before)
    after = decision.job
    return decision if linked_instances(after) == instances else replace(decision, unlinked_instances=instances)


def linked_instances(job: Job) -> tuple[str, ...]:
    """Return the instances of the job's tasks; empty if they are unknown or the tasks have stopped."""
    attempt = job.attempt
    if attempt is None or attempt.placement.state is PlacementState.CLOSED or not attempt.instance_id:
        return ()
    return (attempt.instance_id, *(each.instance_id for each in attempt.placement.followers))


POLL_INTERVAL = timedelta(minutes=1)
"""The interval at which reconcile runs (template.yaml)."""

# Due well before the next run of reconcile, whenever in the current one the job was handled.
_DUE_AFTER = POLL_INTERVAL / 2
_WITH_TASK = frozenset({JobState.LAUNCHING, JobState.RUNNING, JobState.STOPPING})


def is_polled(job: Job) -> bool:
    """Return whether the target of the job sends no events of its tasks."""
    return not job.definition.target.capabilities.sends_events


def with_found(_before: Job, event: object, decision: Decision, _now: datetime) -> Decision:
    """Return the decision; a task that the target has just described is not missing any more, though nothing is new."""
    attempt = decision.job.attempt
    if not isinstance(event, TimePassed) or not event.is_described or attempt is None or attempt.missing is None:
        return decision
    return replace(decision, job=replace(decision.job, attempt=replace(attempt, missing=None, missing_ranks=())))


def with_poll(_before: Job, _event: object, decision: Decision, now: datetime) -> Decision:
    """Return the decision; a job with a task of a polled target is due at the next run of reconcile at the latest."""
    job = decision.job
    if decision.is_ignored or not is_polled(job) or job.state not in _WITH_TASK:
        return decision
    if job.current_attempt.placement.state is not PlacementState.PLACED:
        return decision
    due_at = now + _DUE_AFTER
    if job.wake_at is not None and job.wake_at <= due_at:
        return decision
    return replace(decision, job=replace(job, wake_at=due_at))
