"""Launch a job: select an offering, claim a machine of our own where it is one, save the placement, send it."""

from dataclasses import replace
from datetime import timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.effects import RequestLaunch
from relaunch.core.jobs.job import STACK_SLOT, Job, PlacementState
from relaunch.core.jobs.progress import SavedCheckpoint, machine_asked_at
from relaunch.core.jobs.state import REFUSED_WAITS, JobState, WaitReason
from relaunch.core.kubernetes.rules import find_problems, select_on_kubernetes
from relaunch.core.lifecycle.events import (
    CheckpointsRead,
    CheckpointsUnreadable,
    LaunchImpossible,
    LaunchNotGranted,
    MachineLost,
    MoveDeclined,
    NextMachineReady,
    NothingKept,
    OfferingChosen,
    SlotDenied,
    TimePassed,
)
from relaunch.core.lifecycle.machine_waits import hands_over
from relaunch.core.lifecycle.market_choice import is_in_market, market_wait
from relaunch.core.lifecycle.moves import is_last_moment, may_move
from relaunch.core.lifecycle.restart_policy import is_to_be_judged
from relaunch.core.lifecycle.spot_pools import retried_sooner
from relaunch.core.lifecycle.stop_reason import CLOCK_SKEW
from relaunch.core.machines.machine import Consequence, Machine
from relaunch.core.offerings.capacity_memory import refused_placements, with_own
from relaunch.core.offerings.offering import Offering
from relaunch.core.revisions.revision import revision_problem
from relaunch.core.selection.selection import Selection, explain_rejection, prefer_undoubted, select
from relaunch.ports import (
    LaunchDependencies,
    NotGrantedError,
    PermanentError,
    SlotsFullError,
    StaleWriteError,
)
from relaunch.usecases.advance_job import apply_event, finish_pending
from relaunch.usecases.claim_machine import claim_machine, find_machine
from relaunch.usecases.find_resume_uri import MissingCheckpointError, find_resume_uri
from relaunch.usecases.follow_market import (
    UnreadableProgressError,
    find_move,
    follow_market,
    gives_spot_back,
    newest_of,
)
from relaunch.usecases.load_offerings import AvailableOfferings, load_offerings
from relaunch.usecases.prepare_revision import prepare_revision
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
    """
    for has_lost in (False, *[True] * _RETRIES):
        try:
            return _launch_once(job_id, deps, has_lost=has_lost)
        except StaleWriteError:
            continue
    raise StaleWriteError(f"job {job_id} was saved by others {_RETRIES + 1} times while it was being launched")


def _launch_once(job_id: str, deps: LaunchDependencies, *, has_lost: bool) -> Job | None:
    job = deps.jobs.load_job(job_id)
    if job is None or _is_at_work(job, deps):
        reason = "no such job" if job is None else "another function has just decided on it, and does what follows"
        deps.log.decided("ignored", job_id=job_id, reason=reason)
        return job
    if _has_effects(job):
        job = finish_pending(job, deps)
    if job.state in (JobState.RUNNING, JobState.STOPPING):
        return _hand_over(job, deps)
    was_waiting = job.state is JobState.WAITING
    if was_waiting and _may_choose(job, deps):
        job, has_lost = _choose_if_worth_it(job, deps), False
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


def _hand_over(job: Job, deps: LaunchDependencies) -> Job:
    """Request the next machine of a task that EC2 takes the machine away from, another one if EC2 refused that.

    A task that trains on is stopped once the next machine is ready, and at its last moment.
    """
    if is_last_moment(job, deps.clock.now()):
        return apply_event(job, TimePassed(), deps)
    if hands_over(job):
        return _choose(job, deps)
    if may_move(job):
        return _consider_move(job, deps)
    if not job.machine_id:
        return job
    found = find_machine(job, deps)
    if isinstance(found, Job):
        return found
    return apply_event(job, NextMachineReady(found.machine_id), deps) if job.state is JobState.RUNNING else job


def _consider_move(job: Job, deps: LaunchDependencies) -> Job:
    """Claim a machine on spot for a task on on-demand, if its market policy wants that and there may be one."""
    if not deps.machine_settings.subnets:
        reason = "a task is moved to machines of the stack's own only, and the stack has none (MachineSubnets)"
        return apply_event(job, MoveDeclined(reason, None), deps)
    found = find_move(job, *_select_offerings(job, deps), deps)
    # What it is to be moved to is a machine of our own.
    moved = claim_machine(job, found, deps) if isinstance(found, Selection) else apply_event(job, found, deps)
    return moved if isinstance(moved, Job) else job


def _may_choose(job: Job, deps: LaunchDependencies) -> bool:
    waiting = job.waiting
    if waiting is None or waiting.reason is WaitReason.LAUNCH:
        return True
    if waiting.reason is WaitReason.IMAGE:
        return False
    is_early = waiting.until is not None and deps.clock.now() < waiting.until - _CLOCK_SKEW
    # A message that comes twice must not buy another machine.
    return not (is_early and (waiting.reason in _UNTIL or waiting.reason in REFUSED_WAITS))


def _choose_if_worth_it(job: Job, deps: LaunchDependencies) -> Job:
    """Choose where to launch a job, unless its last attempts gained nothing: a machine costs."""
    if is_to_be_judged(job):
        try:
            newest = newest_of(job, deps.checkpoints)
        except PermanentError as error:
            return apply_event(job, CheckpointsUnreadable(str(error)), deps)
        job = apply_event(job, CheckpointsRead(newest), deps)
    return job if job.state.is_final else _choose(job, deps)


def _choose(job: Job, deps: LaunchDependencies) -> Job:
    if problem := _find_problem(job, deps):
        return apply_event(job, LaunchImpossible(problem), deps)
    if job.machine_id:
        found = find_machine(job, deps)
        return found if isinstance(found, Job) else _use(found, job, deps)
    try:
        has_types = job.definition.target.capabilities.offers_instance_types
        selection = _select(job, deps) if has_types else _select_on_kubernetes(job, deps)
    except UnreadableProgressError as error:
        return apply_event(job, CheckpointsUnreadable(str(error)), deps)
    return _take(job, selection, deps)


def _take(job: Job, selection: Selection, deps: LaunchDependencies) -> Job:
    """Take the best of what selection kept."""
    if not selection.kept:
        return apply_event(job, _nothing_kept(selection), deps)
    best = selection.kept[0]
    chosen = _claim(job, selection, deps) if best.is_own_machine else best
    if isinstance(chosen, Job):
        return chosen
    if job.state is not JobState.WAITING:
        return job
    return _place(job, OfferingChosen(chosen, selection, None), deps)


def _select(job: Job, deps: LaunchDependencies) -> Selection:
    selection, available = _select_offerings(job, deps)
    return follow_market(job, selection, available, deps)


def _select_offerings(job: Job, deps: LaunchDependencies) -> tuple[Selection, AvailableOfferings]:
    available = load_offerings(deps, job.job_id)
    # What a running task is to be moved to is tried for nothing.
    is_retried_sooner = is_in_market(job) or may_move(job)
    memory = retried_sooner(available.memory) if is_retried_sooner else available.memory
    memory = with_own(memory, (*job.own_failures, *refused_placements(job.revision.arn, available.memory)))
    selection = select(job.definition, job.revision, available.offerings, memory, available.at, available.limits)
    return prefer_undoubted(selection, available.doubts), available


def _select_on_kubernetes(job: Job, deps: LaunchDependencies) -> Selection:
    now = deps.clock.now()
    memory = with_own(deps.capacity.load_capacity_memory(now), job.own_failures)
    return select_on_kubernetes(job.definition, memory, now)


def _find_problem(job: Job, deps: LaunchDependencies) -> str:
    """Return why the job can never be launched by this stack, empty if it may be."""
    name = job.definition.target
    problem = deps.targets.problem(name) or "; ".join(map(str, find_problems(job.definition)))
    if problem or not name.capabilities.takes_task_definition:
        return problem
    return revision_problem(job.revision, deps.limits.task_definitions) or ""


def _claim(job: Job, selection: Selection, deps: LaunchDependencies) -> Job | Offering:
    if job.state is JobState.WAITING:
        # A machine costs: not before the checkpoints can be read. A task that still saves has nothing to resume from.
        try:
            _resume_uri(job, deps)
        except PermanentError as error:
            return apply_event(job, _resume_obstacle(error), deps)
    return claim_machine(job, selection, deps, is_handover=job.state is not JobState.WAITING)


def _use(machine: Machine, job: Job, deps: LaunchDependencies) -> Job:
    """Place the next task on a machine of our own."""
    known = {**deps.offerings.catalogue(), **deps.offerings.snapshot(deps.clock.now()).instance_types}
    key = machine.offering
    row = known.get(key.instance_type) if key else None
    if key is None or row is None:
        # It was in the catalogue of an earlier version.
        reason = f"nothing is known of the instance type of {machine.instance_id}"
        return apply_event(job, MachineLost(machine.machine_id, None, reason), deps)
    if key.purchase is PurchaseOption.SPOT and is_in_market(job) and _was_claimed_before_stop(machine, job):
        lost = gives_spot_back(job, *_select_offerings(job, deps), deps)
        if lost is not None:
            return apply_event(job, MachineLost(machine.machine_id, Consequence.NEXT, lost), deps)
    offering = Offering(row, key.purchase, key.zone, machine.usd_per_hour)
    return _place(job, OfferingChosen(offering, None, None, machine=machine), deps)


def _was_claimed_before_stop(machine: Machine, job: Job) -> bool:
    """Return whether a job claimed the machine before its last task stopped, as far as the clocks tell.

    What is claimed once the stop is known is known to fit.
    """
    claim, stop = machine.claim_of(job.job_id), job.attempt.stop if job.attempt is not None else None
    if claim is None or stop is None or job.state_since is None:
        return False
    return claim.since < min(job.state_since, stop.at + CLOCK_SKEW)


def _place(job: Job, chosen: OfferingChosen, deps: LaunchDependencies) -> Job:
    """Prepare what the task needs, and save its placement."""
    try:
        prepared = prepare_revision(job, chosen.offering, deps)
    except NotGrantedError as error:
        return apply_event(job, LaunchNotGranted(str(error)), deps)
    except PermanentError as error:
        return apply_event(job, LaunchImpossible(str(error)), deps)
    try:
        resume_uri, newest = _resume_uri(job, deps)
    except PermanentError as error:
        return apply_event(job, _resume_obstacle(error), deps)
    try:
        return apply_event(job, replace(chosen, resume_uri=resume_uri, prepared=prepared, newest=newest), deps)
    except SlotsFullError as full:
        slot = STACK_SLOT if full.cap == "stack" else job.definition.name
        return apply_event(job, SlotDenied(slot, full.limit), deps)


def _nothing_kept(selection: Selection) -> NothingKept:
    if (waits := market_wait(selection)) is not None:
        return NothingKept(selection, waits.reason, WaitReason.MARKET, waits.retry_at)
    return NothingKept(selection, explain_rejection(selection), _wait_of(selection), selection.retry_at)


def _wait_of(selection: Selection) -> WaitReason | None:
    """Return what a job waits for that nothing satisfies now; None if nothing ever will."""
    if selection.is_permanent:
        return None
    if selection.is_unready:
        return WaitReason.REFUSED
    # Of prices nobody knows when they change.
    return WaitReason.CAPACITY if selection.retry_at else WaitReason.PRICE


def _resume_uri(job: Job, deps: LaunchDependencies) -> tuple[str | None, SavedCheckpoint | None]:
    """Return the newest complete checkpoint, its own or that of a job that it retries, and which one is its own.

    Before the first launch it has none of its own, and it is checked that they could be read.
    """
    uri = job.definition.checkpoint_uri
    if uri is not None and job.attempt is None:
        deps.checkpoints.probe(uri, job.job_id)
    own = newest_of(job, deps.checkpoints)
    return (own.uri if own else find_resume_uri(job.resume_from, deps.checkpoints)), own


def _resume_obstacle(error: PermanentError) -> CheckpointsUnreadable | LaunchImpossible:
    """Return what follows from an error of the checkpoints: what cannot be read is waited for."""
    is_missing = isinstance(error, MissingCheckpointError)
    return LaunchImpossible(str(error)) if is_missing else CheckpointsUnreadable(str(error))
