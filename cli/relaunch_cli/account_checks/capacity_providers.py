"""The capacity providers that the stack names: whether they scale, protect what runs, and start what it says.

Sources: "Amazon ECS cluster auto scaling", "Amazon ECS managed termination protection" and "Amazon ECS Managed
Instances capacity providers" (Developer Guide); PutClusterCapacityProviders (API Reference).
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from relaunch.core.checks import Check, is_ok, problem
from relaunch.core.offerings.managed_instances import managed_rejection
from relaunch.ports import CapacityProviderOffer
from relaunch_cli.account_checks.auto_scaling_groups import (
    GroupFacts,
    GroupRisk,
    disk_problems,
    group_problems,
    purchase_problems,
)


@dataclass(frozen=True, slots=True)
class ManagedFacts:
    """What a provider of ECS Managed Instances starts.

    `instance_types` are those that it allows, empty if it has other requirements alone; `purchase` is as the settings
    name it; `disk_gib` is the size of the data volume, None if unknown.
    """

    instance_types: tuple[str, ...] = ()
    purchase: str = ""
    disk_gib: int | None = None


@dataclass(frozen=True, slots=True)
class ProviderFacts:
    """A capacity provider; `group` is None if its group is gone, `managed` if it is over an Auto Scaling group."""

    is_active: bool = True
    is_in_cluster: bool = True
    has_managed_scaling: bool = False
    has_termination_protection: bool = False
    group: GroupFacts | None = None
    managed: ManagedFacts | None = None


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """A cluster: its name, its capacity providers but those of ECS Managed Instances, and its default strategy."""

    name: str
    providers: tuple[str, ...] = ()
    strategy: tuple[Mapping[str, Any], ...] = ()


def check_capacity_provider(
    offer: CapacityProviderOffer, facts: ProviderFacts | None, cluster: ClusterFacts, now: datetime
) -> Check:
    """Check a provider of the parameter CapacityProviders; without facts there is none."""
    name = f"capacity provider {offer.name}"
    found = [*_problems(offer, facts, cluster), *_end_problems(offer, now)]
    if found:
        return problem(name, "; ".join(text for text, _ in found), "\n".join(to_do for _, to_do in found))
    return is_ok(name, f"in {cluster.name}, {offer.instance_type}")


def _end_problems(offer: CapacityProviderOffer, now: datetime) -> Iterator[tuple[str, str]]:
    if offer.until is not None and offer.until <= now:
        yield (
            f"what it has reserved ended at {offer.until:%Y-%m-%d %H:%M} UTC, by CapacityProviders; no job uses it",
            f"relaunch deploy CapacityProviders=..., without {offer.name}, or with the end of what is reserved next",
        )


def _problems(
    offer: CapacityProviderOffer, facts: ProviderFacts | None, cluster: ClusterFacts
) -> Iterator[tuple[str, str]]:
    if facts is None or not facts.is_active:
        yield "it does not exist, and CapacityProviders names it", "relaunch deploy CapacityProviders=..., without it"
        return
    if (facts.managed is not None) != offer.is_managed:
        has = "an Auto Scaling group" if offer.is_managed else "ECS Managed Instances"
        right = replace(offer, is_managed=not offer.is_managed)
        yield (
            f"it has {has}, and CapacityProviders says otherwise",
            f"relaunch deploy CapacityProviders={right.entry},...",
        )
        return
    if facts.managed is not None:
        yield from _managed_problems(offer, facts.managed, is_in_cluster=facts.is_in_cluster, cluster=cluster.name)
        return
    if not facts.is_in_cluster:
        yield f"it is not one of the cluster {cluster.name}: RunTask refuses it", _put(offer.name, cluster)
    yield from _scaling_problems(offer, facts)


def _managed_problems(
    offer: CapacityProviderOffer, managed: ManagedFacts, *, is_in_cluster: bool, cluster: str
) -> Iterator[tuple[str, str]]:
    # One of Managed Instances belongs to the cluster that it was made in (CapacityProvider, API Reference).
    if not is_in_cluster:
        yield (
            f"it belongs to another cluster than {cluster}: RunTask refuses it",
            f"make one in the cluster {cluster}, and name it in CapacityProviders",
        )
    if why := managed_rejection(offer.instance_type):
        yield why, "relaunch deploy CapacityProviders=..., without it"
    if managed.instance_types != (offer.instance_type,):
        shown = ", ".join(managed.instance_types) or "no instance type"
        yield (
            f"it allows {shown}, and CapacityProviders says {offer.instance_type}: jobs may wait for one that it does "
            "not start",
            f"set allowedInstanceTypes of its instanceRequirements to [{offer.instance_type}], so that no other starts",
        )
    yield from purchase_problems(offer, managed.purchase, "capacity option type")
    yield from disk_problems(offer, managed.disk_gib, "its data volume")


def _scaling_problems(offer: CapacityProviderOffer, facts: ProviderFacts) -> Iterator[tuple[str, str]]:
    update = f"aws ecs update-capacity-provider --name {offer.name} --auto-scaling-group-provider"
    if not facts.has_managed_scaling:
        yield "managed scaling is off: no instance is ever started", f"{update} 'managedScaling={{status=ENABLED}}'"
    if facts.group is None:
        yield "its Auto Scaling group does not exist", "make the capacity provider again, with a group that exists"
        return
    yield from group_problems(offer, facts.group)
    scale_in = "scale-in ends instances with tasks on them"
    if not facts.has_termination_protection:
        # Managed termination protection needs the group's scale-in protection, which ECS refuses it without.
        yield (
            f"managed termination protection is off: {scale_in}",
            f"{_protect(facts.group.name)} && {update} managedTerminationProtection=ENABLED",
        )
    elif GroupRisk.UNPROTECTED in facts.group.risks:
        yield f"the group does not protect new instances, so that {scale_in}", _protect(facts.group.name)


def _protect(group: str) -> str:
    update = "aws autoscaling update-auto-scaling-group --auto-scaling-group-name"
    return f"{update} {group} --new-instances-protected-from-scale-in"


def _put(name: str, cluster: ClusterFacts) -> str:
    """Return the command that adds a provider; the call replaces the whole list, and the default strategy."""
    # It refuses those of Managed Instances, which are of the cluster without it (terraform-provider-aws#44783).
    providers = " ".join(dict.fromkeys([*cluster.providers, name]))
    strategy = shlex.quote(json.dumps([dict(each) for each in cluster.strategy]))
    return (
        f"aws ecs put-cluster-capacity-providers --cluster {cluster.name} --capacity-providers {providers} "
        f"--default-capacity-provider-strategy {strategy}"
    )
