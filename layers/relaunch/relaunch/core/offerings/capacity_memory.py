"""The capacity memory: how long all jobs avoid an offering after a launch found no capacity (exponential backoff).

An interruption is no such failure: it says that one instance was taken, not that the next one cannot be had, and with
many jobs there is always a recent one. It counts for the interruption rate instead (core.offerings.spot_runs).

Each consecutive failure doubles the time, up to `LONGEST`; each `FORGOTTEN_AFTER` without one reduces their number by
one. For comparison: Karpenter retries a pool three minutes after each failure; a circuit breaker of one hour would not
use a pool whose capacity is back at once. What several offerings share is avoided as
long as each failure says: it changes with what the stack itself runs, and when somebody asked AWS for more.

A machine of our own that did not become ready was paid for, so its offering is avoided for four times as long with each
failure, not twice. Where several in a row did not, whatever their offerings, they share a cause: image, launch template
or network. All offerings with that image are avoided then: for 15 minutes, an hour, then four hours. So are all for the
tasks of a revision of which the cluster placed none on several machines that were bought for them. A machine that
becomes ready, or takes such a task, ends that, and the failures do not count any more (`sound`).

An instance that arrives late ends the avoidance, but the failures still count: a registration does not show that a task
can run there.

A capacity provider whose machines run other tasks of the stack is a queue, no failure: it is avoided until
one of them is free, and for QUEUE_AVOIDED at most, so that jobs with another offering take that. A group never exceeds
its maximum size ("Automatically manage Amazon ECS capacity with cluster auto scaling").

A failure is about one offering, or about all that share a quota, a subnet or a purchase option. It is stored under an
OfferingKey. That of several offerings has `any-type`, `quota:…` or `family:…` in the place of the instance type, which
no instance type is called; that of all machines of our own with one kind of AMI has `image:…`, for they share a launch
template.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.instance_types import AmiKind, ami_kind
from relaunch.core.offerings.offering import CapacityFailure, CapacityMemory, Offering, OfferingKey, remembered_key
from relaunch.core.offerings.quotas import ALL_QUOTAS, quota_of

# In lower case, like instance types: the jobs table has the runs on spot (`RUNS#…`) before all failures.
_ANY_TYPE = "any-type"
_QUOTA = "quota:"
_FAMILY = "family:"
_IMAGE = "image:"
_PLACEMENT = "placement:"


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


_WORDS = {
    _ANY_TYPE: "all machines on {purchase}{zone}",
    _QUOTA: "all types of the quota {name}",
    _FAMILY: "all sizes of {name} on {purchase}",
    _IMAGE: "all machines with the {name} image",
    _PLACEMENT: "machines for tasks of {name}",
}


def describe_key(key: OfferingKey) -> str:
    """Return what a key of the memory stands for, in words."""
    kind, colon, name = key.instance_type.partition(":")
    words = _WORDS.get(f"{kind}{colon}")
    if words is not None:
        name = next((str(quota) for quota in ALL_QUOTAS if quota.code == name), name)
        return words.format(name=name, purchase=key.purchase, zone=f" in {key.zone}" if key.zone else "")
    instance_type, _, provider = key.instance_type.partition("@")
    of_provider = f" of capacity provider {provider}" if provider else ""
    return f"{replace(key, instance_type=instance_type)}{of_provider}"


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

    All zones must be short that EC2 offers the type in, or those of them that the settings say the group uses. The
    first one that is asked about again opens the provider again.
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
    own = OfferingKey(instance_type, zone, purchase)
    quota = quota_scope(instance_type, purchase)
    if zone is None:
        # Without a name it is not known of which provider.
        return (remembered_key(own, provider), own, quota) if provider else (own, quota)
    if is_own_machine:
        # A full subnet is remembered for spot and for on-demand.
        sold_as = PurchaseOption.ON_DEMAND if purchase is PurchaseOption.RESERVED else purchase
        return own, quota, zone_scope(zone, sold_as), purchase_scope(purchase)
    return own, quota, OfferingKey(instance_type, None, purchase)


LONGEST = timedelta(hours=4)
FORGOTTEN_AFTER = timedelta(hours=2)
QUEUE_AVOIDED = timedelta(minutes=15)
"""After this time a group whose machines run other tasks is asked for another one again: its maximum size may have been
raised, or not have been reached."""
# Launches that were sent before the first failure was known, and duplicate messages, are one event.
SAME_EVENT = timedelta(minutes=5)
# Doubling ends at LONGEST long before this.
_MAX_CONSECUTIVE_FAILURES = 8
# One that did not become ready may be chance, and so may be two.
_UNREADY_BY_CHANCE = 2
# As far apart as the probes of a job that is refused, and no offering is avoided for longer than LONGEST.
_UNREADY_AVOIDED = (timedelta(minutes=15), timedelta(hours=1), LONGEST)


def remember(before: CapacityFailure | None, failure: CapacityFailure) -> CapacityFailure:
    """Return the failure to store for an offering, given the stored one (`before`) and a new one.

    `failure.until` is the end of the avoidance for a first failure. Failures within SAME_EVENT of each other, in any
    order, count as one, unless the avoidance was over, or the offering reopened, in between. The end of the avoidance
    never becomes earlier. A failure that is refuted already (`reopened`) is not remembered again.
    """
    if before is None:
        return failure
    if failure.is_queue:
        return _of_queue(before, failure)
    if is_counted(failure.offering) or is_scope(failure.offering):
        add = _of_cause if is_counted(failure.offering) else _of_scope
        return add(before, failure)
    if before.is_refuted and failure.at < before.until:
        return before
    later = max(before, failure, key=lambda each: each.at)
    is_same_event = abs(failure.at - before.at) < SAME_EVENT and failure.at < before.until
    if is_same_event and not before.is_refuted and not before.is_queue:
        return replace(later, consecutive_failures=before.consecutive_failures, until=max(before.until, failure.until))
    consecutive_failures = min(remaining_failures(before, failure.at) + 1, _MAX_CONSECUTIVE_FAILURES)
    growth = 4 if failure.is_unready else 2
    avoided_for = min((failure.until - failure.at) * growth ** (consecutive_failures - 1), LONGEST)
    until = failure.at + max(avoided_for, failure.until - failure.at)
    return replace(later, consecutive_failures=consecutive_failures, until=max(before.until, until))


def queued(failure: CapacityFailure) -> CapacityFailure:
    """Return the failure of a launch by a capacity provider whose machines run other tasks of the stack."""
    reason = f"the machines of capacity provider {failure.capacity_provider} run other tasks"
    return replace(failure, reason=reason, until=failure.at + QUEUE_AVOIDED, consecutive_failures=0, is_queue=True)


def _of_queue(before: CapacityFailure, failure: CapacityFailure) -> CapacityFailure:
    """Return the failure to store after one of a queue: the one before it if that still holds or was refuted since."""
    if before.until > failure.until or (before.is_refuted and failure.at < before.until):
        return before
    return replace(failure, consecutive_failures=remaining_failures(before, failure.at))


def _of_cause(before: CapacityFailure, failure: CapacityFailure) -> CapacityFailure:
    """Return the failure with those before it; while the image is avoided only late ones fail.

    What is remembered again after a lost answer is the same machine, and no second one; so is one that another job of
    the revision takes while it is kept.
    """
    machines = before.machine_id.split()
    if failure.at < before.until or failure.machine_id in machines:
        return before
    count = min(remaining_failures(before, failure.at) + 1, _MAX_CONSECUTIVE_FAILURES)
    step = count - _UNREADY_BY_CHANCE - 1
    avoided_for = _UNREADY_AVOIDED[min(step, len(_UNREADY_AVOIDED) - 1)] if step >= 0 else timedelta(0)
    counted = " ".join([*machines, failure.machine_id][-_MAX_CONSECUTIVE_FAILURES:]).strip()
    return replace(failure, consecutive_failures=count, until=failure.at + avoided_for, machine_id=counted)


def sound(failure: CapacityFailure, at: datetime) -> CapacityFailure:
    """Return the failure after a machine became ready at `at`: nobody avoids the offering, and none counts any more."""
    return replace(failure, until=at, is_refuted=True, consecutive_failures=0)


def _of_scope(before: CapacityFailure, failure: CapacityFailure) -> CapacityFailure:
    """Return the later failure; if the earlier one was not over, until the end and for the vCPUs of both."""
    earlier, later = sorted((before, failure), key=lambda each: each.at)
    if earlier.until <= later.at:
        return later
    return replace(later, until=max(earlier.until, later.until), vcpus=min(earlier.vcpus, later.vcpus))


def reopened(failure: CapacityFailure, at: datetime) -> CapacityFailure:
    """Return the failure as refuted at `at`: no job avoids the offering, but a next failure still counts from there."""
    return replace(failure, until=at, is_refuted=True)


def with_job_failures(memory: CapacityMemory, own: Iterable[CapacityFailure]) -> CapacityMemory:
    """Return the memory for one job, with the failures of its own; of two for an offering the longer avoidance."""
    merged = dict(memory)
    for failure in own:
        known = merged.get(failure.key)
        if known is None or known.until < failure.until:
            merged[failure.key] = failure
    return merged


def remaining_failures(failure: CapacityFailure, now: datetime) -> int:
    """Return the consecutive failures that still count: one less for each FORGOTTEN_AFTER since the avoidance ended."""
    quiet = max(now - failure.until, timedelta(0))
    return max(failure.consecutive_failures - quiet // FORGOTTEN_AFTER, 0)


def forgotten_at(failure: CapacityFailure) -> datetime:
    """Return when no failure counts any more."""
    return failure.until + failure.consecutive_failures * FORGOTTEN_AFTER
