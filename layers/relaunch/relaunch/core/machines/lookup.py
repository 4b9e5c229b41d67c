"""Keys with which stores find machines, and which of several requests is given up for another machine.

A job sees what others claimed an instant ago only a moment later, because indexes are eventually consistent. Before EC2
is asked there is time to look once more: of jobs that each request a machine though one would do, one joins another.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from relaunch.core.machines.machine import NOTHING, Machine, MachineState, Resources, machine_id_of
from relaunch.core.offerings.offering import OfferingKey

KEPT_AFTER_END = timedelta(days=30)

_LEAST = Resources(cpu_units=1, memory_mib=1)
# A share has at least one percent of a GPU's compute.
_LEAST_WITH_ACCELERATOR = (
    Resources(cpu_units=1, memory_mib=1, gpus=0.01),
    Resources(cpu_units=1, memory_mib=1, neuron_devices=1),
)


def due_at(machine: Machine) -> datetime | None:
    """Return when the machine is to be checked again, None if never.

    A machine that is gone is due while effects are pending; loading it for the next event repeats them.

    Raises:
        ValueError: the machine is not gone and has no `wake_at`.
    """
    if machine.state is MachineState.GONE:
        return (machine.wake_at or gone_at(machine)) if machine.pending else None
    if machine.wake_at is None:
        raise ValueError(f"machine {machine.machine_id} is {machine.state} and has no wake_at")
    return machine.wake_at


def gone_at(machine: Machine) -> datetime | None:
    """Return since when the machine is gone, None while it is not."""
    return (machine.state_since or machine.created_at) if machine.state is MachineState.GONE else None


def has_room(machine: Machine) -> bool:
    """Return whether another job may find room on the machine.

    The rest must have CPU, memory and, if the machine has accelerators, some of those. A machine that was warned takes
    no more jobs.
    """
    if not machine.state.is_usable or machine.warned_at is not None or machine.is_unusable:
        return False
    capacity = machine.capacity
    free = machine.free
    needed = [least for least in _LEAST_WITH_ACCELERATOR if capacity.holds(least)]
    return any(free.holds(least) for least in needed or [_LEAST])


def may_give_way(machine: Machine) -> bool:
    """Return whether the request of a machine may be given up for room on another one.

    EC2 was not asked, the machine has room for others itself, and only the job that requested it claims it, for which
    it is the first one: a job moves at most once.
    """
    if machine.asked_at is not None or len(machine.claims) != 1 or not has_room(machine):
        return False
    (claim,) = machine.claims
    return machine.machine_id == machine_id_of(claim.job_id, claim.attempt_number, 1)


def find_older(machine: Machine, others: Iterable[Machine]) -> Machine | None:
    """Return the first older machine that has room for the jobs of a machine, None if there is none.

    Whatever it is, the machine may be too, and costs no less: so its jobs accept it. Of two that are requested the
    younger one gives way.
    """
    needed = sum((each.resources for each in machine.claims), NOTHING)
    possible = {each.offering for each in machine.request.overrides}
    for other in others:
        is_older = (other.created_at, other.machine_id) < (machine.created_at, machine.machine_id)
        is_alike = _possible_offerings(other) <= possible and other.usd_per_hour <= machine.usd_per_hour
        is_alike = is_alike and other.request.reservation_id == machine.request.reservation_id
        if is_older and is_alike and other.accepts(needed):
            return other
    return None


def _possible_offerings(machine: Machine) -> set[OfferingKey]:
    return {machine.offering} if machine.offering else {each.offering for each in machine.request.overrides}
