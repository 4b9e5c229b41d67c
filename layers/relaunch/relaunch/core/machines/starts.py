"""The bound of machines that one cause may cost before the first of them is known to be of no use.

What several machines have in common may keep them all from running a task: their pool, their image with its launch
template, or the tasks that they are for, of which the cluster places none. A machine is known to be of no use only
minutes after its request, and ten jobs would have requested ten by then. So the machines that were requested and have
not shown yet what they are worth are counted by cause, together with those that were of no use: of the last 24 hours,
and launched after the last one that was of use. Both together are AT_ONCE at most. Once the cause is known to be bad,
one machine at a time is requested. Those of no use are MOST_USELESS in 24 hours at most, of which the last four are six
hours apart. The capacity memory says how long the pause between two of the others is.

A machine for tasks of a family shows what it is worth once its task runs: that it is placed says nothing of what its
start lacks. While tasks of the family run that is not waited for, because a pull may take many minutes.

The counts change in the transaction that saves a new machine, if they are as they were read: of two jobs that take
what is left one is written.

Pools are counted from the first machine there that was of no use: all machines of an image are, and so no pool has more
before that. CreateFleet chooses among pools, so one that is counted is asked for alone.

What a machine that did not become ready teaches all jobs is to avoid its offering, and after several its image.
"Troubleshoot Amazon EC2 instance launch issues" (EC2 User Guide) has the reasons with which EC2 ends an instance that
it has launched; those that begin with `Client.` are of the account: a key that may not be used, a snapshot that is
gone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from relaunch.core.machines.machine import ForgetUnready, Machine, MachineEffect, MachineTimelineEntry, RememberFailures
from relaunch.core.machines.refusals import POOL_AVOIDED
from relaunch.core.machines.settings import GROUP_TAG, JOB_TAG
from relaunch.core.offerings.capacity_memory import image_scope, is_counted, placement_scope
from relaunch.core.offerings.instance_types import AmiKind, ami_kind
from relaunch.core.offerings.offering import CapacityFailure, Offering, OfferingKey
from relaunch.core.records import dataclass

AT_ONCE = 6
"""Half of MOST_USELESS: the others are left for the probes of a day (core.offerings.capacity_memory)."""
MOST_USELESS = 12
# One is left whenever the cause ends: revisions of a family and pools of an image have pauses of their own
# (core.offerings.capacity_memory), and together had used up those of a day in three hours.
_SPACED = 4
DAY = timedelta(hours=24)
# A machine shows within half an hour whether it becomes ready, and its first task follows within minutes. Later mostly
# nobody is going to tell: a function died before it could. The others are not to wait for that.
_KNOWN_AFTER = timedelta(hours=1)
# A task of the family ran lately: the next ones start at once, and are not waited for.
_PROVEN_FOR = timedelta(days=30)
# Of an image, and of the tasks of a family, one or two may fail by chance; a pool is avoided after the first.
_BY_CHANCE = 2


class Worth(StrEnum):
    """What a machine that was requested has turned out to be."""

    PLACED = "placed"  # it has a task of the family that it was requested for, which does not run yet
    USEFUL = "useful"  # it is ready, or runs a task of the family
    USELESS = "useless"  # it did not become ready, or no task of the family was launched or started on it
    UNKNOWN = "unknown"  # there was no instance, or nobody needed it in the end


@dataclass(frozen=True, slots=True)
class Starts:
    """The machines of one cause by ID: those that start, since their request, and those of no use, by their launch.

    `useful_at` is the launch of the last one that was of use. `version` is that of the item, on which every write is
    conditional; 0 for a new one.
    """

    cause: OfferingKey
    starting: Mapping[str, datetime] = field(default_factory=dict)
    useless: Mapping[str, datetime] = field(default_factory=dict)
    useful_at: datetime | None = None
    version: int = 0


@dataclass(frozen=True, slots=True)
class StartLimit:
    """Why no machine of a cause may be requested now; `until`: not before, None if one of those that start ends it."""

    reason: str
    until: datetime | None = None


StartsByCause = Mapping[OfferingKey, Starts]


def image_of(machine: Machine) -> OfferingKey:
    """Return the cause that the machines with one image share."""
    return image_scope(AmiKind.NEURON if machine.capacity.neuron_devices else AmiKind.GPU)


def causes_of(machine: Machine) -> tuple[OfferingKey, ...]:
    """Return all causes that a machine may be counted for: its image, its family, and its pool if that is known."""
    pools = [machine.offering] if machine.offering else [each.offering for each in machine.request.overrides]
    return image_of(machine), placement_scope(machine.family), *(pools if len(pools) == 1 else ())


def current(starts: Starts, now: datetime) -> Starts:
    """Return what is still known: a machine of which nothing was heard for an hour may yet turn out to be of no use."""
    return replace(
        starts,
        starting={each: at for each, at in starts.starting.items() if now - at < DAY},
        useless={each: at for each, at in starts.useless.items() if now - at < DAY},
    )


def find_limit(starts: Starts, now: datetime) -> StartLimit | None:
    """Return why no machine of the cause may be requested now, None if one may."""
    known = current(starts, now)
    late = [at for at in known.starting.values() if now - at >= _KNOWN_AFTER]
    starting = len(known.starting) - len(late)
    useless = len(known.useless)
    whose = _describe(known.cause)
    spent = sorted((*known.useless.values(), *late))
    until = now
    if useless and len(spent) >= MOST_USELESS:
        until = spent[-MOST_USELESS] + DAY
    elif useless >= MOST_USELESS - _SPACED:
        until = max(known.useless.values()) + DAY / _SPACED
    if until > now:
        reason = f"{useless} machines {whose} were of no use within 24 hours; another one is requested after "
        return StartLimit(f"{reason}{until:%Y-%m-%d %H:%M} UTC", until)
    if useless > (_BY_CHANCE if is_counted(known.cause) else 0):
        reason = f"the last {useless} machines {whose} were of no use: one at a time is tried, and one starts now"
        return StartLimit(reason) if starting else None
    reason = f"{starting} machines {whose} start now, no more at once until one of them is of use"
    return StartLimit(reason) if starting + useless >= AT_ONCE else None


def startable(
    kept: Sequence[Offering], family: str, known: StartsByCause, now: datetime
) -> tuple[list[Offering], StartLimit | None]:
    """Return the machines of our own that may be requested now, and why the others may not, None if all may.

    Of several reasons the one that ends first counts.
    """
    allowed = []
    limits = []
    for offering in kept:
        image = image_scope(ami_kind(offering.instance_type) or AmiKind.GPU)
        causes = (image, placement_scope(family), offering.key) if offering.is_own_machine else ()
        found = [limit for each in causes if each in known and (limit := find_limit(known[each], now))]
        # A cause that is spent holds for longer than one of which a machine starts.
        worst = max(found, key=_ends_at, default=None)
        if worst is None:
            allowed.append(offering)
        else:
            limits.append(worst)
    return allowed, min(limits, key=_ends_at, default=None)


def doubted_pools(known: StartsByCause, now: datetime) -> frozenset[OfferingKey]:
    """Return the pools with a machine that was of no use since the last one that was."""
    return frozenset(key for key, each in known.items() if not is_counted(key) and current(each, now).useless)


def started(machine: Machine, known: StartsByCause, now: datetime) -> tuple[Starts, ...]:
    """Return what to save with a new machine."""
    image, family, *pools = causes_of(machine)
    doubted = doubted_pools(known, now).intersection(pools)
    counted = (current(known.get(each, Starts(each)), now) for each in (image, family, *doubted))
    return tuple(replace(each, starting={**each.starting, machine.machine_id: now}) for each in counted)


def settled(starts: Starts, machine_id: str, launched_at: datetime, worth: Worth) -> Starts:
    """Return what is known of a cause once a machine has shown what it is worth; the same again changes nothing."""
    if worth is Worth.PLACED and (starts.useless or starts.useful_at is None):
        # What refuses the start of its task would refuse that of all others, too.
        return starts
    starting = {each: at for each, at in starts.starting.items() if each != machine_id}
    useless = dict(starts.useless)
    useful_at = starts.useful_at
    if worth is Worth.USEFUL:
        useful_at = max(useful_at or launched_at, launched_at)
        useless = {each: at for each, at in useless.items() if at > useful_at}
    if worth is Worth.USELESS and (useful_at is None or launched_at > useful_at):
        useless[machine_id] = launched_at
    return replace(starts, starting=starting, useless=useless, useful_at=useful_at)


def forgotten_at(starts: Starts) -> datetime | None:
    """Return when nothing counts any more, None if nothing does."""
    proven_until = (starts.useful_at + _PROVEN_FOR,) if starts.useful_at else ()
    counted_until = (each + DAY for each in (*starts.starting.values(), *starts.useless.values()))
    return max((*counted_until, *proven_until), default=None)


def _ends_at(limit: StartLimit) -> datetime:
    return limit.until or datetime.min.replace(tzinfo=UTC)


def _describe(cause: OfferingKey) -> str:
    if not is_counted(cause):
        return f"in {cause}"
    kind, _, name = cause.instance_type.partition(":")
    return f"with the image for {name}" if kind == "image" else f"for tasks of {name}"


RELEASED = "released"
"""The timeline event of a machine that a job does not need any more."""
RELEASED_UNUSED = "released unused"
"""The timeline event of a machine that a job does not need any more, and on which it had no task."""
CLAIMED = "claimed"
"""The timeline event of a machine that a job claims which did not request it, or had released it."""
# Whoever called TerminateInstances: this application among others.
_BY_USER = "Client.UserInitiatedShutdown"


def remember_unready(machine: Machine, reason: str, now: datetime) -> tuple[MachineEffect, ...]:
    """Return the effect that lets all jobs avoid the offering of a machine that was launched and not ready."""
    if machine.offering is None:
        return ()
    of_pool = CapacityFailure(machine.offering, reason, now, now + POOL_AVOIDED, is_unready=True)
    # The first two of an image say nothing of it (core.offerings.capacity_memory).
    of_image = CapacityFailure(
        image_of(machine),
        f"machines of the stack do not become ready, lastly: {reason}",
        now,
        now,
        is_unready=True,
        machine_id=counted_as(machine),
    )
    return (RememberFailures((of_pool, of_image)),)


def counted_as(machine: Machine) -> str:
    """Return the machine ID that a start is counted with: several machines that are requested at once are one start."""
    return machine.request.tags.get(GROUP_TAG, machine.machine_id)


def forget_unready(machine: Machine, now: datetime) -> tuple[MachineEffect, ...]:
    """Return the effect of a machine that became ready."""
    offerings = (machine.offering,) if machine.offering else ()
    return (ForgetUnready((*offerings, image_of(machine)), now),)


def is_told_by_client(state_reason: str) -> bool:
    """Return whether EC2 ended an instance for a reason of the account, and nobody asked for its end."""
    return state_reason.startswith("Client.") and not state_reason.startswith(_BY_USER)


def usd_for_nothing(machine: Machine, job_id: str, now: datetime) -> float:
    """Return what a machine has cost while the job that requested it had it, and has released it without a task there.

    0 for another job's, and for one on which others may have run tasks. It counts from the launch, or from its newest
    claim if it came back to the machine, so that no time is counted twice, whenever this is asked again. EC2 bills an
    instance until it begins to shut down ("Instance lifecycle", EC2 User Guide), which is when it is terminated or
    earlier; and not at all one that it interrupts within its first hour, which is left to it.
    """
    since = machine.launched_at
    if since is None or machine.left_until is not None or machine.request.tags.get(JOB_TAG) != job_id:
        return 0.0
    until = machine.ended_at or now
    entries = machine.timeline
    for number, entry in enumerate(machine.timeline, start=1):
        is_own = entry.detail.partition(";")[0] == job_id
        if is_own and entry.event == CLAIMED:
            since = max(entry.at, since)
            until = machine.ended_at or now
            entries = machine.timeline
        elif is_own and entry.event in (RELEASED, RELEASED_UNUSED):
            # Who comes later changes nothing: this is asked again after a save that failed.
            until = min(entry.at, machine.ended_at or now)
            entries = machine.timeline[:number]
    seconds = (min(until, now) - since).total_seconds()
    return 0.0 if _may_have_run_others(machine, job_id, entries) else max(seconds, 0.0) / 3600 * machine.usd_per_hour


def _may_have_run_others(machine: Machine, job_id: str, entries: Sequence[MachineTimelineEntry]) -> bool:
    """Return whether other jobs may have run tasks on a machine by the last of these entries."""
    others = {each.job_id for each in machine.claims if entries is machine.timeline}
    for entry in entries:
        whose = entry.detail.partition(";")[0]
        if entry.event == CLAIMED:
            others.add(whose)
        elif entry.event == RELEASED_UNUSED:
            others.discard(whose)
        elif entry.event == RELEASED and whose != job_id:
            # It may have run a task, which is paid for as such.
            return True
    # Nobody runs a task on a machine that never was ready.
    return bool(others - {job_id}) and machine.registered_at is not None
