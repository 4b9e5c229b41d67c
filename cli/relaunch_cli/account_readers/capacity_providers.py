"""Reads the capacity providers that the stack names, and their Auto Scaling groups."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from relaunch.core.checks import Check
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.ports import CapacityProviderOffer
from relaunch_cli.account_checks.auto_scaling_groups import MIXED, GroupFacts, GroupRisk
from relaunch_cli.account_checks.capacity_providers import (
    ClusterFacts,
    ManagedFacts,
    ProviderFacts,
    check_capacity_provider,
)
from relaunch_cli.account_readers.calls import AccountCalls, known
from relaunch_cli.account_readers.ecs import read_cluster
from relaunch_cli.account_readers.machines import read_image

_INACTIVE = "INACTIVE"
_MANAGED = "managedInstancesProvider"
_OPTIONS = {"ON_DEMAND": "on-demand", "SPOT": "spot", "RESERVED": "reserved"}
_MARKETS = {"spot": PurchaseOption.SPOT.value, "capacity-block": PurchaseOption.RESERVED.value}


def check_providers(
    offers: Iterable[CapacityProviderOffer], cluster: str, now: datetime, calls: AccountCalls
) -> Iterator[Check]:
    """Check the capacity providers of the parameter CapacityProviders.

    Raises:
        UnreadError: the cluster, or its providers, cannot be read.
    """
    offers = tuple(offers)
    if not offers:
        return
    described = _described((each.name for each in offers), cluster, calls)
    found = read_cluster(cluster, calls) or {}
    facts = ClusterFacts(
        cluster,
        tuple(found.get("capacityProviders", ())),
        tuple(found.get("defaultCapacityProviderStrategy", ())),
    )
    for offer in offers:
        yield known(
            f"capacity provider {offer.name}",
            partial(_check_provider, offer, described.get(offer.name), facts, now, calls),
        )


def groups_of(offers: Iterable[CapacityProviderOffer], cluster: str, calls: AccountCalls) -> list[str]:
    """Return the names of the providers' Auto Scaling groups.

    Raises:
        UnreadError: the providers cannot be read.
    """
    described = _described((each.name for each in offers if not each.is_managed), cluster, calls)
    return [name for each in described.values() if (name := _group_name(each))]


def _described(names: Iterable[str], cluster: str, calls: AccountCalls) -> dict[str, Mapping[str, Any]]:
    """Return providers by name, without those that do not exist.

    Those of ECS Managed Instances are certain to be among them only if their cluster is named, with which others of no
    cluster are left out (`cluster` of DescribeCapacityProviders, API Reference).
    """
    wanted = sorted(set(names))
    found = {each["name"]: each for each in _pages(wanted, calls)}
    missing = [name for name in wanted if name not in found]
    return found | {each["name"]: each for each in _pages(missing, calls, cluster=cluster)}


def _pages(names: list[str], calls: AccountCalls, **more: str) -> Iterator[Mapping[str, Any]]:
    """Yield providers; AWS answers ten a page, also of those that are named, and at most 100 may be."""
    for start in range(0, len(names), 10):
        token: str | None = None
        while True:
            page = {"nextToken": token} if token else {}
            answer = calls.call(
                "ecs", "describe_capacity_providers", capacityProviders=names[start : start + 10], **more, **page
            )
            yield from answer["capacityProviders"]
            previous, token = token, answer.get("nextToken")
            if not token or token == previous:
                break


def _check_provider(
    offer: CapacityProviderOffer,
    provider: Mapping[str, Any] | None,
    cluster: ClusterFacts,
    now: datetime,
    calls: AccountCalls,
) -> Check:
    facts = _facts(offer, provider, cluster, calls)
    if facts is not None and not facts.is_in_cluster:
        described = _described(cluster.providers, cluster.name, calls)
        managed = {name for name, each in described.items() if _MANAGED in each}
        kept = tuple(each for each in cluster.providers if each not in managed)
        cluster = ClusterFacts(cluster.name, kept, cluster.strategy)
    return check_capacity_provider(offer, facts, cluster, now)


def _facts(
    offer: CapacityProviderOffer, provider: Mapping[str, Any] | None, cluster: ClusterFacts, calls: AccountCalls
) -> ProviderFacts | None:
    if provider is None:
        return None
    is_active = provider.get("status") != _INACTIVE
    is_listed = provider["name"] in cluster.providers
    if _MANAGED in provider:
        # Its cluster is a name or an ARN.
        is_of_it = str(provider.get("cluster", cluster.name)).rpartition("/")[2] == cluster.name
        return ProviderFacts(is_active, is_listed or is_of_it, managed=_managed_facts(provider[_MANAGED]))
    settings = provider.get("autoScalingGroupProvider", {})
    name = _group_name(provider)
    return ProviderFacts(
        is_active,
        is_listed,
        has_managed_scaling=settings.get("managedScaling", {}).get("status") == "ENABLED",
        has_termination_protection=settings.get("managedTerminationProtection") == "ENABLED",
        group=_read_group(name, offer, calls) if name else None,
    )


def _managed_facts(settings: Mapping[str, Any]) -> ManagedFacts:
    template = settings.get("instanceLaunchTemplate", {})
    size = template.get("storageConfiguration", {}).get("storageSizeGiB")
    return ManagedFacts(
        tuple(sorted(template.get("instanceRequirements", {}).get("allowedInstanceTypes", ()))),
        _OPTIONS.get(template.get("capacityOptionType", "ON_DEMAND"), ""),
        int(size) if size else None,
    )


def _group_name(provider: Mapping[str, Any]) -> str:
    arn = provider.get("autoScalingGroupProvider", {}).get("autoScalingGroupArn", "")
    # The API takes the name in place of the ARN, too (AutoScalingGroupProvider, API Reference).
    return str(arn).rpartition("autoScalingGroupName/")[2]


def _read_group(name: str, offer: CapacityProviderOffer, calls: AccountCalls) -> GroupFacts | None:
    operation = "describe_auto_scaling_groups"
    found = calls.call("autoscaling", operation, AutoScalingGroupNames=[name])["AutoScalingGroups"]
    if not found:
        return None
    group = found[0]
    template = _read_template(group, calls)
    return GroupFacts(
        name,
        min_size=int(group["MinSize"]),
        max_size=int(group["MaxSize"]),
        instance_types=_instance_types(group, template),
        purchase=_purchase(group, template),
        disk_gib=_disk_gib(template, calls) if offer.disk_gib else None,
        zones=tuple(group.get("AvailabilityZones", ())),
        suspended=tuple(each["ProcessName"] for each in group.get("SuspendedProcesses", ())),
        risks=frozenset(_risks(group, template)),
    )


def _read_template(group: Mapping[str, Any], calls: AccountCalls) -> Mapping[str, Any] | None:
    """Return the data of a group's launch template; None if it has a launch configuration."""
    mixed = group.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {})
    template = group.get("LaunchTemplate") or mixed.get("LaunchTemplateSpecification")
    if not template:
        return None
    identity = {key: template[key] for key in ("LaunchTemplateId",) if template.get(key)} or {
        "LaunchTemplateName": template["LaunchTemplateName"]
    }
    version = str(template.get("Version") or "$Default")
    answer = calls.call("ec2", "describe_launch_template_versions", **identity, Versions=[version])
    found = answer["LaunchTemplateVersions"]
    return found[0]["LaunchTemplateData"] if found else None


def _instance_types(group: Mapping[str, Any], template: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the types that a group starts; of a launch configuration, or of requirements alone, they are not known."""
    mixed = group.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {})
    overrides = sorted({each["InstanceType"] for each in mixed.get("Overrides", ()) if each.get("InstanceType")})
    name = (template or {}).get("InstanceType")
    return tuple(overrides) or ((str(name),) if name else ())


def _purchase(group: Mapping[str, Any], template: Mapping[str, Any] | None) -> str:
    """Return what a group buys: its distribution says it, else the market of its launch template."""
    if policy := group.get("MixedInstancesPolicy"):
        # By default all are on-demand (InstancesDistribution, EC2 Auto Scaling API Reference).
        distribution = policy.get("InstancesDistribution", {})
        share = distribution.get("OnDemandPercentageAboveBaseCapacity", 100)
        if share == 100:
            return PurchaseOption.ON_DEMAND.value
        return MIXED if share or distribution.get("OnDemandBaseCapacity") else PurchaseOption.SPOT.value
    if template is None:
        return ""
    market = template.get("InstanceMarketOptions", {}).get("MarketType")
    return _MARKETS.get(market, "") if market else PurchaseOption.ON_DEMAND.value


def _disk_gib(template: Mapping[str, Any] | None, calls: AccountCalls) -> int | None:
    """Return the size of the root volume: that of the launch template, else that of its image."""
    if template is None or not template.get("ImageId"):
        return None
    _, image = read_image(str(template["ImageId"]), calls)
    root = (image or {}).get("RootDeviceName")
    for mappings in (template.get("BlockDeviceMappings", ()), (image or {}).get("BlockDeviceMappings", ())):
        for each in mappings:
            size = each.get("Ebs", {}).get("VolumeSize")
            if each.get("DeviceName") == root and size:
                return int(size)
    return None


def _risks(group: Mapping[str, Any], template: Mapping[str, Any] | None) -> Iterator[GroupRisk]:
    if not group.get("NewInstancesProtectedFromScaleIn"):
        yield GroupRisk.UNPROTECTED
    if group.get("CapacityRebalance"):
        yield GroupRisk.REBALANCES
    if group.get("WarmPoolConfiguration") and not _checks_warm_pool(template):
        yield GroupRisk.WARM_POOL


def _checks_warm_pool(template: Mapping[str, Any] | None) -> bool:
    """Return whether the user data sets what keeps warm instances out of the cluster, also if it cannot be read."""
    try:
        return b"ECS_WARM_POOLS_CHECK=true" in base64.b64decode((template or {})["UserData"], validate=True)
    except (KeyError, binascii.Error, ValueError):
        return template is None or "UserData" in template
