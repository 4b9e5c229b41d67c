"""The capacity providers that the stack names: whether they scale, and protect what runs.

Sources: "Amazon ECS cluster auto scaling" and "Amazon ECS managed termination protection" (Developer Guide).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from relaunch.core.checks import Check, is_ok, problem
from relaunch.ports import CapacityProviderOffer


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """An Auto Scaling group: its name, its instance types, and whether it protects new instances from scale-in."""

    name: str
    max_size: int
    protects_new: bool
    instance_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderFacts:
    """A capacity provider; `group` is None if its group is gone, or if it has ECS Managed Instances."""

    is_active: bool = True
    is_in_cluster: bool = True
    has_managed_scaling: bool = False
    has_termination_protection: bool = False
    group: GroupFacts | None = None


def check_capacity_provider(offer: CapacityProviderOffer, facts: ProviderFacts | None, cluster: str) -> Check:
    """Check a provider of the parameter CapacityProviders; without facts there is none."""
    name = f"capacity provider {offer.name}"
    found = list(_problems(offer, facts, cluster))
    if found:
        return problem(name, "; ".join(text for text, _ in found), "\n".join(to_do for _, to_do in found))
    return is_ok(name, f"in {cluster}, {offer.instance_type}")


def _problems(offer: CapacityProviderOffer, facts: ProviderFacts | None, cluster: str) -> Iterator[tuple[str, str]]:
    update = f"aws ecs update-capacity-provider --name {offer.name} --auto-scaling-group-provider"
    if facts is None or not facts.is_active:
        yield "it does not exist, and CapacityProviders names it", "relaunch deploy CapacityProviders=..., without it"
        return
    if not facts.is_in_cluster:
        yield f"it is not one of the cluster {cluster}: RunTask refuses it", _put(offer.name, cluster)
    if offer.is_managed:
        return
    if not facts.has_managed_scaling:
        yield "managed scaling is off: no instance is ever started", f"{update} 'managedScaling={{status=ENABLED}}'"
    if facts.group is None:
        yield "its Auto Scaling group does not exist", "make the capacity provider again, with a group that exists"
        return
    yield from _group_problems(offer, facts.group)
    scale_in = "scale-in ends instances with tasks on them"
    if not facts.has_termination_protection:
        # Managed termination protection needs the group's scale-in protection, which ECS refuses it without.
        yield (
            f"managed termination protection is off: {scale_in}",
            f"{_protect(facts.group.name)} && {update} managedTerminationProtection=ENABLED",
        )
    elif not facts.group.protects_new:
        yield f"the group does not protect new instances, so that {scale_in}", _protect(facts.group.name)


def _group_problems(offer: CapacityProviderOffer, group: GroupFacts) -> Iterator[tuple[str, str]]:
    update = f"aws autoscaling update-auto-scaling-group --auto-scaling-group-name {group.name}"
    if group.max_size < 1:
        yield "the maximum size of its group is 0", f"{update} --max-size 1"
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
            f"relaunch deploy CapacityProviders={offer.name}={has}/{offer.purchase},...",
        )


def _protect(group: str) -> str:
    update = "aws autoscaling update-auto-scaling-group --auto-scaling-group-name"
    return f"{update} {group} --new-instances-protected-from-scale-in"


def _put(name: str, cluster: str) -> str:
    # PutClusterCapacityProviders replaces the list (Amazon ECS API Reference).
    return (
        f"aws ecs put-cluster-capacity-providers --cluster {cluster} --default-capacity-provider-strategy [] "
        f"--capacity-providers {name} and those that the cluster has"
    )
