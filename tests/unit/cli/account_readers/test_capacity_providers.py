"""What is read of capacity providers, of an account that answers in pages and hides some without their cluster."""

import base64
from typing import Any

import pytest

from fakes.builders import NOW
from relaunch.core.checks import Check, Verdict
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.ports import CapacityProviderOffer
from relaunch_cli.account_readers.capacity_providers import check_providers, groups_of

SPOT = CapacityProviderOffer("g5", "g5.xlarge", PurchaseOption.SPOT)
ROOT = "/dev/xvda"


def over_group(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "status": "ACTIVE",
        "autoScalingGroupProvider": {
            "autoScalingGroupArn": f"arn:aws:autoscaling:us-east-1:1:autoScalingGroup:x:autoScalingGroupName/{name}",
            "managedScaling": {"status": "ENABLED"},
            "managedTerminationProtection": "ENABLED",
        },
    }


def managed(name: str, cluster: str = "training", **template: Any) -> dict[str, Any]:
    allowed = {"instanceRequirements": {"allowedInstanceTypes": ["g5.xlarge"]}, "capacityOptionType": "SPOT"}
    return {
        "name": name,
        "status": "ACTIVE",
        "cluster": cluster,
        "managedInstancesProvider": {"instanceLaunchTemplate": {**allowed, **template}},
    }


class Account:
    """Answers as AWS does; `group` and `template` are those of every group."""

    def __init__(self, *providers: dict[str, Any], listed: tuple[str, ...] = ("g5",), **group: Any) -> None:
        self.providers = {each["name"]: each for each in providers}
        self.listed = listed
        self.strategy = [{"capacityProvider": "others", "weight": 1}]
        self.template: dict[str, Any] = {
            "InstanceType": "g5.xlarge",
            "ImageId": "ami-0a",
            "InstanceMarketOptions": {"MarketType": "spot"},
        }
        self.group = {
            "MinSize": 0,
            "MaxSize": 4,
            "NewInstancesProtectedFromScaleIn": True,
            "AvailabilityZones": ["us-east-1a", "us-east-1b"],
            "LaunchTemplate": {"LaunchTemplateId": "lt-0a", "Version": "1"},
            **group,
        }

    def call(self, service: str, operation: str, *missing: str, **parameters: Any) -> dict[str, Any]:
        return getattr(self, operation)(**parameters)

    def describe_clusters(self, clusters: list[str]) -> dict[str, Any]:
        found = {"capacityProviders": list(self.listed), "defaultCapacityProviderStrategy": self.strategy}
        return {"clusters": [{"clusterName": name, **found} for name in clusters]}

    def describe_capacity_providers(self, **request: Any) -> dict[str, Any]:
        found = [self.providers[name] for name in request["capacityProviders"] if name in self.providers]
        is_of_cluster = "cluster" in request
        found = [
            each for each in found if is_of_cluster or "managedInstancesProvider" not in each or each["name"] in LISTED
        ]
        start = int(request.get("nextToken", "0"))
        token = {"nextToken": str(start + 2)} if len(found) > start + 2 else {}
        return {"capacityProviders": found[start : start + 2], **token}

    def describe_auto_scaling_groups(self, **_: Any) -> dict[str, Any]:
        return {"AutoScalingGroups": [self.group]}

    def describe_launch_template_versions(self, **_: Any) -> dict[str, Any]:
        return {"LaunchTemplateVersions": [{"LaunchTemplateData": self.template}]}

    def describe_images(self, **_: Any) -> dict[str, Any]:
        root = {"DeviceName": ROOT, "Ebs": {"VolumeSize": 30}}
        return {"Images": [{"RootDeviceName": ROOT, "BlockDeviceMappings": [root]}]}

    def check(self, *offers: CapacityProviderOffer) -> list[Check]:
        calls: Any = self
        return list(check_providers(offers, "training", NOW, calls))


LISTED = ("shown",)
"""Those of Managed Instances that are answered without their cluster."""


def named(*names: str) -> list[CapacityProviderOffer]:
    return [CapacityProviderOffer(name, "g5.xlarge", PurchaseOption.SPOT) for name in names]


def test_more_than_a_page_of_providers_is_read() -> None:
    names = [f"p{number:02}" for number in range(14)]
    account = Account(*map(over_group, names), listed=tuple(names))
    calls: Any = account

    assert [each.verdict for each in account.check(*named(*names))] == [Verdict.OK] * 14
    assert groups_of(named(*names), "training", calls) == names


def test_managed_instances_are_found_by_their_cluster_and_need_no_association() -> None:
    offer = CapacityProviderOffer("mi", "g5.xlarge", PurchaseOption.SPOT, is_managed=True)

    assert Account(managed("mi")).check(offer)[0].verdict is Verdict.OK
    (elsewhere,) = Account(managed("mi", cluster="arn:aws:ecs:us-east-1:1:cluster/other")).check(offer)
    assert elsewhere.text == "it belongs to another cluster than training: RunTask refuses it"


def test_the_kind_of_a_provider_is_compared() -> None:
    as_managed = CapacityProviderOffer("g5", "p5.48xlarge", PurchaseOption.ON_DEMAND, is_managed=True)

    (group,) = Account(over_group("g5")).check(as_managed)
    (instances,) = Account(managed("g5")).check(SPOT)

    assert group.text == "it has an Auto Scaling group, and CapacityProviders says otherwise"
    assert instances.to_do == "relaunch deploy CapacityProviders=g5=g5.xlarge/spot/managed-instances,..."


def test_what_managed_instances_start_is_compared() -> None:
    offer = CapacityProviderOffer("mi", "g5.xlarge", PurchaseOption.SPOT, is_managed=True, disk_gib=200)
    template = {"capacityOptionType": "ON_DEMAND", "storageConfiguration": {"storageSizeGiB": 80}}

    (check,) = Account(managed("mi", **template, instanceRequirements={})).check(offer)

    assert "it allows no instance type" in check.text
    assert "its capacity option type buys on-demand" in check.text
    assert "its data volume has 80 GiB" in check.text


def test_the_command_that_adds_a_provider_keeps_the_others_and_the_default_strategy() -> None:
    providers = (over_group("g5"), over_group("others"), managed("shown"), managed("hidden"))
    account = Account(*providers, listed=("others", "shown", "hidden"))

    (check,) = account.check(SPOT)

    assert check.to_do == (
        "aws ecs put-cluster-capacity-providers --cluster training --capacity-providers others g5 "
        """--default-capacity-provider-strategy '[{"capacityProvider": "others", "weight": 1}]'"""
    )


DISTRIBUTION = {"LaunchTemplate": {"LaunchTemplateSpecification": {"LaunchTemplateName": "g5"}}}


@pytest.mark.parametrize(
    ("group", "template", "text", "to_do"),
    [
        pytest.param(
            {},
            {"InstanceMarketOptions": {}},
            "its group buys on-demand, and CapacityProviders says spot",
            "relaunch deploy CapacityProviders=g5=g5.xlarge/on-demand/200GiB@a+b,...",
            id="on-demand",
        ),
        pytest.param(
            {"LaunchTemplate": {}, "MixedInstancesPolicy": DISTRIBUTION},
            {},
            "its group buys on-demand",
            "",
            id="default",
        ),
        pytest.param(
            {
                "LaunchTemplate": {},
                "MixedInstancesPolicy": {
                    **DISTRIBUTION,
                    "InstancesDistribution": {"OnDemandBaseCapacity": 1, "OnDemandPercentageAboveBaseCapacity": 0},
                },
            },
            {},
            "its group buys spot and on-demand",
            "one capacity provider for spot and one for on-demand",
            id="both",
        ),
        pytest.param(
            {},
            {"BlockDeviceMappings": []},
            "the root volume of its group has 30 GiB, and CapacityProviders says 200",
            "CapacityProviders=g5=g5.xlarge/spot/30GiB@a+b",
            id="disk-of-the-image",
        ),
        pytest.param({"MinSize": 2}, {}, "keeps 2 machines without a task", "--min-size 0", id="minimum"),
        pytest.param(
            {"SuspendedProcesses": [{"ProcessName": "Launch"}, {"ProcessName": "AZRebalance"}]},
            {},
            "no instance is ever started",
            "resume-processes --auto-scaling-group-name g5 --scaling-processes Launch",
            id="suspended",
        ),
        pytest.param(
            {"CapacityRebalance": True}, {}, "capacity rebalancing", "--no-capacity-rebalance", id="rebalancing"
        ),
        pytest.param(
            {"WarmPoolConfiguration": {"MinSize": 1}}, {}, "warm pool", "ECS_WARM_POOLS_CHECK=true", id="warm-pool"
        ),
        pytest.param(
            {"AvailabilityZones": ["us-east-1a", "us-east-1f"]},
            {},
            "its group uses the zones a, f, and CapacityProviders says a, b",
            "CapacityProviders=g5=g5.xlarge/spot/200GiB@a+f",
            id="zones",
        ),
    ],
)
def test_what_costs_most_in_a_group_is_named(
    group: dict[str, Any], template: dict[str, Any], text: str, to_do: str
) -> None:
    offer = CapacityProviderOffer("g5", "g5.xlarge", PurchaseOption.SPOT, disk_gib=200, zones=("a", "b"))
    account = Account(over_group("g5"), **group)
    account.template |= {"BlockDeviceMappings": [{"DeviceName": ROOT, "Ebs": {"VolumeSize": 200}}], **template}

    (check,) = account.check(offer)

    assert text in check.text
    assert "; " not in check.text
    assert to_do in check.to_do


def test_what_holds_or_cannot_be_known_is_not_blamed() -> None:
    reserved = CapacityProviderOffer("g5", "g5.xlarge", PurchaseOption.RESERVED)
    keeps = Account(over_group("g5"), MinSize=1, WarmPoolConfiguration={})
    keeps.template["InstanceMarketOptions"] = {"MarketType": "capacity-block"}
    configured = Account(over_group("g5"), LaunchTemplate={})
    warm = Account(over_group("g5"), WarmPoolConfiguration={"MinSize": 1})
    warm.template["UserData"] = base64.b64encode(b"echo ECS_WARM_POOLS_CHECK=true >>/etc/ecs/ecs.config").decode()

    assert [keeps.check(reserved)[0].text, configured.check(SPOT)[0].text, warm.check(SPOT)[0].text] == [
        "in training, g5.xlarge"
    ] * 3
