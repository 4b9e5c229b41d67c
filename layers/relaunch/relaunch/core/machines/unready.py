"""What a machine that did not become ready teaches all jobs: to avoid its offering, and after several its image.

"Troubleshoot Amazon EC2 instance launch issues" (EC2 User Guide) has the reasons with which EC2 ends an instance that
it has launched; those that begin with `Client.` are of the account: a key that may not be used, a snapshot that is
gone.
"""

from collections.abc import Sequence
from datetime import datetime

from relaunch.core.machines.machine import (
    ForgetUnready,
    Machine,
    MachineEffect,
    MachineTimelineEntry,
    RememberFailures,
)
from relaunch.core.machines.refusals import POOL_AVOIDED
from relaunch.core.machines.starts import image_of
from relaunch.core.machines.tags import JOB_TAG
from relaunch.core.offerings.offering import CapacityFailure

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
        machine_id=machine.machine_id,
    )
    return (RememberFailures((of_pool, of_image)),)


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
    until, entries = machine.ended_at or now, machine.timeline
    for number, entry in enumerate(machine.timeline, start=1):
        is_own = entry.detail.partition(";")[0] == job_id
        if is_own and entry.event == CLAIMED:
            since, until, entries = max(entry.at, since), machine.ended_at or now, machine.timeline
        elif is_own and entry.event in (RELEASED, RELEASED_UNUSED):
            # Who comes later changes nothing: this is asked again after a save that failed.
            until, entries = min(entry.at, machine.ended_at or now), machine.timeline[:number]
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
