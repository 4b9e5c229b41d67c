"""Jobs of a burst that each request a machine though one would do: which request is given up for another machine.

A job sees what others claimed an instant ago only a moment later, because indexes are eventually consistent. Before EC2
is asked there is time to look once more.
"""

from collections.abc import Iterable

from relaunch.core.machines.lookup import has_room
from relaunch.core.machines.machine import Machine, machine_id_of
from relaunch.core.machines.resources import NOTHING
from relaunch.core.offerings.offering import OfferingKey


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
