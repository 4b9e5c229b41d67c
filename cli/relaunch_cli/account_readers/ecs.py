"""Reads the stack, its ECS cluster and the capacity providers that it names."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from relaunch.core.checks import Check
from relaunch.ports import CapacityProviderOffer
from relaunch_cli.account_checks.capacity_providers import GroupFacts, ProviderFacts, check_capacity_provider
from relaunch_cli.account_checks.stack import check_cluster, check_stack
from relaunch_cli.account_readers.calls import AccountCalls, known

_INACTIVE = "INACTIVE"


def read_stack(name: str, calls: AccountCalls) -> Mapping[str, Any] | None:
    """Return a stack as CloudFormation describes it; None if there is none.

    Raises:
        UnreadError: it cannot be read.
    """
    # CloudFormation answers ValidationError for a stack that is not there (DescribeStacks, "Errors").
    answer = calls.call("cloudformation", "describe_stacks", "ValidationError", StackName=name)
    return answer["Stacks"][0] if answer else None


def check_application(name: str, calls: AccountCalls) -> Iterator[Check]:
    """Check the application's stack.

    Raises:
        UnreadError: it cannot be read.
    """
    stack = read_stack(name, calls)
    yield check_stack(name, str(stack["StackStatus"]) if stack else None)


def check_ecs_cluster(name: str, calls: AccountCalls) -> Iterator[Check]:
    """Check the cluster.

    Raises:
        UnreadError: it cannot be read.
    """
    cluster = _read_cluster(name, calls)
    yield check_cluster(name, str(cluster["status"]) if cluster else None)


def _read_cluster(name: str, calls: AccountCalls) -> Mapping[str, Any] | None:
    # A cluster that does not exist is in `failures` (DescribeClusters, API Reference).
    clusters = calls.call("ecs", "describe_clusters", clusters=[name])["clusters"]
    return clusters[0] if clusters else None


def check_providers(offers: Iterable[CapacityProviderOffer], cluster: str, calls: AccountCalls) -> Iterator[Check]:
    """Check the capacity providers of the parameter CapacityProviders.

    Raises:
        UnreadError: the cluster, or its providers, cannot be read.
    """
    offers = tuple(offers)
    if not offers:
        return
    named = [each.name for each in offers]
    # DescribeCapacityProviders takes 100, and a cluster has 20 at most; those that do not exist are in `failures`.
    answer = calls.call("ecs", "describe_capacity_providers", capacityProviders=sorted(set(named)))
    described = {each["name"]: each for each in answer["capacityProviders"]}
    of_cluster = (_read_cluster(cluster, calls) or {}).get("capacityProviders", ())
    for offer in offers:
        yield known(
            f"capacity provider {offer.name}",
            partial(_check_provider, offer, described.get(offer.name), of_cluster, cluster, calls),
        )


def _check_provider(
    offer: CapacityProviderOffer,
    provider: Mapping[str, Any] | None,
    of_cluster: Iterable[str],
    cluster: str,
    calls: AccountCalls,
) -> Check:
    return check_capacity_provider(offer, _facts(provider, of_cluster, calls), cluster)


def groups_of(offers: Iterable[CapacityProviderOffer], calls: AccountCalls) -> list[str]:
    """Return the names of the providers' Auto Scaling groups.

    Raises:
        UnreadError: the providers cannot be read.
    """
    named = sorted({each.name for each in offers if not each.is_managed})
    if not named:
        return []
    found = calls.call("ecs", "describe_capacity_providers", capacityProviders=named)["capacityProviders"]
    return [name for each in found if (name := _group_name(each))]


def _group_name(provider: Mapping[str, Any]) -> str:
    arn = provider.get("autoScalingGroupProvider", {}).get("autoScalingGroupArn", "")
    # The API takes the name in place of the ARN, too (AutoScalingGroupProvider, API Reference).
    return str(arn).rpartition("autoScalingGroupName/")[2]


def _facts(provider: Mapping[str, Any] | None, of_cluster: Iterable[str], calls: AccountCalls) -> ProviderFacts | None:
    if provider is None:
        return None
    settings = provider.get("autoScalingGroupProvider", {})
    name = _group_name(provider)
    return ProviderFacts(
        is_active=provider.get("status") != _INACTIVE,
        is_in_cluster=provider["name"] in of_cluster,
        has_managed_scaling=settings.get("managedScaling", {}).get("status") == "ENABLED",
        has_termination_protection=settings.get("managedTerminationProtection") == "ENABLED",
        group=_read_group(name, calls) if name else None,
    )


def _read_group(name: str, calls: AccountCalls) -> GroupFacts | None:
    operation = "describe_auto_scaling_groups"
    found = calls.call("autoscaling", operation, AutoScalingGroupNames=[name])["AutoScalingGroups"]
    if not found:
        return None
    group = found[0]
    return GroupFacts(
        name,
        max_size=int(group["MaxSize"]),
        protects_new=bool(group.get("NewInstancesProtectedFromScaleIn")),
        instance_types=_instance_types(group, calls),
    )


def _instance_types(group: Mapping[str, Any], calls: AccountCalls) -> tuple[str, ...]:
    """Return the types that a group starts; of a launch configuration, or of requirements alone, they are not known."""
    mixed = group.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {})
    overrides = sorted({each["InstanceType"] for each in mixed.get("Overrides", ()) if each.get("InstanceType")})
    if overrides:
        return tuple(overrides)
    template = group.get("LaunchTemplate") or mixed.get("LaunchTemplateSpecification")
    if not template:
        return ()
    identity = {key: template[key] for key in ("LaunchTemplateId",) if template.get(key)} or {
        "LaunchTemplateName": template["LaunchTemplateName"]
    }
    version = str(template.get("Version") or "$Default")
    answer = calls.call("ec2", "describe_launch_template_versions", **identity, Versions=[version])
    types = [each["LaunchTemplateData"].get("InstanceType") for each in answer["LaunchTemplateVersions"]]
    return tuple(str(each) for each in types if each)
