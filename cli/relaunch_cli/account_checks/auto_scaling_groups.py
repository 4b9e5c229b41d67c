"""The Auto Scaling group of a capacity provider: whether it starts what the settings say, for that price.

Sources: "Amazon ECS cluster auto scaling" and "Using a warm pool for your Auto Scaling group" (ECS Developer Guide),
"Suspend and resume Amazon EC2 Auto Scaling processes", "Use Capacity Rebalancing" and InstancesDistribution (EC2 Auto
Scaling).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.zones import zone_ends
from relaunch.ports import CapacityProviderOffer

MIXED = "spot and on-demand"
"""What a group buys whose distribution says so."""


class GroupRisk(StrEnum):
    """What a group does to tasks that managed scaling does not know of."""

    UNPROTECTED = "unprotected"
    REBALANCES = "rebalances"
    WARM_POOL = "warm-pool"


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """An Auto Scaling group as it is set, and as its launch template is.

    `purchase` is what it buys, as the settings name it, or MIXED; empty if unknown. `suspended` are its processes that
    are. `disk_gib` is the size of the root volume, None if unknown; `zones` are their full names.
    """

    name: str
    min_size: int
    max_size: int
    instance_types: tuple[str, ...] = ()
    purchase: str = ""
    disk_gib: int | None = None
    zones: tuple[str, ...] = ()
    suspended: tuple[str, ...] = ()
    risks: frozenset[GroupRisk] = frozenset()


def group_problems(offer: CapacityProviderOffer, group: GroupFacts) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a group, and what to do about it."""
    yield from _size_problems(offer, group)
    yield from _type_problems(offer, group)
    yield from purchase_problems(offer, group.purchase, "group")
    yield from disk_problems(offer, group.disk_gib, "the root volume of its group")
    used = zone_ends(group.zones)
    if offer.zones and used and set(offer.zones) != set(used):
        yield (
            f"its group uses the zones {', '.join(used)}, and CapacityProviders says {', '.join(offer.zones)}: "
            "the prices of others are compared",
            _deploy(replace(offer, zones=used)),
        )
    if GroupRisk.REBALANCES in group.risks and offer.purchase is PurchaseOption.SPOT:
        yield (
            "its group has capacity rebalancing, which ends a training for a mere recommendation",
            f"{_update(group)} --no-capacity-rebalance",
        )
    if GroupRisk.WARM_POOL in group.risks:
        yield (
            "its group has a warm pool, whose instances join the cluster before they are in use",
            "set ECS_WARM_POOLS_CHECK=true in /etc/ecs/ecs.config, in the user data of its launch template",
        )


def _size_problems(offer: CapacityProviderOffer, group: GroupFacts) -> Iterator[tuple[str, str]]:
    if group.max_size < 1:
        yield "the maximum size of its group is 0", f"{_update(group)} --max-size 1"
    if group.min_size and offer.purchase is not PurchaseOption.RESERVED:
        yield (
            f"its group keeps {group.min_size} machines without a task, which are paid for: its minimum size",
            f"{_update(group)} --min-size 0",
        )
    effects = {"Launch": "no instance is ever started", "Terminate": "no instance is ever ended, and all are paid for"}
    for process in sorted(effects.keys() & set(group.suspended)):
        resume = f"aws autoscaling resume-processes --auto-scaling-group-name {group.name}"
        yield (
            f"the process {process} of its group is suspended: {effects[process]}",
            (f"{resume} --scaling-processes {process}"),
        )


def _type_problems(offer: CapacityProviderOffer, group: GroupFacts) -> Iterator[tuple[str, str]]:
    if len(group.instance_types) > 1:
        shown = ", ".join(group.instance_types)
        yield (
            f"its group has several instance types ({shown}): jobs may wait for one that it does not start",
            "make one capacity provider for each instance type, and name them in CapacityProviders",
        )
    elif group.instance_types and group.instance_types != (offer.instance_type,):
        has = group.instance_types[0]
        yield (
            f"its group starts {has}, and CapacityProviders says {offer.instance_type}: no task is placed there",
            _deploy(replace(offer, instance_type=has)),
        )


def purchase_problems(offer: CapacityProviderOffer, purchase: str, what: str) -> Iterator[tuple[str, str]]:
    """Yield that a group, or a provider, buys otherwise than the settings say, if that is known."""
    # On-demand instances take a reservation that is open to them.
    same = {PurchaseOption.ON_DEMAND.value, PurchaseOption.RESERVED.value}
    if purchase in {"", offer.purchase.value} or {purchase, offer.purchase.value} == same:
        return
    text = f"its {what} buys {purchase}, and CapacityProviders says {offer.purchase}: prices and `purchase` do not hold"
    if purchase == MIXED:
        yield text, "make one capacity provider for spot and one for on-demand, and name them in CapacityProviders"
    else:
        yield text, _deploy(replace(offer, purchase=PurchaseOption(purchase)))


def disk_problems(offer: CapacityProviderOffer, disk_gib: int | None, what: str) -> Iterator[tuple[str, str]]:
    """Yield that a volume is smaller than the settings say, if both are known."""
    if offer.disk_gib is None or disk_gib is None or disk_gib >= offer.disk_gib:
        return
    yield (
        f"{what} has {disk_gib} GiB, and CapacityProviders says {offer.disk_gib}: a larger `disk` does not fit",
        _deploy(replace(offer, disk_gib=disk_gib)),
    )


def _deploy(offer: CapacityProviderOffer) -> str:
    return f"relaunch deploy CapacityProviders={offer.entry},..."


def _update(group: GroupFacts) -> str:
    return f"aws autoscaling update-auto-scaling-group --auto-scaling-group-name {group.name}"
