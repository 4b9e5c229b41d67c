"""Groups: the machines of one request to EC2 for several instances at once, all or none.

Each instance is a machine of its own, with a life, claims and charges as any other. The first one of the group, place
0, is the one that EC2 is asked for; all instances have its ID as their tag, as one launch gives all its instances the
same tags ("CreateFleet", "RunInstances", Amazon EC2 API Reference). The instances are dealt out by the order of their
IDs, so that whoever does it does it alike.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.machines.events import (
    FleetAnswer,
    FleetRefused,
    InstanceLaunched,
    InstanceObservation,
    Refusal,
    RefusalKind,
)
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import FleetRequest, Machine
from relaunch.core.machines.settings import GROUP_TAG, MACHINE_TAG
from relaunch.core.offerings.reservations import Reservation
from relaunch.core.records import dataclass

_SEPARATOR = "-n"
PARTIAL = "PartialFleet"
"""The code of the refusal of a request of which EC2 launched only a part, which is terminated."""


def member_id(first_id: str, place: int) -> str:
    """Return the machine ID of a place in the group whose first machine has this ID."""
    return f"{first_id}{_SEPARATOR}{place}" if place else first_id


def first_id_of(machine_id: str) -> str:
    """Return the machine ID of the first machine of a machine's group."""
    return machine_id.partition(_SEPARATOR)[0]


def first_ids_of(machine_ids: Iterable[str]) -> tuple[str, ...]:
    """Return the machine ID of the first machine of each group that one of these machines is of."""
    return tuple(dict.fromkeys(first_id_of(each) for each in machine_ids if each))


def member_ids(machine_id: str, size: int) -> tuple[str, ...]:
    """Return the machine IDs of the whole group of a machine, in the order of their places."""
    first = first_id_of(machine_id)
    return tuple(member_id(first, place) for place in range(size))


def requests_of_members(request: FleetRequest, size: int) -> tuple[FleetRequest, ...]:
    """Return the request of each machine of a group: all are the same one request to EC2."""
    if size == 1:
        return (request,)
    tags = {**request.tags, GROUP_TAG: request.tags[MACHINE_TAG]}
    return tuple(replace(request, size=size, place=place, tags=tags) for place in range(size))


def reservation_of_group(request: FleetRequest) -> Reservation | None:
    """Return the reservation of several machines, which RunInstances launches: EC2 Fleet would launch a part."""
    return request.reservation if request.size > 1 else None


def answer_of_member(request: FleetRequest, answer: FleetAnswer) -> FleetAnswer:
    """Return what EC2's answer to the request of a group means for one of its machines.

    Of a part of the instances none is used: a machine that has one has to end it. The write that gives it up names its
    instance too, so that a function which dies leaves none that nobody knows.
    """
    if not isinstance(answer, InstanceLaunched) or request.size == 1:
        return answer
    instances = sorted((answer.instance_id, *answer.others))
    if len(instances) >= request.size:
        return replace(answer, instance_id=instances[request.place], others=())
    message = f"{len(instances)} of {request.size} instances were launched, and are terminated"
    refusals = (*answer.refusals, Refusal(RefusalKind.NO_CAPACITY, PARTIAL, message, answer.offering))
    if request.place >= len(instances):
        return FleetRefused(refusals)
    return replace(answer, instance_id=instances[request.place], others=(), refusals=refusals, is_part=True)


def answer_of_found(found: Sequence[InstanceObservation], size: int, *, is_certain: bool) -> InstanceLaunched | None:
    """Return the answer that the instances with the tag of a group amount to; None if that is not known yet.

    What EC2 describes is eventually consistent: a part of the instances is the whole answer once no other can come.
    Those that have ended count: the others keep their places.
    """
    living = [each for each in found if each.state.is_alive]
    counted = found if len(found) <= size else living or found
    seen = sorted(counted, key=lambda each: each.instance_id)
    offering = next((each.offering for each in seen if each.offering is not None), None)
    if offering is None or (len(seen) < size and not is_certain):
        return None
    others = tuple(each.instance_id for each in seen[1:])
    return InstanceLaunched(seen[0].instance_id, offering, at=seen[0].launched_at, others=others)


@dataclass(frozen=True, slots=True)
class Survivors:
    """The machines that are kept, by rank; empty where another one is to be requested. `reason` says why."""

    ranks: tuple[str, ...]
    reason: str

    @property
    def missing(self) -> int:
        """Return how many machines are to be requested."""
        return self.ranks.count("")

    def with_new(self, machine_ids: Iterable[str]) -> tuple[str, ...]:
        """Return the machines of all ranks: those that are kept have theirs, new ones the others in their order."""
        new = iter(machine_ids)
        return tuple(each or next(new) for each in self.ranks)


NO_SURVIVORS = Survivors((), "")
"""No machine is kept: all are requested."""


KEPT_AT_MOST = timedelta(minutes=10)
"""How long machines wait at most, however long others of their type may take to register.

A machine without a task powers itself off after IdleMinutes, which are ten at least (infrastructure/machines.yaml).
"""


def kept_until(machines: Sequence[Machine], limits: MachineLimits) -> datetime | None:
    """Return until when the machines of a job wait for those that were requested later; None if none does.

    That is for as long as a machine has to register, from the request on, and KEPT_AT_MOST.
    """
    if len(first_ids_of(each.machine_id for each in machines)) == 1:
        return None
    newest = max(machines, key=lambda each: each.created_at)
    instance_type = newest.request.overrides[0].offering.instance_type
    return newest.created_at + min(limits.registration_deadline_of(instance_type), KEPT_AT_MOST)
