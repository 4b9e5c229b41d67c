"""Get a machine of our own for a job: claim one with room, or request one; use it once it is ready."""

import zlib
from collections.abc import Iterator, Mapping, Sequence

from relaunch.core.jobs.job import STACK_SLOT, Job, selected_placement
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.lifecycle.events import (
    MachineAwaited,
    MachineClaimed,
    MachineLimitReached,
    MachineLost,
    NothingKept,
    SlotDenied,
)
from relaunch.core.lifecycle.gangs import is_gang
from relaunch.core.lifecycle.moves import decline_at_limit, may_move
from relaunch.core.lifecycle.restart_policy import describe_bound, next_machine_at
from relaunch.core.machines.charges import usd_beside
from relaunch.core.machines.events import ClaimAsked, MachineWarned
from relaunch.core.machines.groups import NO_SURVIVORS, Survivors, kept_until, member_id, requests_of_members
from relaunch.core.machines.machine import (
    Claim,
    Consequence,
    Machine,
    MachineState,
    Resources,
    describe_machine,
    machine_id_of,
)
from relaunch.core.machines.request import build_request, needs, on_demand_prices
from relaunch.core.machines.requesting import request_machine
from relaunch.core.machines.starts import AT_ONCE, doubted_pools, startable
from relaunch.core.machines.table import decide
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import Offering, OfferingKey
from relaunch.core.revisions.revision import main_container
from relaunch.core.selection.selection import Selection
from relaunch.ports import (
    LaunchDependencies,
    MachineLimitError,
    MachineTakenError,
    SlotsFullError,
    StaleWriteError,
    StartsChangedError,
)
from relaunch.usecases.advance_job import apply_event
from relaunch.usecases.advance_machine import advance_machine
from relaunch.usecases.load_offerings import MAX_LOOKED_AT
from relaunch.usecases.reserve_budget import apply_with_budgets

# Of a burst, each job that claims a machine takes it from those that look at it now, and it mostly still has room.
_LOOKS = 4
# Of those that request at the same time one succeeds each time, and after AT_ONCE all others wait.
_REQUESTS = 2 * AT_ONCE


def claim_machine(
    job: Job,
    selection: Selection,
    deps: LaunchDependencies,
    *,
    is_handover: bool = False,
    survivors: Survivors = NO_SURVIVORS,
) -> Job | Offering:
    """Claim a machine with room of a type that selection kept, or request one; return the job after that.

    A machine that another job takes at the same time is passed over. Where the best of what may be requested now is an
    offering of a capacity provider, it is returned for a job that waits; while none of our own may be, but within
    minutes, the job waits for that. `survivors` are the machines that a job of several nodes keeps: the others are
    requested.

    Raises:
        StaleWriteError: the job was changed since it was loaded.
    """
    try:
        # The machines of a gang are requested together, for it alone.
        joined = None if is_gang(job) else _join(job, selection, deps)
        if joined is not None:
            return joined
        requested = _request(job, selection, deps, is_handover=is_handover, survivors=survivors)
        if requested is not None:
            return requested
    except MachineLimitError as error:
        return _wait_at_limit(job, MachineLimitReached(error.limit), deps)
    except SlotsFullError as full:
        slot = STACK_SLOT if full.cap == "stack" else job.definition.name
        return apply_event(job, SlotDenied(slot, full.limit), deps)
    except MachineTakenError as exists:
        # Its ID is that of the job's next request: the job was saved by another function.
        raise StaleWriteError(str(exists)) from exists
    reason = "no subnet or launch template for what was selected: check MachineSubnets and MachineLaunchTemplates"
    if taken := [str(each.reservation) for each in selection.kept if each.reservation]:
        reason = f"no instance of {', '.join(taken)} is free, and none has room for this job"
        if is_gang(job):
            reason = f"not as many instances of {', '.join(taken)} are free as this job needs at once"
        return apply_event(job, NothingKept(selection, reason, WaitReason.CAPACITY, retry_at=None), deps)
    return apply_event(job, MachineLost(job.machine_id, Consequence.PAUSE, reason), deps)


def _wait_at_limit(job: Job, reached: MachineLimitReached, deps: LaunchDependencies) -> Job:
    return apply_event(job, decline_at_limit(reached) if may_move(job) else reached, deps)


def _request(
    job: Job, selection: Selection, deps: LaunchDependencies, *, is_handover: bool, survivors: Survivors
) -> Job | Offering | None:
    """Request a new machine, or let the job wait; return the job, None if what was selected cannot be requested."""
    for _ in range(_REQUESTS):
        requested = _new_claim(job, selection, deps, is_handover=is_handover, survivors=survivors)
        try:
            if isinstance(requested, Offering):
                return requested
            if isinstance(requested, MachineLimitReached):
                return _wait_at_limit(job, requested, deps)
            if isinstance(requested, MachineClaimed):
                return apply_with_budgets(job, requested, deps)
            return None if requested is None else apply_event(job, requested, deps)
        except StartsChangedError as error:
            deps.log.decided("others request machines", job_id=job.job_id, reason=str(error))
    raise StaleWriteError(f"others requested machines {_REQUESTS} times while one was requested for job {job.job_id}")


def _join(job: Job, selection: Selection, deps: LaunchDependencies) -> Job | None:
    """Claim a machine with room; return the job then, None if there is none, or others were faster each time."""
    for _ in range(_LOOKS):
        is_taken = False
        for claimed in _claims_with_room(job, selection, deps):
            try:
                return apply_with_budgets(job, claimed, deps)
            except MachineTakenError as taken:
                is_taken = True
                deps.log.decided("machine taken", job_id=job.job_id, machine_id=taken.machine_id)
        if not is_taken:
            return None
    return None


def _claims_with_room(job: Job, selection: Selection, deps: LaunchDependencies) -> Iterator[MachineClaimed]:
    """Yield the claims that the job may have on machines with room, best first."""
    now = deps.clock.now()
    kept = _kept_types(selection)
    cap = job.definition.max_price_usd_per_hour
    reservations = {"", *(each.reservation.reservation_id for each in selection.kept if each.reservation)}
    for machine in _machines_with_room(job, deps):
        if machine.request.reservation_id not in reservations:
            continue
        resources = _resources_on(machine, job, kept)
        if resources is None or not machine.accepts(resources):
            continue
        if cap is not None and machine.usd_per_hour > cap:
            # It was requested when its price was not known, and counts with the upper limit of that.
            continue
        if _was_warned(machine, deps):
            continue
        claim = Claim(job.job_id, _attempt_number(job), resources, now)
        decision = decide(machine, ClaimAsked(claim), now, deps.limits.machines)
        if not decision.is_ignored:
            yield MachineClaimed(decision, f"{describe_machine(machine)}, and has room", selection)


def _was_warned(machine: Machine, deps: LaunchDependencies) -> bool:
    """Return whether EC2 has warned of the instance of a machine; if so, the machine handles the warning.

    A warning that came before EC2's answer to the request was saved found no machine.
    """
    warned_at = deps.jobs.load_warning(machine.instance_id) if machine.instance_id else None
    if warned_at is None:
        return False
    advance_machine(machine.machine_id, lambda _machine: MachineWarned(warned_at), deps)
    return True


def _new_claim(
    job: Job, selection: Selection, deps: LaunchDependencies, *, is_handover: bool, survivors: Survivors
) -> MachineClaimed | MachineLost | MachineLimitReached | NothingKept | Offering | None:
    """Return the claim on a new machine, why the job gets none yet, or where else it may run while there is none.

    None if what was selected has no subnet or launch template.
    """
    now = deps.clock.now()
    if next_machine_at(job, now) > now:
        return MachineLost(job.machine_id, Consequence.PAUSE, describe_bound(job))
    known = deps.machines.load_starts()
    kept, limit = startable(selection.kept, job.revision.family, known, now)
    has_own = any(each.is_own_machine for each in kept)
    if limit is not None and not has_own and limit.until is None:
        return MachineLimitReached("starting", limit.reason)
    # What may not be requested now may have been the only one of our own that is better than a capacity provider.
    if kept and not kept[0].is_own_machine and job.state is JobState.WAITING:
        return kept[0]
    if limit is not None and not has_own:
        return NothingKept(selection, limit.reason, WaitReason.REFUSED, limit.until)
    limits = deps.limits.machines
    attempt_number = _attempt_number(job)
    machine_id = machine_id_of(job.job_id, attempt_number, job.machines.requested + 1)
    settings = deps.machine_settings
    doubted = doubted_pools(known, now)
    size = survivors.missing or job.definition.nodes
    image = _image(job)
    request = build_request(
        selection,
        machine_id,
        job.job_id,
        job.definition.name,
        settings,
        limits,
        image=image,
        kept=kept,
        doubted=doubted,
        gang_size=size if is_gang(job) else 0,
    )
    if request is None:
        return None
    best = _kept_types(selection)[request.overrides[0].offering]
    # Each node of a gang has its machine for itself.
    resources = request.overrides[0].capacity if is_gang(job) else needs(job.definition, job.revision, best)
    claim = Claim(job.job_id, attempt_number, resources, now)
    totals = limits.totals(is_handover=is_handover)
    family = job.revision.family
    disk_price = deps.offerings.snapshot(now).gp3_usd_per_gib_month
    beside = usd_beside(settings.disk_gib, settings.disk_iops, settings.disk_throughput, disk_price)
    first, *others = (
        request_machine(
            member_id(machine_id, each.place),
            each,
            claim,
            now,
            totals,
            family=family,
            known=known,
            beside_usd_per_hour=beside,
            on_demand=on_demand_prices(request, selection.kept),
        )
        for each in requests_of_members(request, size)
    )
    detail = "; ".join(part for part in (describe_machine(first.machine), survivors.reason) if part)
    ranks = survivors.with_new(each.machine.machine_id for each in (first, *others))
    return MachineClaimed(first, detail, selection, is_new=True, others=tuple(others), ranks=ranks)


def _kept_types(selection: Selection) -> Mapping[OfferingKey, InstanceType]:
    return {each.key: each.instance_type for each in selection.kept if each.is_own_machine}


def _attempt_number(job: Job) -> int:
    number, _ = selected_placement(job, is_placed=False)
    return number


def _machines_with_room(job: Job, deps: LaunchDependencies) -> Iterator[Machine]:
    for machine_id in in_turn(deps.machines.load_with_room(MAX_LOOKED_AT), job.job_id):
        machine = deps.machines.load_machine(machine_id)
        if machine is not None:
            yield machine


def in_turn(machine_ids: Sequence[str], job_id: str) -> list[str]:
    """Return the oldest machine, which is ready first, then the others in an order of the job's own.

    Jobs that come at the same time take the oldest one from each other, and would do so with each that follows.
    """
    others = sorted(machine_ids[1:], key=lambda machine_id: zlib.crc32(f"{job_id}/{machine_id}".encode()))
    return [*machine_ids[:1], *others]


def _resources_on(machine: Machine, job: Job, kept: Mapping[OfferingKey, InstanceType]) -> Resources | None:
    """Return what the job takes of a machine, the most that it may be; None if selection kept not all it may be."""
    possible = [machine.offering] if machine.offering else [each.offering for each in machine.request.overrides]
    taken = [needs(job.definition, job.revision, kept[key]) for key in possible if key in kept]
    return Resources.most(taken) if taken and len(taken) == len(possible) else None


def _image(job: Job) -> str:
    """Return the image of the main container."""
    name = main_container(job.definition, job.revision) or ""
    given = next((container.image for container in job.revision.containers if container.name == name), "")
    return job.images.get(name, given)


def find_machines(job: Job, deps: LaunchDependencies) -> Job | tuple[Machine, ...]:
    """Return the machines that the job claims if all are ready, else the job, which waits or has given them up.

    Raises:
        StaleWriteError: the job was changed since it was loaded.
    """
    machines: list[Machine] = []
    lost: str | None = None
    for machine_id in job.next_machines:
        machine = deps.machines.load_machine(machine_id)
        if machine is not None:
            machines.append(machine)
        if lost is None and (machine is None or machine.claim_of(job.job_id) is None or machine.is_left):
            lost = machine_id
    if lost is not None:
        return apply_event(job, _lost(job, lost, tuple(machines)), deps)
    late = [each for each in machines if each.state is not MachineState.READY]
    if not late:
        return tuple(machines)
    until = kept_until(machines, deps.limits.machines)
    detail = describe_machine(late[0])
    if until is not None and deps.clock.now() >= until:
        reason = f"the other machines of the job are not kept any longer for one that is not ready: {detail}"
        # One that EC2 launched is one of the few that a job gets in a day and cannot use.
        refusal = None if any(each.instance_id for each in late) else Consequence.NEXT
        return apply_event(job, MachineLost(job.machine_id, refusal, reason, tuple(machines)), deps)
    if len(machines) > 1:
        detail = f"{len(machines) - len(late)} of {len(machines)} machines are ready; {detail}"
    is_known = job.waiting is not None and (job.waiting.reason, job.waiting.detail) == (WaitReason.MACHINE, detail)
    is_due = job.wake_at is None or job.wake_at <= deps.clock.now() or (until is not None and job.wake_at > until)
    return job if is_known and not is_due else apply_event(job, MachineAwaited(detail, tuple(machines), until), deps)


def _lost(job: Job, machine_id: str, machines: tuple[Machine, ...]) -> MachineLost:
    """Return that a machine which the job claims will not be ready, and with it none of its gang."""
    machine = next((each for each in machines if each.machine_id == machine_id), None)
    if machine is None:
        return MachineLost(job.machine_id, None, f"machine {machine_id} is gone", machines)
    refusal = Consequence.NEXT if machine.is_left else machine.refusal
    is_short = machine.refusal is not None and machine.request.size > 1
    short_of = tuple(each.offering for each in machine.request.overrides) if is_short else ()
    return MachineLost(job.machine_id, refusal, describe_machine(machine), machines, short_of)
