"""What a capacity failure is about: one offering, or all that share a quota, a subnet or a purchase option.

A failure is stored under an OfferingKey. That of several offerings has `any-type`, `quota:…` or `family:…` in the place
of the instance type, which no instance type is called; that of all machines of our own with one kind of AMI has
`image:…`, for they share a launch template.
"""

from dataclasses import replace
from functools import cache

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.amis import AmiKind, ami_kind
from relaunch.core.offerings.offering import (
    CapacityFailure,
    CapacityMemory,
    Offering,
    OfferingKey,
    remembered_key,
)
from relaunch.core.offerings.quotas import quota_of

# In lower case, like instance types: the jobs table has the runs on spot (`RUNS#…`) before all failures.
_ANY_TYPE = "any-type"
_QUOTA, _FAMILY, _IMAGE, _PLACEMENT = "quota:", "family:", "image:", "placement:"


@cache
def quota_scope(instance_type: str, purchase: PurchaseOption) -> OfferingKey:
    """Return the key of all offerings that count against the vCPU quota of an instance type.

    If the quota is unknown, these are the sizes of the family (`p5en`).
    """
    quota = quota_of(instance_type, purchase)
    name = f"{_QUOTA}{quota.code}" if quota else f"{_FAMILY}{instance_type.partition('.')[0]}"
    return OfferingKey(name, None, purchase)


def zone_scope(zone: str, purchase: PurchaseOption) -> OfferingKey:
    """Return the key of all machines of our own in a zone, where they share a subnet."""
    return OfferingKey(_ANY_TYPE, zone, purchase)


def purchase_scope(purchase: PurchaseOption) -> OfferingKey:
    """Return the key of all machines of our own with a purchase option."""
    return OfferingKey(_ANY_TYPE, None, purchase)


@cache
def image_scope(kind: AmiKind) -> OfferingKey:
    """Return the key of all machines of our own with this kind of AMI, which share an image and a launch template."""
    return OfferingKey(f"{_IMAGE}{kind}", None, PurchaseOption.ON_DEMAND)


def placement_scope(revision_arn: str) -> OfferingKey:
    """Return the key of all machines of our own as far as tasks of a revision are to be placed on them."""
    return OfferingKey(f"{_PLACEMENT}{revision_arn}", None, PurchaseOption.ON_DEMAND)


def is_counted(key: OfferingKey) -> bool:
    """Return whether a key stands for all machines of our own with one image, or for the tasks of one revision."""
    return key.instance_type.startswith((_IMAGE, _PLACEMENT))


def refused_placements(revision_arn: str, memory: CapacityMemory) -> tuple[CapacityFailure, ...]:
    """Return the failures that keep a revision from all machines of our own: its tasks are placed on none."""
    failure = memory.get(placement_scope(revision_arn))
    purchases = (PurchaseOption.SPOT, PurchaseOption.ON_DEMAND)
    return tuple(replace(failure, offering=purchase_scope(each)) for each in purchases) if failure else ()


def is_scope(key: OfferingKey) -> bool:
    """Return whether a key stands for several instance types."""
    return key.instance_type.startswith((_ANY_TYPE, _QUOTA, _FAMILY, _IMAGE, _PLACEMENT))


def find_failures(offering: Offering, memory: CapacityMemory) -> list[CapacityFailure]:
    """Return the failures that are about an offering.

    Those of a capacity provider are about no other one, nor about machines of our own, except for quotas: that no
    instance of a group came in time says little about EC2, which answers a request for a machine within seconds. Those
    of our own machines are about a capacity provider if EC2 has no capacity for its type in any zone that its group may
    use.
    """
    machine = offering.instance_type
    provider = offering.capacity_provider or ""
    keys = _keys(machine.name, offering.zone, offering.purchase, provider, is_own_machine=offering.is_own_machine)
    kind = ami_kind(machine) if offering.is_own_machine else None
    of_image = memory.get(image_scope(kind)) if kind else None
    found = (*(memory.get(key) for key in keys), of_image, _shortage_in_all_zones(offering, memory))
    return [failure for failure in found if failure is not None and failure.vcpus <= machine.vcpus]


def _shortage_in_all_zones(offering: Offering, memory: CapacityMemory) -> CapacityFailure | None:
    """Return what EC2's answers for machines of our own say of a capacity provider, whose group asks EC2 for the same.

    Which zones the group uses is not known, so all must be short that EC2 offers the type in. The first one that is
    asked about again opens the provider again.
    """
    zones = offering.offered_zones if offering.capacity_provider is not None else ()
    keys = [OfferingKey(offering.instance_type.name, zone, offering.purchase) for zone in zones]
    short = [failure for key in keys if (failure := memory.get(key)) is not None and failure.is_shortage]
    if not short or len(short) < len(keys):
        return None
    first = min(short, key=lambda each: each.until)
    return replace(first, offering=offering.key, reason=f"{first.reason}, in none of {', '.join(zones)}")


# Every launch asks for hundreds of offerings, of which a region has about two thousand.
@cache
def _keys(
    instance_type: str, zone: str | None, purchase: PurchaseOption, provider: str, *, is_own_machine: bool
) -> tuple[OfferingKey, ...]:
    own, quota = OfferingKey(instance_type, zone, purchase), quota_scope(instance_type, purchase)
    if zone is None:
        # Without a name it is not known of which provider.
        return (remembered_key(own, provider), own, quota) if provider else (own, quota)
    if is_own_machine:
        # A full subnet is remembered for spot and for on-demand.
        sold_as = PurchaseOption.ON_DEMAND if purchase is PurchaseOption.RESERVED else purchase
        return own, quota, zone_scope(zone, sold_as), purchase_scope(purchase)
    return own, quota, OfferingKey(instance_type, None, purchase)
