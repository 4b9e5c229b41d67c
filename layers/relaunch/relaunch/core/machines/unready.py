"""What a machine that did not become ready teaches all jobs: to avoid its offering, and after several its image.

"Troubleshoot Amazon EC2 instance launch issues" (EC2 User Guide) has the reasons with which EC2 ends an instance that
it has launched; those that begin with `Client.` are of the account: a key that may not be used, a snapshot that is
gone.
"""

from datetime import datetime

from relaunch.core.machines.machine import ForgetUnready, Machine, MachineEffect, RememberFailures
from relaunch.core.machines.refusals import POOL_AVOIDED
from relaunch.core.machines.starts import image_of
from relaunch.core.machines.tags import JOB_TAG
from relaunch.core.offerings.offering import CapacityFailure

RELEASED = "released"
"""The timeline event of a machine that a job does not need any more."""
# Whoever called TerminateInstances: this application among others.
_BY_USER = "Client.UserInitiatedShutdown"


def remember_unready(machine: Machine, reason: str, now: datetime) -> tuple[MachineEffect, ...]:
    """Return the effect that lets all jobs avoid the offering of a machine that was launched and not ready."""
    if machine.offering is None:
        return ()
    of_pool = CapacityFailure(machine.offering, reason, now, now + POOL_AVOIDED, is_unready=True)
    # The first two of an image say nothing of it (core.offerings.capacity_memory).
    of_image = CapacityFailure(
        image_of(machine), f"machines of the stack do not become ready, lastly: {reason}", now, now, is_unready=True
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
    """Return what a machine has cost that never ran a task and ends now; 0 for another job's, or one others use.

    EC2 bills an instance until it begins to shut down ("Instance lifecycle", EC2 User Guide), which is when it is
    terminated or earlier.
    """
    is_alone = all(each.job_id == job_id for each in machine.claims)
    # Whoever released it may have run a task on it, which is paid for as such.
    is_unused = is_alone and all(each.event != RELEASED for each in machine.timeline)
    if machine.launched_at is None or machine.request.tags.get(JOB_TAG) != job_id or not is_unused:
        return 0.0
    seconds = (min(machine.ended_at or now, now) - machine.launched_at).total_seconds()
    return max(seconds, 0.0) / 3600 * machine.usd_per_hour
