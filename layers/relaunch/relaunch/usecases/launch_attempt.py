"""Launch a job: choose an offering, freeze the placement try, send RunTask, take down what came of it."""

import re
from dataclasses import replace
from datetime import timedelta

from relaunch.core.jobs.job import STACK_SLOT, Job, JobState, PlacementState, RequestLaunch, WaitReason
from relaunch.core.launches.launch import LaunchDeferred, LaunchOutcome, LaunchRefused
from relaunch.core.launches.launch_plan import plan_launch
from relaunch.core.lifecycle.events import (
    LaunchAnswered,
    LaunchImpossible,
    NothingKept,
    OfferingChosen,
    PlacementExpired,
    SlotDenied,
    TaskSeen,
)
from relaunch.core.revisions.revision import parse_revision_arn
from relaunch.core.selection.selection import Selection, explain_rejection, select
from relaunch.ports import LaunchDependencies, PermanentError, PortError, SlotsFullError, StaleWriteError
from relaunch.usecases.advance_job import act, advance_job, apply_event
from relaunch.usecases.explain_placement import explain_placement
from relaunch.usecases.load_offerings import load_offerings
from relaunch.usecases.prepare_revision import prepare_revision

# A client token lives at least an hour after its task ended; a try older than this is never sent (Amazon ECS API
# Reference, "Ensuring idempotency").
_OLDEST_PLACEMENT = timedelta(minutes=50)
# A function that was sending when the try became too old, or the job was cancelled, has ended after a minute, and ECS
# lists the task it may have made: the page of RunTask has callers look again for up to five.
_SENDING_GRACE = timedelta(minutes=6)
_LOOK_SECONDS = 30
_ABOUT_REVISION = re.compile(r"(?i)task ?definition")
# Several messages may ask for one job's launch at once. Left to their queue, those that lose would come back together,
# lose again, and end among the dead letters.
_RACES = 5
# Two clocks, and SQS delays by whole seconds: a launch this much ahead of its back-off is not ahead.
_EARLY = timedelta(seconds=5)


def launch_attempt(job_id: str, deps: LaunchDependencies) -> Job | None:
    """Bring a job as far towards a task as it can be brought now; called as often as one likes.

    Returns the job as it stands then, None when there is no such job.

    Raises:
        TransientError: something failed for now; the message is to be delivered again.
    """
    for has_lost in (False, *[True] * _RACES):
        try:
            return _bring_on(job_id, deps, has_lost=has_lost)
        except StaleWriteError:
            continue
    raise StaleWriteError(f"job {job_id} was saved by others {_RACES + 1} times while it was being launched")


def _bring_on(job_id: str, deps: LaunchDependencies, *, has_lost: bool) -> Job | None:
    job = deps.jobs.load_job(job_id)
    if job is None:
        deps.log.decided("ignored", job_id=job_id, reason="no such job")
        return None
    if any(not isinstance(effect, RequestLaunch) for effect in job.pending):
        job = act(job, deps)
    was_waiting = job.state is JobState.WAITING
    if was_waiting and _may_choose(job, deps):
        job, has_lost = _choose(job, deps), False
    if has_lost:
        # Whoever was faster sends what it froze.
        return job
    if job.state is JobState.LAUNCHING and job.current_attempt.placement.state is PlacementState.PENDING:
        return _send(job, deps, is_first=was_waiting)
    return job


def _may_choose(job: Job, deps: LaunchDependencies) -> bool:
    waiting = job.waiting
    if waiting is None or waiting.reason is WaitReason.LAUNCH:
        return True
    if waiting.reason is WaitReason.IMAGE:
        return False
    is_early = waiting.until is not None and deps.clock.now() < waiting.until - _EARLY
    return not (waiting.reason is WaitReason.BACKOFF and is_early)


def _choose(job: Job, deps: LaunchDependencies) -> Job:
    available = load_offerings(deps, job.job_id)
    selection = select(
        job.definition, job.revision, available.offerings, available.memory, available.at, available.limits
    )
    if not selection.kept:
        return apply_event(job, _nothing_kept(selection), deps)
    try:
        prepared = prepare_revision(job, selection.kept[0], deps)
        resume_uri = _resume_uri(job, deps)
    except PermanentError as error:
        return apply_event(job, LaunchImpossible(str(error)), deps)
    chosen = OfferingChosen(selection.kept[0], selection, resume_uri, prepared)
    try:
        return apply_event(job, chosen, deps)
    except SlotsFullError as full:
        slot = STACK_SLOT if full.cap == "stack" else job.definition.name
        return apply_event(job, SlotDenied(slot, full.limit), deps)


def _nothing_kept(selection: Selection) -> NothingKept:
    return NothingKept(
        selection,
        explain_rejection(selection),
        is_permanent=selection.is_permanent,
        is_price=selection.retry_at is None,
        retry_at=selection.retry_at,
    )


def _resume_uri(job: Job, deps: LaunchDependencies) -> str | None:
    if job.definition.checkpoint_uri is None or job.attempt is None:
        return None
    try:
        return deps.checkpoints.newest_complete(job.definition.checkpoint_uri, job.job_id)
    except PermanentError as error:
        raise PermanentError(f"{error}; is the bucket among the stack's CheckpointBuckets?") from error


def _send(job: Job, deps: LaunchDependencies, *, is_first: bool) -> Job | None:
    attempt = job.current_attempt
    unsendable_at = attempt.placement.requested_at + _OLDEST_PLACEMENT
    if attempt.intent is not None:
        unsendable_at = min(unsendable_at, attempt.intent.at)
    overdue = deps.clock.now() - unsendable_at
    if overdue >= timedelta(0):
        return _look_for_task(job, overdue > _SENDING_GRACE, deps)
    answered = _answer(job, _launch(job, deps), deps, is_first=is_first)
    try:
        # Not by advance_job: it would first repeat the very launch request that is being answered here.
        return apply_event(job, answered, deps)
    except StaleWriteError:
        return advance_job(job.job_id, lambda _job: answered, deps)


def _answer(
    job: Job, outcome: LaunchOutcome, deps: LaunchDependencies, *, is_first: bool
) -> LaunchAnswered | PlacementExpired:
    """Make the event of an outcome; a refusal because the try's derived revision is gone only ends the try."""
    number, placement = job.current_attempt.number, job.current_attempt.placement
    if isinstance(outcome, LaunchRefused):
        arn = placement.revision_arn
        # What ECS says of the revision it says of a token that it does not know: nothing was launched with it.
        family = parse_revision_arn(arn) if arn and (is_first or _ABOUT_REVISION.search(outcome.reason)) else None
        if family is not None and deps.registry.find_active(family[0]) != arn:
            return PlacementExpired(number, placement.number, f"the derived revision {arn} was deregistered")
        if not is_first:
            # Who sent this try before may have got a task without learning so, and a permission that is missing now
            # says nothing of that: it is found once it is seen, or looked for when the try is too old.
            outcome = LaunchDeferred(outcome.reason)
    return LaunchAnswered(number, placement.number, outcome)


def _launch(job: Job, deps: LaunchDependencies) -> LaunchOutcome:
    try:
        outcome = deps.tasks.launch(plan_launch(job))
    except PermanentError as error:
        return LaunchRefused(str(error))
    if isinstance(outcome, LaunchDeferred):
        return replace(outcome, waiting=_count_requests(deps))
    return explain_placement(outcome, job, deps)


def _count_requests(deps: LaunchDependencies) -> int | None:
    try:
        return deps.launches.count_requests()
    except PortError as error:
        deps.log.decided("launch requests not counted", reason=str(error))
        return None


def _look_for_task(job: Job, is_certain: bool, deps: LaunchDependencies) -> Job:
    """Find out whether RunTask took effect, without sending it; look again until it is certain that nobody sends it."""
    attempt = job.current_attempt
    closed = {each.task_arn for each in attempt.closed_placements}
    found = [task for task in deps.tasks.find_started_by(job.started_by) if task.task_arn not in closed]
    if found:
        newest = max(found, key=lambda task: (task.created_at is not None, task.created_at, task.task_arn))
        return apply_event(job, TaskSeen(newest), deps)
    if is_certain:
        return apply_event(job, PlacementExpired(attempt.number, attempt.placement.number), deps)
    deps.launches.request_launch(job.job_id, _LOOK_SECONDS)
    return job
