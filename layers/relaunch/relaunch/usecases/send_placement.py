"""Send a placement to its target: call RunTask, or create the Job, and save what the target answers, explained."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.jobs.job import Job
from relaunch.core.launches.launch import (
    LaunchDeferred,
    LaunchOutcome,
    LaunchRefused,
    PlacementFailed,
    Shortage,
    TaskObservation,
    TaskPhase,
    TaskPlaced,
)
from relaunch.core.launches.launch_plan import OLDEST_GANG_PLACEMENT, OLDEST_PLACEMENT, plan_launch
from relaunch.core.lifecycle.events import LaunchAnswered, LaunchRepeated, PlacementExpired
from relaunch.core.lifecycle.gangs import has_gang, is_gang, observe_gang
from relaunch.core.lifecycle.stop_reason import CLOCK_SKEW
from relaunch.core.machines.groups import first_ids_of
from relaunch.core.machines.machine import MachineState
from relaunch.core.machines.starts import Worth, usd_for_nothing
from relaunch.core.offerings.capacity_memory import placement_scope
from relaunch.core.revisions.revision import parse_revision_arn
from relaunch.core.selection.gpu_share import explain_missing_share
from relaunch.core.selection.requirements import required_share
from relaunch.ports import (
    JobDependencies,
    LaunchDependencies,
    NotGrantedError,
    PermanentError,
    PortError,
    StaleWriteError,
)
from relaunch.usecases.advance_job import advance_job, apply_event
from relaunch.usecases.advance_machine import admit_jobs
from relaunch.usecases.observe_task import task_located


def explain_placement(outcome: LaunchOutcome, job: Job, deps: JobDependencies) -> LaunchOutcome:
    """Return the outcome, with the remaining GPU memory as detail if there was no room for a GPU share.

    Such a failure takes two read calls; if they fail, the outcome is unchanged.
    """
    if not isinstance(outcome, PlacementFailed) or Shortage.GPU not in outcome.shortages:
        return outcome
    share = required_share(job.definition, job.revision)
    placement = job.current_attempt.placement
    if share is None or placement.gpu_partition_size < 1:
        return outcome
    try:
        target = deps.targets.named(job.definition.target)
        devices = target.find_gpus(placement.offering.instance_type, placement.capacity_provider)
    except PortError as error:
        deps.log.decided("gpus-unknown", job_id=job.job_id, reason=str(error))
        return outcome
    return replace(outcome, detail=explain_missing_share(share, devices) or "a GPU has room by now")


# A function that was sending when the placement expired, the job was cancelled or its machine was gone has ended after
# a minute, whatever its client repeats, and ECS lists the task within five more: the documentation of RunTask tells
# callers to retry for up to five minutes.
_SENDING_GRACE = timedelta(minutes=6)
_LOOK_SECONDS = 30
# A container instance may run tasks of others too, as those of a DAEMON service, which ends this wait.
_UNLISTED = timedelta(minutes=10)


def send_placement(job: Job, deps: LaunchDependencies, *, is_first: bool) -> Job | None:
    """Send the pending placement of a job, or look for its task if it is not sent any more; return the job after that.

    `is_first`: this function chose the placement. Another one may have sent it too, and says so before it does.

    Raises:
        TransientError: a temporary error; retry.
        NotYetError: the target does not describe a task yet that it has.
        StaleWriteError: the job was changed since it was loaded.
    """
    attempt = job.current_attempt
    unsendable_at = attempt.placement.requested_at + (OLDEST_GANG_PLACEMENT if has_gang(attempt) else OLDEST_PLACEMENT)
    if attempt.intent is not None:
        unsendable_at = min(unsendable_at, attempt.intent.at)
    if not is_first and (gone_at := _machine_gone_at(job, deps)) is not None:
        unsendable_at = min(unsendable_at, gone_at)
    overdue = deps.clock.now() - unsendable_at
    if overdue >= timedelta(0):
        return _look_for_task(job, deps, overdue)
    if not is_first:
        job = apply_event(job, LaunchRepeated(attempt.number, attempt.placement.number), deps)
    outcome = _launch(job, deps)
    try:
        # Not by advance_job: it would first repeat the very launch request that is being answered here.
        _note_placed(job, outcome, deps)
        return apply_event(job, _answer(job, outcome, deps, is_alone=is_first), deps)
    except StaleWriteError:
        # Who saved the job meanwhile may have launched the placement too.
        answered = _answer(job, outcome, deps, is_alone=False)
        return advance_job(job.job_id, lambda _job: answered, deps)


def _machine_gone_at(job: Job, deps: LaunchDependencies) -> datetime | None:
    """Return when the machine of our own was gone on which the task is to be placed; None if it is not gone.

    Whoever sends the placement again reads the machine before, so that nobody does after that time.
    """
    machine_id = job.current_attempt.placement.machine_id
    machine = deps.machines.load_machine(machine_id) if machine_id else None
    return machine.state_since if machine is not None and machine.state is MachineState.GONE else None


def _note_placed(job: Job, outcome: LaunchOutcome, deps: LaunchDependencies) -> None:
    """Note that the machine has a task of the family, and let the jobs go on that wait for those that start."""
    ranks = job.current_attempt.placement.ranks if isinstance(outcome, TaskPlaced) else ()
    found = [deps.machines.load_machine(each) for each in first_ids_of(each.machine_id for each in ranks)]
    for machine in found:
        if machine is not None:
            deps.machines.settle_start((placement_scope(job.revision.family),), machine, Worth.PLACED)
    if any(found):
        admit_jobs(deps)


def _answer(
    job: Job, outcome: LaunchOutcome, deps: LaunchDependencies, *, is_alone: bool
) -> LaunchAnswered | PlacementExpired:
    """Return the event of an outcome; a placement whose derived revision was deregistered only expires.

    If that happened between two ranks, those that were placed are stopped: they would wait for the others, and train
    beside the ranks of the next placement if that met them.

    A refusal is final if nothing was launched before it: by a client that sent the request once, in the only function
    that launched the placement. Another function saves the job before it does, so that of the two saves one is stale.
    """
    number = job.current_attempt.number
    placement = job.current_attempt.placement
    if isinstance(outcome, LaunchRefused):
        is_only_send = is_alone and not outcome.was_repeated
        arn = placement.revision_arn
        # An error about the revision means that the client token is unknown: nothing was launched with it.
        may_be_gone = not outcome.may_heal and (is_only_send or outcome.is_about_revision)
        if arn and may_be_gone and parse_revision_arn(arn) is not None and not deps.registry.is_active(arn):
            reason = f"the derived revision {arn} was deregistered"
            if outcome.placed:
                return LaunchAnswered(number, placement.number, PlacementFailed((reason,), placed=outcome.placed))
            return PlacementExpired(number, placement.number, reason, keeps_machine=True)
        if not is_only_send:
            # An earlier send may have started a task without a response, whatever this error is: the task is found by
            # its events, or by listing tasks when the placement expires.
            outcome = LaunchDeferred(outcome.reason, is_refused=outcome.may_heal, placed=outcome.placed)
    is_unused = isinstance(outcome, PlacementFailed) and _is_unused(job, deps)
    return LaunchAnswered(number, placement.number, outcome, is_unused)


def _is_unused(job: Job, deps: LaunchDependencies) -> bool:
    """Return whether the machine was requested for the job or its family, and ran none; any other may be full."""
    machine_id = job.current_attempt.placement.machine_id
    known = deps.machines.load_starts().get(placement_scope(job.revision.family))
    if known is not None and machine_id in known.starting:
        return True
    machine = deps.machines.load_machine(machine_id) if machine_id else None
    return machine is not None and usd_for_nothing(machine, job.job_id, deps.clock.now()) > 0


def _launch(job: Job, deps: LaunchDependencies) -> LaunchOutcome:
    try:
        outcome = deps.targets.named(job.definition.target).launch(plan_launch(job))
    except PermanentError as error:
        return LaunchRefused(str(error), may_heal=isinstance(error, NotGrantedError))
    if isinstance(outcome, LaunchDeferred):
        return replace(outcome, waiting=_count_requests(deps))
    return explain_placement(outcome, job, deps)


def _count_requests(deps: LaunchDependencies) -> int | None:
    try:
        return deps.launches.count_requests()
    except PortError as error:
        deps.log.decided("launch requests not counted", reason=str(error))
        return None


def _look_for_task(job: Job, deps: LaunchDependencies, overdue: timedelta) -> Job:
    """Look for the task of a placement that is not sent any more, until it is certain that there is none."""
    attempt = job.current_attempt
    is_certain = overdue > _SENDING_GRACE
    closed = {task_id for each in attempt.closed_placements for task_id in each.task_ids}
    target = deps.targets.named(job.definition.target)
    found = [task for task in target.find_tasks_of(job.attempt_key) if task.task_id not in closed]
    if has_gang(attempt):
        # Of many closed placements of the attempt only the latest are kept.
        since = attempt.placement.requested_at - CLOCK_SKEW
        found = [task for task in found if task.created_at is None or task.created_at >= since]
        is_certain = is_certain and (overdue > _SENDING_GRACE + _UNLISTED or not _has_unlisted(job, found, deps))
        return _give_up_gang(job, found, deps, is_certain=is_certain)
    if found:
        newest = max(found, key=_made_at)
        if is_gang(job):
            placed = TaskPlaced(newest.task_id)
            return apply_event(job, LaunchAnswered(attempt.number, attempt.placement.number, placed), deps)
        return apply_event(job, task_located(newest, job, deps), deps)
    if is_certain:
        return apply_event(job, PlacementExpired(attempt.number, attempt.placement.number), deps)
    deps.launches.request_launch(job.job_id, _LOOK_SECONDS)
    return job


def _has_unlisted(job: Job, found: Sequence[TaskObservation], deps: LaunchDependencies) -> bool:
    """Return whether the machines of a gang have more tasks than ECS lists: what nobody sees end may train on."""
    live = sum(each.phase is not TaskPhase.STOPPED for each in found)
    machines = [deps.machines.load_machine(each.machine_id) for each in job.current_attempt.placement.ranks]
    nodes = [deps.targets.ecs.find_node(each.node) for each in machines if each is not None and each.node]
    return sum(each.task_count for each in nodes if each is not None) > live


def _give_up_gang(job: Job, found: Sequence[TaskObservation], deps: LaunchDependencies, *, is_certain: bool) -> Job:
    """Give up a placement with several tasks once nobody can place another one; what was placed is its own, also ended.

    Each rank is sent once the one before it was placed: those that were are the first ones. A part of them has not
    trained, for it waited for the others; all of them may have.
    """
    attempt = job.current_attempt
    if not is_certain and len(found) < len(attempt.placement.ranks):
        deps.launches.request_launch(job.job_id, _LOOK_SECONDS)
        return job
    number = attempt.number
    placement = attempt.placement
    named = placement.placed_ids
    listed = (each.task_id for each in sorted(found, key=_made_at) if each.task_id not in named)
    first, *others = (*named, *listed) or ("",)
    if not first:
        return apply_event(job, PlacementExpired(number, placement.number), deps)
    if len(others) + 1 == len(placement.ranks):
        return apply_event(job, LaunchAnswered(number, placement.number, TaskPlaced(first, tuple(others))), deps)
    reason = f"{len(others) + 1} of {len(placement.ranks)} tasks were placed"
    failed = PlacementFailed((reason,), placed=(first, *others))
    job = apply_event(job, LaunchAnswered(number, placement.number, failed), deps)
    # What has ended is not asked for once more.
    known = {each.task_id: each for each in found}
    is_several = has_gang(job.current_attempt)
    seen = observe_gang(job, known, deps.clock.now()) if is_several else known.get(first)
    return job if seen is None else apply_event(job, task_located(seen, job, deps), deps)


def _made_at(task: TaskObservation) -> tuple[bool, datetime | None, str]:
    return task.created_at is not None, task.created_at, task.task_id
