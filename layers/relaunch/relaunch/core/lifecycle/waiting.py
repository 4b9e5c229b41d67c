"""Actions of the transition table for jobs that wait: for a launch, an image, a slot, capacity, or what is refused.

Each is a pure function of (job, event, now, limits) and returns the decision to save.
"""

import zlib
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.jobs.effects import AdmitWaiting, RequestLaunch
from relaunch.core.jobs.job import STACK_SLOT, Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState, RefusedCall, Waiting, WaitReason
from relaunch.core.lifecycle.decision import (
    LAUNCH_TIMEOUT,
    Decision,
    end,
    set_next_check,
    try_again_at,
    wait,
    wait_for_launch,
)
from relaunch.core.lifecycle.events import (
    CancelAsked,
    CheckpointsUnreadable,
    ImageArrived,
    LaunchImpossible,
    LaunchNotGranted,
    NothingKept,
    SlotDenied,
    TimePassed,
)
from relaunch.core.lifecycle.long_waits import describe_end, look_or_tell, wait_of
from relaunch.core.lifecycle.refusal_waits import wait_until_granted
from relaunch.core.lifecycle.restart_policy import out_of_time
from relaunch.core.revisions.images import describe_pin, plan_pins, with_platforms

# A job that ends admits the next one; this interval covers a lost message.
_SLOT_POLL_INTERVAL = timedelta(minutes=15)
_CAPACITY_POLL_INTERVAL = timedelta(minutes=5)
_MARKET_POLL_INTERVAL = timedelta(minutes=30)
# Looks that are at most 31 minutes apart are what all jobs promise.
_UNREADY_POLL_INTERVAL = timedelta(minutes=10)
_TURNS = timedelta(minutes=20)
# The interval at which ECR is queried for an awaited image, in case its event was lost.
IMAGE_POLL_INTERVAL = timedelta(minutes=2)


def image_arrived(job: Job, event: ImageArrived, now: datetime, _limits: StackLimits) -> Decision:
    """Pin the image and request the launch."""
    pins = [pin for pin in plan_pins(job.revision, job.image)[0] if pin.is_awaited]
    notes = [describe_pin(pin, event.found) for pin in pins]
    images = {**job.images, **{pin.container: pin.image.at(event.found.digest) for pin in pins}}
    revision = with_platforms(job.revision, {pin.container: event.found.platforms for pin in pins})
    detail = "; ".join([f"image {event.repository}:{event.tag} is there", *notes])
    return wait_for_launch(replace(job, images=images, revision=revision), now, event="image arrived", detail=detail)


def nothing_kept(job: Job, event: NothingKept, now: datetime, _limits: StackLimits) -> Decision:
    """Fail if no offering can ever satisfy the job, else wait."""
    if event.waits_for is None:
        decision = end(job, JobState.FAILED, now, event="nothing satisfies it", detail=event.message)
        return replace(decision, selection=event.selection, selected_at=now)
    # Not only at `retry_at`: an instance that arrives late ends an avoidance early, and only the oldest jobs are woken.
    # A market policy knows when it chooses again, but what other jobs see of the market is no event of this one.
    poll_at = now + (
        _MARKET_POLL_INTERVAL if event.waits_for is WaitReason.MARKET and event.retry_at else _CAPACITY_POLL_INTERVAL
    )
    retry_at = max(min(event.retry_at or poll_at, poll_at), now + timedelta(seconds=15))
    if event.waits_for is WaitReason.REFUSED:
        # To look again is free; whoever buys the next machine finds out for all jobs.
        # The jobs do so one after the other: the first machine tells the others before they buy theirs.
        turn = timedelta(seconds=zlib.crc32(job.job_id.encode()) % int(_TURNS.total_seconds()))
        pause = min(max((event.retry_at or now) + turn - now, _CAPACITY_POLL_INTERVAL), _UNREADY_POLL_INTERVAL + turn)
        # What is refused to the job itself is what all with its revision wait for.
        own = (each for each in (RefusedCall.START, RefusedCall.LAUNCH) if each in job.refusals)
        call = next(own, RefusedCall.USEFUL_MACHINE)
        decision = wait_until_granted(job, call, event.message, now, pause=pause, tried_at=event.retry_at)
        return replace(decision, selection=event.selection, selected_at=now)
    decision = try_again_at(job, event.waits_for, event.message, now, retry_at)
    return replace(decision, selection=event.selection, selected_at=now)


def checkpoints_unreadable(job: Job, event: CheckpointsUnreadable, now: datetime, _limits: StackLimits) -> Decision:
    """Wait until they can be read: what was trained is kept, and a permission is granted without a new job."""
    return wait_until_granted(job, RefusedCall.CHECKPOINT, event.reason, now, machine_id=job.machine_id)


def launch_not_granted(job: Job, event: LaunchNotGranted, now: datetime, _limits: StackLimits) -> Decision:
    """Wait until what the launch needs is granted."""
    return wait_until_granted(job, RefusedCall.LAUNCH, event.reason, now, machine_id=job.machine_id)


def launch_impossible(job: Job, event: LaunchImpossible, now: datetime, _limits: StackLimits) -> Decision:
    """Fail: the revision for the selected offering cannot be made."""
    return end(job, JobState.FAILED, now, event="launch impossible", detail=event.reason)


def slot_denied(job: Job, event: SlotDenied, now: datetime, _limits: StackLimits) -> Decision:
    """Wait until a job of the definition, or of the stack, ends, or the one that holds the concurrency group."""
    whose = "the stack" if event.slot == STACK_SLOT else f"definition {event.slot}"
    detail = f"{whose} has no free slot of its {event.limit} (max_running_jobs)"
    if event.holder:
        detail = f"job {event.holder} of its concurrency group {job.group.name} has not ended"
    waiting = Waiting(WaitReason.SLOT, now, detail, slot=event.slot)
    # There is a free slot, which another limit or the group keeps this job from taking: admit the next one.
    awaited = job.waiting.slot if job.waiting is not None else ""
    passes_on = (STACK_SLOT, job.definition.name) if event.holder else (STACK_SLOT,)
    admits_next = event.slot != STACK_SLOT and awaited in passes_on
    effects = (AdmitWaiting(),) if admits_next else ()
    return wait(job, waiting, now, event="waiting for slot", wake_at=now + _SLOT_POLL_INTERVAL, effects=effects)


def cancel_waiting(job: Job, event: CancelAsked, now: datetime, _limits: StackLimits) -> Decision:
    """End the job at once: it has no task."""
    return end(job, JobState.CANCELLED, now, event="cancelled", detail=event.reason)


def wake_waiting(job: Job, _event: TimePassed, now: datetime, _limits: StackLimits) -> Decision:
    """End a job that is out of time or whose image is missing, else request its launch."""
    verdict = out_of_time(job, now)
    if verdict is not None:
        return end(job, verdict.state, now, event="out of time", detail=verdict.reason)
    queued = wait_of(job, now)
    if queued is not None and queued.is_over:
        return end(job, JobState.FAILED, now, event="waited for too long", detail=describe_end(job, queued))
    waiting = job.waiting
    if waiting is not None and waiting.reason is WaitReason.IMAGE:
        if waiting.until is not None and now >= waiting.until:
            detail = f"{waiting.detail}: it did not come until {waiting.until:%H:%M:%S} UTC"
            return end(job, JobState.FAILED, now, event="no image", detail=detail)
        until = min(waiting.until or now + IMAGE_POLL_INTERVAL, now + IMAGE_POLL_INTERVAL)
        return set_next_check(job, until)
    effects = (RequestLaunch(),)
    wake_at = now + (_SLOT_POLL_INTERVAL if waiting is not None and waiting.slot else LAUNCH_TIMEOUT)
    return look_or_tell(job, now, set_next_check(job, wake_at, effects))
