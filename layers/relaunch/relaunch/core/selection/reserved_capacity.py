"""Whether what is reserved can be used: it is active, has enough free instances, and lasts for something of the job.

Sources: "Capacity Blocks for ML" and "On-Demand Capacity Reservations" (EC2 User Guide).
"""

from datetime import datetime, timedelta

from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.reservations import TAKEN_BEFORE_END, Reservation, ReservationType
from relaunch.core.selection.expected_cost import CHECKPOINT_INTERVAL, START_OVERHEAD, WorkAhead
from relaunch.core.selection.rejection import Rejection

# When an instance of a reservation is free again, or somebody extends it, is not known.
_POLL_INTERVAL = timedelta(minutes=5)


def find_reservation_problem(
    offering: Offering, now: datetime, work: WorkAhead | None, machines: int
) -> Rejection | None:
    """Return why what is reserved cannot be used by a job that needs so many machines of it at once; None if it can."""
    reservation = offering.reservation
    if reservation is None:
        return _find_end(offering, now, work)
    if reservation.obstacle or reservation.is_over:
        return Rejection(f"{reservation} {reservation.obstacle or f'is {reservation.state}'}")
    if _is_too_small(reservation, machines):
        return Rejection(f"{reservation} has {_instances(reservation.total)}, and the job needs {machines} at once")
    again_at = now + _POLL_INTERVAL
    if not reservation.is_active:
        starts_at = reservation.starts_at
        start = f", and starts {starts_at:%Y-%m-%d %H:%M} UTC" if starts_at else ""
        reason = f"{reservation} is {reservation.state}{start}"
        return Rejection(reason, is_permanent=False, retry_at=max(starts_at or again_at, again_at))
    if too_short := _find_lack_of_time(offering, now, work, reservation.usable_until, str(reservation)):
        return too_short
    reason = ""
    if not reservation.is_launchable:
        reason = f"EC2 launches nothing into {reservation} now: its launch status is unlaunchable"
    elif reservation.available < machines and not (machines == 1 and reservation.has_room):
        reason = _describe_lack(reservation, machines)
    return Rejection(reason, is_permanent=False, retry_at=again_at) if reason else None


def _is_too_small(reservation: Reservation, machines: int) -> bool:
    """Return whether a reservation never has as many instances: a Capacity Block is extended in time alone.

    An on-demand capacity reservation may be given more ("Modify an active Capacity Reservation", EC2 User Guide).
    """
    is_block = reservation.type is ReservationType.CAPACITY_BLOCK
    return is_block and 0 < reservation.total < machines


def _describe_lack(reservation: Reservation, machines: int) -> str:
    if machines == 1:
        return f"none of the {reservation.total} instances of {reservation} is free"
    free = max(reservation.available, 0)
    verb = "is" if free == 1 else "are"
    of = f"{free} of the {_instances(reservation.total)} of {reservation}"
    return f"{of} {verb} free, and the job needs {machines} at once"


def _instances(count: int) -> str:
    return "1 instance" if count == 1 else f"{count} instances"


def _find_end(offering: Offering, now: datetime, work: WorkAhead | None) -> Rejection | None:
    """Reject what a capacity provider has reserved once it ends, as a Capacity Block does, which others outlast."""
    ends_at = offering.reserved_until
    if ends_at is None:
        return None
    what = "what its capacity provider has reserved"
    if ends_at <= now:
        return Rejection(f"{what} ended at {ends_at:%Y-%m-%d %H:%M} UTC, as CapacityProviders says")
    return _find_lack_of_time(offering, now, work, ends_at - TAKEN_BEFORE_END, what)


def _find_lack_of_time(
    offering: Offering, now: datetime, work: WorkAhead | None, until: datetime | None, what: str
) -> Rejection | None:
    least = _least_time(work, offering.instance_type)
    if until is None or until - now >= least:
        return None
    minutes = least // timedelta(minutes=1)
    reason = f"{what} is usable until {until:%Y-%m-%d %H:%M} UTC; the job needs {minutes} minutes of it"
    return Rejection(reason, is_permanent=False, retry_at=now + _POLL_INTERVAL)


def _least_time(work: WorkAhead | None, machine: InstanceType) -> timedelta:
    """Return how long a job must run so that something is left of it: to its end, or to a checkpoint if it has some."""
    speed = None if work is None else work.speed_of(machine)
    if work is None or speed is None:
        return START_OVERHEAD + CHECKPOINT_INTERVAL
    duration = work.at_speed(speed.slow).duration_left
    return START_OVERHEAD + (min(CHECKPOINT_INTERVAL, duration) if work.has_checkpoint else duration)
