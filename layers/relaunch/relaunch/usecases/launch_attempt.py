"""Launch a job: choose and save its placement, send it; a running task is handed over to its next machine."""

from datetime import timedelta

from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.jobs.effects import RequestLaunch
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.overheads import machine_asked_at
from relaunch.core.jobs.state import REFUSED_WAITS, JobState, WaitReason
from relaunch.core.lifecycle.groups import leaves_group
from relaunch.ports import LaunchDependencies, StaleWriteError
from relaunch.usecases.advance_job import advance_job, apply_event, finish_pending
from relaunch.usecases.choose_placement import choose_unless_no_progress
from relaunch.usecases.concurrency_groups import find_denial, load_standing
from relaunch.usecases.hand_over import hand_over
from relaunch.usecases.send_placement import send_placement

# Several messages may request the launch of one job at once. Returned to the queue, those that lose the race would be
# delivered together, lose again, and end in the dead-letter queue.
_RETRIES = 5
# What follows a save is sent within a second; a message that finds it undone after this time does it.
_AT_WORK = timedelta(seconds=5)
# Clocks differ and SQS delays by whole seconds: a launch may be this much ahead of the end of its back-off.
_CLOCK_SKEW = timedelta(seconds=5)
_UNTIL = frozenset({WaitReason.BACKOFF, WaitReason.MACHINE})


def launch_attempt(job_id: str, deps: LaunchDependencies) -> Job | None:
    """Launch a job, as far as possible now; may be called repeatedly.

    Returns the job after that, None if it does not exist.

    Raises:
        TransientError: a temporary error; retry.
        NotYetError: the target does not describe a task yet that it has.
    """
    for has_lost in (False, *[True] * _RETRIES):
        try:
            return _launch_once(job_id, deps, has_lost=has_lost)
        except StaleWriteError:
            continue
    raise StaleWriteError(f"job {job_id} was saved by others {_RETRIES + 1} times while it was being launched")


def _launch_once(job_id: str, deps: LaunchDependencies, *, has_lost: bool) -> Job | None:
    job = deps.jobs.load_job(job_id)
    standing = load_standing(job, deps) if job is not None else None
    if job is not None and standing is not None and (replacement := leaves_group(job, standing)) is not None:
        return advance_job(job_id, lambda _job: replacement, deps)
    if job is None or _is_at_work(job, deps):
        reason = "no such job" if job is None else "another function has just decided on it, and does what follows"
        deps.log.decided("ignored", job_id=job_id, reason=reason)
        return job
    if _has_effects(job):
        job = finish_pending(job, deps)
    if job.state in (JobState.RUNNING, JobState.STOPPING):
        return hand_over(job, deps)
    was_waiting = job.state is JobState.WAITING
    if was_waiting and _may_choose(job, deps):
        denial = find_denial(job, standing, deps) if standing is not None else None
        job = choose_unless_no_progress(job, deps) if denial is None else apply_event(job, denial, deps)
        has_lost = False
    if has_lost:
        # The writer that won the race sends its placement.
        return job
    if job.state is JobState.LAUNCHING and job.current_attempt.placement.state is PlacementState.PENDING:
        return send_placement(job, deps, is_first=was_waiting)
    return job


def _has_effects(job: Job) -> bool:
    return any(not isinstance(effect, RequestLaunch) for effect in job.pending)


def _is_at_work(job: Job, deps: LaunchDependencies) -> bool:
    """Return whether the function that saved the claim or the placement of the job is probably carrying it out now.

    Each machine that becomes ready, and each job that claims one, wakes the oldest jobs that wait, so that a job is
    woken several times at once. What a function leaves undone that dies now is done when its message comes again.
    """
    since = machine_asked_at(job) if job.state is JobState.WAITING and _has_effects(job) else None
    if job.state is JobState.LAUNCHING and job.current_attempt.intent is None:
        placement = job.current_attempt.placement
        since = placement.requested_at if placement.state is PlacementState.PENDING else None
    return since is not None and deps.clock.now() - since < _AT_WORK


def _may_choose(job: Job, deps: LaunchDependencies) -> bool:
    waiting = job.waiting
    if waiting is None or waiting.reason is WaitReason.LAUNCH:
        return True
    if waiting.reason is WaitReason.IMAGE:
        return False
    is_early = waiting.until is not None and deps.clock.now() < waiting.until - _CLOCK_SKEW
    # A message that comes twice must not buy another machine.
    return not (is_early and (waiting.reason in _UNTIL or waiting.reason in REFUSED_WAITS))
