"""What keeps EC2 from launching an instance: stock, quotas, offerings, addresses of subnets.

Source of the codes: "Error codes for the Amazon EC2 API", and reports of users of EC2 Fleet. What EC2 Fleet answers
where there is no stock is not documented.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache

from relaunch_local.ecs.engine.instances import CapacityKey, Instances
from relaunch_local.ecs.engine.model import Instance, InstanceState
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.engine.settings import Purchase

_NO_ADDRESSES = "InsufficientFreeAddressesInSubnet"
_NOT_OFFERED = "Your requested instance type ({type}) is not supported in your requested Availability Zone ({zone})."

MESSAGES = {
    "InsufficientInstanceCapacity": "We currently do not have sufficient {type} capacity in the Availability Zone "
    "you requested ({zone}).",
    "UnfulfillableCapacity": "Unable to fulfill capacity due to your request configuration.",
    "Unsupported": _NOT_OFFERED,
    "InvalidFleetConfiguration": _NOT_OFFERED,
    "InsufficientFreeAddressesInSubnet": "The specified subnet does not have enough free addresses.",
    "InvalidSubnetID.NotFound": "The subnet ID '{subnet}' does not exist",
    "VcpuLimitExceeded": "You have requested more vCPU capacity than your current vCPU limit allows for the instance "
    "bucket that the specified instance type belongs to.",
    "MaxSpotInstanceCountExceeded": "Max spot instance count exceeded",
    "ReservationCapacityExceeded": "The requested reservation does not have sufficient compatible and available "
    "capacity for this request.",
    "InvalidCapacityReservationState.PendingActivation": "Your Capacity Block is not active yet.",
    "RequestLimitExceeded": "Request limit exceeded.",
    "UnauthorizedOperation": "You are not authorized to perform this operation.",
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted": "The provided credentials do not have permission to create "
    "the service-linked role for EC2 Spot Instances.",
}
"""The messages of errors of a launch; other codes have a general one."""

_FAMILIES = {
    "g": "G and VT", "gr": "G and VT", "vt": "G and VT", "p": "P", "trn": "Trn", "inf": "Inf", "dl": "DL", "f": "F",
    "x": "X", "u": "High memory", "hpc": "HPC",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instance is to be launched."""

    instance_type: str
    zone: str
    """Empty if the subnet is unknown."""
    subnet_id: str
    purchase: Purchase


@dataclass(frozen=True, slots=True)
class Room:
    """How many of the instances that are asked for a pool has, and the error code of the others, empty without any."""

    instances: int
    code: str = ""


class HostFault(Enum):
    """What goes wrong with every instance of a pool, which EC2 launches and bills."""

    NEVER_JOINS = "never joins"
    """The agent does not register: an image without it, a subnet without a way to ECS, a lifecycle of its own."""
    LAUNCH_ERROR = "launch error"
    """It is terminated while pending ("Client.InternalError: Client error on launch"), as without a grant of its key.

    Source: "Troubleshoot Amazon EC2 instance launch issues" (EC2 User Guide), and reports of several launchers' users.
    """


@dataclass(slots=True)
class Pools:
    """The capacity of the region for EC2 Fleet."""

    region: Region
    instances: Instances
    offerings: Mapping[str, Iterable[str]]
    """The instance types of each zone; empty: every type in every zone."""
    subnets: dict[str, str]
    """The zone of each subnet."""
    vcpu_quotas: dict[tuple[str, Purchase], int]
    addresses: dict[str, int] = field(default_factory=dict)
    """How many instances a subnet has addresses for; a missing one is unlimited."""
    refusals: dict[CapacityKey, str] = field(default_factory=dict)
    """The code with which every launch in a pool is refused; EC2's strategies do not foresee it."""
    host_faults: dict[CapacityKey, HostFault] = field(default_factory=dict)
    """What goes wrong with every instance that is launched in a pool."""

    def expects_capacity(self, place: Place, wanted: int = 1) -> bool:
        """Return whether EC2 has stock for so many, as far as its capacity-optimized strategies know."""
        stock = self.instances.stock(place.instance_type, place.purchase, place.zone)
        return stock is None or stock >= wanted

    def refusal_of(self, place: Place) -> str | None:
        """Return the error code of a launch; None if there is an instance for it."""
        return self.room_for(place, 1).code or None

    def room_for(self, place: Place, wanted: int) -> Room:
        """Return how many of so many instances can be launched, and what keeps EC2 from launching the others."""
        code = self._mistake_in(place) or self._refusal_in(place)
        if code is not None:
            return Room(0, code)
        is_spot = place.purchase is Purchase.SPOT
        return _least(
            wanted,
            (self._left_of_quota(place), "MaxSpotInstanceCountExceeded" if is_spot else "VcpuLimitExceeded"),
            (self._free_addresses(place.subnet_id), _NO_ADDRESSES),
            (self.instances.stock(place.instance_type, place.purchase, place.zone), "InsufficientInstanceCapacity"),
        )

    def room_in_reservation(self, place: Place, wanted: int, free: tuple[int, str]) -> Room:
        """Return how many of so many can be launched into a reservation, which has so many free, and the code if not.

        Stock and quotas were asked for when it was made.
        """
        code = self._mistake_in(place)
        return Room(0, code) if code else _least(wanted, free, (self._free_addresses(place.subnet_id), _NO_ADDRESSES))

    def _refusal_in(self, place: Place) -> str | None:
        keys = [(place.instance_type, place.purchase, zone) for zone in (place.zone, None)]
        return next((self.refusals[key] for key in keys if key in self.refusals), None)

    def _mistake_in(self, place: Place) -> str | None:
        if not self._is_offered(place):
            return "InvalidFleetConfiguration"
        return None if place.subnet_id in self.subnets else "InvalidSubnetID.NotFound"

    def _is_offered(self, place: Place) -> bool:
        is_known = place.instance_type in self.region.shapes
        # Without a zone, the unknown subnet is the error.
        return is_known and (not self.offerings or not place.zone or place.instance_type in self._types_in(place.zone))

    def _types_in(self, zone: str) -> Iterable[str]:
        return self.offerings.get(zone, ())

    def _left_of_quota(self, place: Place) -> int | None:
        family = family_of(place.instance_type)
        quota = self.vcpu_quotas.get((family, place.purchase))
        if quota is None:
            return None
        # AWS does not say when an instance that ends stops to count: here when it is terminated.
        used = sum(
            instance.shape.vcpus
            for instance in self._counted()
            if instance.purchase is place.purchase
            and not instance.reservation_id
            and family_of(instance.instance_type) == family
        )
        return (quota - used) // self.region.shapes[place.instance_type].vcpus

    def _free_addresses(self, subnet_id: str) -> int | None:
        most = self.addresses.get(subnet_id)
        return None if most is None else most - sum(each.subnet_id == subnet_id for each in self._counted())

    def _counted(self) -> Iterable[Instance]:
        return (each for each in self.instances.by_id.values() if each.state is not InstanceState.TERMINATED)


def _least(wanted: int, *limits: tuple[int | None, str]) -> Room:
    """Return what the first of the closest limits leaves of so many instances; None: it limits nothing."""
    left, code = min(
        ((max(number, 0), code) for number, code in limits if number is not None),
        key=lambda limit: limit[0],
        default=(wanted, ""),
    )
    return Room(wanted) if left >= wanted else Room(left, code)


@cache
def family_of(instance_type: str) -> str:
    """Return the family of a vCPU quota ("Amazon EC2 instance type quotas", Amazon EC2 User Guide)."""
    match = re.match(r"[a-z]+", instance_type)
    return _FAMILIES.get(match.group() if match else "", "Standard")


def message_of(code: str, place: Place) -> str:
    """Return the message of an error of a launch."""
    text = MESSAGES.get(code, "The launch of {type} in {zone} was refused.")
    return text.format(type=place.instance_type, zone=place.zone, subnet=place.subnet_id)
