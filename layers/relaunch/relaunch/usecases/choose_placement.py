"""Choose where a job is launched: select an offering, claim a machine of our own if it is one, save the placement."""

from collections.abc import Callable
from dataclasses import replace

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.job import STACK_SLOT, Job
from relaunch.core.jobs.progress import SavedCheckpoint, share_left
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.kubernetes.grant_problems import find_grant_problems
from relaunch.core.kubernetes.rules import find_problems, select_on_kubernetes
from relaunch.core.launches.launch_plan import pod_image
from relaunch.core.lifecycle.events import (
    CheckpointsRead,
    CheckpointsUnreadable,
    LaunchImpossible,
    LaunchNotGranted,
    MachineLost,
    NothingKept,
    OfferingChosen,
    SlotDenied,
)
from relaunch.core.lifecycle.long_waits import goes_without_reserved
from relaunch.core.lifecycle.market_choice import is_in_market, market_wait
from relaunch.core.lifecycle.moves import may_move
from relaunch.core.lifecycle.restart_policy import is_to_be_judged
from relaunch.core.lifecycle.spot_pools import retried_sooner
from relaunch.core.lifecycle.stop_reason import CLOCK_SKEW
from relaunch.core.machines.limits import nodes_problem
from relaunch.core.machines.machine import Consequence, Machine
from relaunch.core.offerings.capacity_memory import refused_placements, with_job_failures
from relaunch.core.offerings.offering import Offering
from relaunch.core.revisions.revision import revision_problem
from relaunch.core.selection.selection import Selection, explain_rejection, prefer_low_risk, select
from relaunch.ports import (
    LaunchDependencies,
    NotGrantedError,
    PermanentError,
    ReservationsUnreadableError,
    SlotsFullError,
    StaleWriteError,
)
from relaunch.ports.checkpoints import ignore_unusable
from relaunch.usecases.advance_job import apply_event
from relaunch.usecases.claim_machine import claim_machine, find_machines
from relaunch.usecases.find_checkpoints import MissingCheckpointError, find_resume_uri, newest_of
from relaunch.usecases.follow_market import UnreadableProgressError, follow_market, gives_spot_back
from relaunch.usecases.load_offerings import AvailableOfferings, load_offerings, with_rates
from relaunch.usecases.prepare_revision import prepare_revision
from relaunch.usecases.reserve_budget import apply_with_budgets


def choose_unless_no_progress(job: Job, deps: LaunchDependencies) -> Job:
    """Choose where to launch a job, unless its last attempts gained nothing: a machine costs."""
    if is_to_be_judged(job):
        try:
            newest = newest_of(job, deps.checkpoints)
        except PermanentError as error:
            return apply_event(job, CheckpointsUnreadable(str(error)), deps)
        job = apply_event(job, CheckpointsRead(newest), deps)
    return job if job.state.is_final else choose_placement(job, deps)


def choose_placement(job: Job, deps: LaunchDependencies) -> Job:
    """Choose where a job is launched now, and save that; return the job after it.

    Raises:
        TransientError: a temporary error; retry.
        StaleWriteError: the job was changed since it was loaded.
    """
    if problem := _find_problem(job, deps):
        return apply_event(job, LaunchImpossible(problem), deps)
    if job.machine_id:
        found = find_machines(job, deps)
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
    selection, available = select_offerings(job, deps)
    return follow_market(job, selection, available, deps)


def select_offerings(
    job: Job, deps: LaunchDependencies, machines: int | None = None
) -> tuple[Selection, AvailableOfferings]:
    """Return what selection keeps and rejects for a job, and what it was selected from.

    A job of several nodes needs so many `machines` at once, by default all.

    While reservations cannot be read, a job that has waited for them is launched elsewhere. Where nothing else is kept
    it waits on: what is reserved may be all that it can ever have.
    """
    options = job.definition.purchase.options
    try:
        return _select_from(load_offerings(deps, job.job_id, options), job, deps, machines)
    except ReservationsUnreadableError as error:
        if not goes_without_reserved(job, deps.clock.now()):
            raise
        others = load_offerings(deps, job.job_id, options - {PurchaseOption.RESERVED})
        found = _select_from(others, job, deps, machines)
        if not found[0].kept:
            raise
        deps.log.decided("reservations-unreadable", job_id=job.job_id, reason=str(error))
        return found


def _select_from(
    available: AvailableOfferings, job: Job, deps: LaunchDependencies, machines: int | None
) -> tuple[Selection, AvailableOfferings]:
    # On the only model that it may have a job without a limit is launched at any speed.
    if is_in_market(job) or len(job.definition.accelerator.models) != 1:
        available = with_rates(available, job.definition, deps)
    # What a running task is to be moved to is tried for nothing.
    is_retried_sooner = is_in_market(job) or may_move(job)
    memory = retried_sooner(available.memory) if is_retried_sooner else available.memory
    memory = with_job_failures(
        memory, (*job.faults.own_failures, *refused_placements(job.revision.arn, available.memory))
    )
    selection = select(
        job.definition,
        job.revision,
        available.offerings,
        memory,
        available.at,
        available.limits,
        left=share_left(job),
        ran=job.run_time(available.at),
        machines=machines,
    )
    return prefer_low_risk(selection, available.shortage_risks), available


def _select_on_kubernetes(job: Job, deps: LaunchDependencies) -> Selection:
    now = deps.clock.now()
    memory = with_job_failures(deps.capacity.load_capacity_memory(now), job.faults.own_failures)
    return select_on_kubernetes(job.definition, memory, now)


def _find_problem(job: Job, deps: LaunchDependencies) -> str:
    """Return why the job can never be launched by this stack, empty if it may be."""
    name = job.definition.target
    problem = deps.targets.problem(name) or "; ".join(map(str, find_problems(job.definition)))
    if problem:
        return problem
    if name.capabilities.takes_task_definition:
        problem = nodes_problem(job.definition.nodes, deps.limits.machines)
        return problem or revision_problem(job.revision, deps.limits.task_definitions) or ""
    return "; ".join(map(str, find_grant_problems(job.definition, deps.limits.pods, pod_image(job))))


def _claim(job: Job, selection: Selection, deps: LaunchDependencies) -> Job | Offering:
    if job.state is JobState.WAITING:
        # A machine costs: not before the checkpoints can be read. A task that still saves has nothing to resume from.
        try:
            _resume_uri(job, deps)
        except PermanentError as error:
            return apply_event(job, _resume_obstacle(error), deps)
    return claim_machine(job, selection, deps, is_handover=job.state is not JobState.WAITING)


def _use(machines: tuple[Machine, ...], job: Job, deps: LaunchDependencies) -> Job:
    """Place the next task on a machine of our own, or the tasks of a gang on theirs."""
    machine, *followers = machines
    known = {**deps.offerings.catalogue(), **deps.offerings.snapshot(deps.clock.now()).instance_types}
    key = machine.offering
    row = known.get(key.instance_type) if key else None
    if key is None or row is None:
        # It was in the catalogue of an earlier version.
        reason = f"nothing is known of the instance type of {machine.instance_id}"
        return apply_event(job, MachineLost(machine.machine_id, None, reason, machines), deps)
    offering = Offering(row, key.purchase, key.zone, machine.usd_per_hour, is_own_machine=True)
    if key.purchase is PurchaseOption.SPOT and is_in_market(job) and _was_claimed_before_stop(machine, job):
        lost = gives_spot_back(job, offering, *select_offerings(job, deps), deps)
        if lost is not None:
            return apply_event(job, MachineLost(machine.machine_id, Consequence.NEXT, lost, machines), deps)
    address = deps.hosts.find_address(machine.instance_id or "") if followers else ""
    chosen = OfferingChosen(offering, None, None, machine=machine, followers=tuple(followers), master_address=address)
    return _place(job, chosen, deps)


def _was_claimed_before_stop(machine: Machine, job: Job) -> bool:
    """Return whether a job claimed the machine before its last task stopped, as far as the clocks tell.

    What is claimed once the stop is known is known to fit.
    """
    claim = machine.claim_of(job.job_id)
    stop = job.attempt.stop if job.attempt is not None else None
    if claim is None or stop is None or job.state_since is None:
        return False
    return claim.since < min(job.state_since, stop.at + CLOCK_SKEW)


def _place(job: Job, chosen: OfferingChosen, deps: LaunchDependencies) -> Job:
    """Prepare what the task needs, and save its placement."""
    machines = (chosen.machine, *chosen.followers) if chosen.machine is not None else ()
    try:
        instance_id = chosen.machine.instance_id if chosen.machine is not None else None
        prepared = prepare_revision(job, chosen.offering, deps, instance_id or "")
    except NotGrantedError as error:
        return apply_event(job, LaunchNotGranted(str(error), machines), deps)
    except PermanentError as error:
        return apply_event(job, LaunchImpossible(str(error), machines), deps)
    unusable: list[str] = []
    try:
        resume_uri, newest = _resume_uri(job, deps, unusable.append)
    except PermanentError as error:
        return apply_event(job, _resume_obstacle(error, machines), deps)
    chosen = replace(chosen, resume_uri=resume_uri, prepared=prepared, newest=newest, unusable=tuple(unusable))
    try:
        # The claim of a machine of our own has reserved what it costs.
        has_price = chosen.machine is None and job.definition.target.capabilities.offers_instance_types
        return apply_with_budgets(job, chosen, deps) if has_price else apply_event(job, chosen, deps)
    except SlotsFullError as full:
        if full.cap == "group":
            # Others have changed it since it was read: look again.
            raise StaleWriteError(f"the concurrency group {job.group.name} was changed by others") from full
        slot = STACK_SLOT if full.cap == "stack" else job.definition.name
        return apply_event(job, SlotDenied(slot, full.limit, machines=machines), deps)


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


def _resume_uri(
    job: Job, deps: LaunchDependencies, on_unusable: Callable[[str], None] = ignore_unusable
) -> tuple[str | None, SavedCheckpoint | None]:
    """Return the newest complete checkpoint, its own or that of a job that it retries, and which one is its own.

    Before the first launch it has none of its own, and it is checked that they could be read.
    """
    uri = job.definition.checkpoint_uri
    if uri is not None and job.attempt is None:
        deps.checkpoints.probe(uri, job.job_id)
    own = newest_of(job, deps.checkpoints, on_unusable)
    return (own.uri if own else find_resume_uri(job.resume_from, deps.checkpoints, on_unusable)), own


def _resume_obstacle(
    error: PermanentError, machines: tuple[Machine, ...] = ()
) -> CheckpointsUnreadable | LaunchImpossible:
    """Return what follows from an error of the checkpoints: what cannot be read is waited for."""
    is_missing = isinstance(error, MissingCheckpointError)
    return LaunchImpossible(str(error), machines) if is_missing else CheckpointsUnreadable(str(error), machines)
