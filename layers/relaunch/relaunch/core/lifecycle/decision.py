"""A decision about a job: what to save, and what to do once it is saved."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from relaunch.core.jobs.job import (
    AdmitWaiting,
    Effect,
    Job,
    JobState,
    RequestLaunch,
    StopTask,
    TimelineEntry,
    Waiting,
    WaitReason,
)
from relaunch.core.selection.selection import Selection

# A job whose message got lost is looked at again after this long; longer than a message usually takes.
LAUNCH_TIMEOUT = timedelta(minutes=5)
# How often a running task is compared with what ECS says, in case its events got lost.
HEARTBEAT = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Decision:
    """The job as it is to be saved, with everything that goes into the same write.

    The effects to be done after the save are in `job.pending`. `selection` was made at `selected_at`.
    `take_slot_limits` (the definition's cap, the stack's cap): take a slot in both; for a job that has none.
    `release_slot`: give both back; for a job that has them. `link_instance`: record that the current attempt runs on
    `attempt.instance_id`. An ignored decision changes nothing; `note` says why. `action` names the row of the
    transition table that decided, by its action; empty when there was none.
    """

    job: Job
    timeline: tuple[TimelineEntry, ...] = ()
    selection: Selection | None = None
    selected_at: datetime | None = None
    take_slot_limits: tuple[int, int] | None = None
    release_slot: bool = False
    link_instance: bool = False
    is_ignored: bool = False
    note: str = ""
    action: str = field(default="", compare=False)


def ignore(job: Job, note: str) -> Decision:
    """Change nothing."""
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
    """Move a job to a state (or keep it there) with one line in its timeline."""
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


def look_again(job: Job, wake_at: datetime, effects: tuple[Effect, ...] = ()) -> Decision:
    """Leave a job as it is until the next look; of routine looks the timeline says nothing, they would fill it."""
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
    """Let a job wait for something, in words for its owner.

    Who waited for the same thing before goes on waiting since then, without another line in the timeline.
    """
    before = job.waiting
    is_same = before is not None and (before.reason, before.slot) == (waiting.reason, waiting.slot)
    if before is not None and is_same:
        waiting = replace(waiting, since=before.since)
    job = replace(job, waiting=waiting, reason=waiting.detail)
    decision = move(job, JobState.WAITING, now, event=event, detail=waiting.detail, wake_at=wake_at, effects=effects)
    return replace(decision, timeline=()) if is_same else decision


def wait_for_launch(
    job: Job, now: datetime, *, event: str, detail: str, delay_seconds: int = 0, before: tuple[Effect, ...] = ()
) -> Decision:
    """Ask for the next launch; `before` are effects to be done first."""
    effects = (*before, RequestLaunch(delay_seconds))
    delay = timedelta(seconds=delay_seconds)
    waiting = Waiting(
        WaitReason.BACKOFF if delay_seconds else WaitReason.LAUNCH, now, detail, now + delay if delay_seconds else None
    )
    return wait(job, waiting, now, event=event, wake_at=now + delay + LAUNCH_TIMEOUT, effects=effects)


def waits_for_slot(job: Job) -> bool:
    """Tell whether the job waits for a slot; when it is let in there is one, and somebody shall have it."""
    return job.waiting is not None and job.waiting.reason is WaitReason.SLOT


def end(job: Job, state: JobState, now: datetime, *, event: str, detail: str) -> Decision:
    """Bring a job to its final state, give its slot back and let the next one in."""
    ended = replace(job, ended_at=now, reason=detail, has_slot=False)
    effects = (AdmitWaiting(),) if job.has_slot or waits_for_slot(job) else ()
    # A job that is over is due only as long as the slot may not have been handed on.
    wake_at = now + LAUNCH_TIMEOUT if effects else None
    decision = move(ended, state, now, event=event, detail=detail, wake_at=wake_at, effects=effects)
    return replace(decision, release_slot=job.has_slot)


def stop_effect(job: Job, reason: str) -> tuple[Effect, ...]:
    """Return the effect that stops the job's task, nothing when there is none."""
    arn = job.attempt.task_arn if job.attempt else None
    return stop_effects((arn,) if arn else (), reason)


def stop_effects(task_arns: tuple[str, ...], reason: str) -> tuple[Effect, ...]:
    """Return the effects that stop these tasks; ECS shows the reason as the task's `stoppedReason`."""
    return tuple(StopTask(arn, f"Relaunch: {reason}") for arn in task_arns)
