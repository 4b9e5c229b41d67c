"""Capacity providers: a stack each, and beside the others in the list of the cluster."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.aws import aws_in_process, make_client
from fakes.stacks import FakeStacks
from relaunch_cli.deployment.capacity_providers import ProviderStacks, find_provider_stacks, read_providers
from relaunch_cli.deployment.change_set import ChangeSets
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.source import find_source

PARAMETERS = {"ClusterName": "training", "MachineSubnets": "us-east-1a=subnet-0a,us-east-1b=subnet-0b"}
PROFILE = "arn:aws:iam::111122223333:instance-profile/relaunch/machines"


class FakeEcs:
    """A cluster's list of capacity providers; the next `busy` changes of it are refused."""

    def __init__(self, *present: str) -> None:
        self.present = list(present)
        self.strategy = [{"capacityProvider": each, "weight": 1} for each in present[:1]]
        self.busy = 0
        self.code = "UpdateInProgressException"
        self.message = "later"

    def describe_clusters(self, **request: Any) -> dict[str, Any]:
        assert request == {"clusters": ["training"]}
        return {"clusters": [{"capacityProviders": self.present, "defaultCapacityProviderStrategy": self.strategy}]}

    def describe_capacity_providers(self, **request: Any) -> dict[str, Any]:
        managed = [{"name": each, "managedInstancesProvider": {}} for each in request["capacityProviders"]]
        shown = ("managed",) if "cluster" in request else ("managed-shown",)
        return {"capacityProviders": [each for each in managed[:10] if each["name"].startswith(shown)]}

    def put_cluster_capacity_providers(self, **request: Any) -> None:
        assert not any(each.startswith("managed") for each in request["capacityProviders"]), "refused by this API"
        if self.busy:
            self.busy -= 1
            raise ClientError({"Error": {"Code": self.code, "Message": self.message}}, "PutClusterCapacityProviders")
        self.present = list(request["capacityProviders"])
        self.strategy = request["defaultCapacityProviderStrategy"]


@pytest.fixture
def stacks() -> FakeStacks:
    stacks = FakeStacks()
    stacks.have("relaunch-machines")
    stacks.stacks["relaunch-machines"].template = "machines"
    stacks.more_outputs = {
        "relaunch-machines": {"SecurityGroupId": "sg-0a", "InstanceProfileArn": PROFILE},
        "relaunch-g5-xlarge-spot": {"CapacityProvider": "relaunch-g5-xlarge-spot=g5.xlarge/spot/100GiB"},
    }
    return stacks


def provider_stacks(stacks: FakeStacks, ecs: Any) -> ProviderStacks:
    change_sets = ChangeSets(stacks, lambda _: True, lambda _: None, lambda _: None)
    return ProviderStacks("relaunch", "template", ecs, change_sets, lambda _: None)


def test_a_provider_is_a_stack_with_what_machines_have(stacks: FakeStacks) -> None:
    ecs = FakeEcs("mine", "managed-shown", "managed-hidden")
    parameters = provider_stacks(stacks, ecs).deploy(
        read_providers("g5.xlarge/spot:4"), PARAMETERS, {"CapacityProviders": "a=g4dn.xlarge/spot"}
    )

    made = stacks.stacks["relaunch-g5-xlarge-spot"].parameters
    assert made == {
        "ProviderName": "relaunch-g5-xlarge-spot",
        "ClusterName": "training",
        "InstanceType": "g5.xlarge",
        "Purchase": "spot",
        "MaxSize": "4",
        "Subnets": "subnet-0a,subnet-0b",
        "Zones": "@a+b",
        "SecurityGroupId": "sg-0a",
        "InstanceProfileArn": PROFILE,
        "ImageId": "resolve:ssm:/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended/image_id",
        "DiskGiB": "100",
    }
    assert parameters["CapacityProviders"] == "a=g4dn.xlarge/spot,relaunch-g5-xlarge-spot=g5.xlarge/spot/100GiB"
    assert ecs.present == ["mine", "relaunch-g5-xlarge-spot"]
    assert ecs.strategy == [{"capacityProvider": "mine", "weight": 1}]


@pytest.mark.parametrize("stack", ["aws-training", "ecs-ml", "Fargate-x"])
def test_a_stack_whose_name_ecs_keeps_for_itself_has_providers_of_another_name(stack: str, stacks: FakeStacks) -> None:
    """ECS takes no capacity provider whose name begins with `aws`, `ecs` or `fargate`."""
    name = f"{stack}-g5-xlarge-spot"
    stacks.stacks[f"{stack}-machines"] = stacks.stacks["relaunch-machines"]
    stacks.more_outputs |= {
        f"{stack}-machines": stacks.more_outputs["relaunch-machines"],
        name: {"CapacityProvider": f"relaunch-{name}=g5.xlarge/spot/100GiB"},
    }
    ecs = FakeEcs()
    deploying = replace(provider_stacks(stacks, ecs), stack=stack)
    parameters = deploying.deploy(read_providers("g5.xlarge/spot"), PARAMETERS, {})

    made = stacks.stacks[name].parameters["ProviderName"]
    assert made == f"relaunch-{name}"
    (pattern,) = re.findall(r"AllowedPattern: ([(][?]!aws.*)", find_source().capacity_provider)
    assert re.fullmatch(pattern, made)
    assert ecs.present == [made]
    assert parameters["CapacityProviders"] == f"{made}=g5.xlarge/spot/100GiB"
    assert [each.name for each in find_provider_stacks(stack, stacks)] == [name]


def test_a_cluster_that_is_not_there_is_told() -> None:
    ecs = FakeEcs()
    ecs.describe_clusters = lambda **_: {"clusters": []}  # type: ignore[method-assign]
    with pytest.raises(RefusedError, match="there is no cluster training"):
        provider_stacks(FakeStacks(), ecs).associate("training", ["new"], ())


def test_again_nothing_is_doubled(stacks: FakeStacks) -> None:
    ecs = FakeEcs()
    deploying = provider_stacks(stacks, ecs)
    first = deploying.deploy(read_providers("g5.xlarge/spot:4"), PARAMETERS, {})

    assert deploying.deploy(read_providers("g5.xlarge/spot:4"), PARAMETERS, first) == first
    assert ecs.present == ["relaunch-g5-xlarge-spot"]


def test_neuron_has_an_image_of_its_own() -> None:
    (wanted,) = read_providers("trn1.2xlarge/on-demand")

    assert "/neuron/" in wanted.image_parameter
    assert wanted.most == 1


def test_tags_of_machines_are_in_the_template(stacks: FakeStacks) -> None:
    deploying = replace(provider_stacks(stacks, FakeEcs()), template=find_source().capacity_provider)
    kept = deploying.deploy(read_providers("g5.xlarge/spot"), {}, {**PARAMETERS, "MachineTags": "team=vision"})

    assert kept["MachineTags"] == "team=vision"

    made = stacks.stacks["relaunch-g5-xlarge-spot"].template
    assert made.count('{"Key": "team", "Value": "vision"') == 3
    with pytest.raises(RefusedError, match="MachineTags: team has two values"):
        deploying.deploy(read_providers("g5.xlarge/spot"), {**PARAMETERS, "MachineTags": "team=a,team=b"}, {})


def test_without_the_stack_of_machines_there_is_no_role(stacks: FakeStacks) -> None:
    del stacks.stacks["relaunch-machines"]
    with pytest.raises(RefusedError, match="needs the stack relaunch-machines"):
        provider_stacks(stacks, FakeEcs()).deploy(read_providers("g5.xlarge/spot"), PARAMETERS, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("g5.xlarge", "'g5.xlarge' is no capacity provider, for example Providers=g5.xlarge/spot:4"),
        ("g5.xlarge/spot:0", "is no capacity provider"),
        ("g5.xlarge/cheap", "is no capacity provider"),
        ("g5.xlage/spot", "there is no accelerated instance type 'g5.xlage': did you mean g5.xlarge"),
        ("g5g.xlarge/spot", "g5g.xlarge: ECS-optimized GPU images are for x86_64 only"),
        ("g5.xlarge/spot:1,g5.xlarge/spot:2", "names a type twice"),
    ],
)
def test_what_cannot_be_made_is_refused(text: str, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        read_providers(text)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("UpdateInProgressException", "later"),
        (
            "InvalidParameterException",
            "The specified capacity provider 'new' is not in an ACTIVE state. Specify a valid",
        ),
        ("ClientException", "Cluster was not ACTIVE."),
    ],
)
def test_a_cluster_that_is_being_changed_is_tried_again(code: str, message: str) -> None:
    ecs = FakeEcs("mine")
    ecs.busy = 3
    ecs.code = code
    ecs.message = message
    provider_stacks(FakeStacks(), ecs).associate("training", ["new"], ["mine"])

    assert ecs.present == ["new"]
    assert ecs.strategy == []


def test_one_that_is_always_being_changed_is_told() -> None:
    ecs = FakeEcs("mine")
    ecs.busy = 100
    with pytest.raises(RefusedError, match="the capacity providers of the cluster training are being changed"):
        provider_stacks(FakeStacks(), ecs).associate("training", ["new"], ())


def test_another_error_is_not_tried_again() -> None:
    ecs = FakeEcs("mine")
    ecs.busy, ecs.code = 1, "AccessDeniedException"
    with pytest.raises(ClientError, match="AccessDenied"):
        provider_stacks(FakeStacks(), ecs).associate("training", ["new"], ())


class TestOnTheModelOfEcs:
    @pytest.fixture
    def ecs(self) -> Iterator[Any]:
        with aws_in_process():
            ecs = make_client("ecs")
            ecs.create_cluster(clusterName="training")
            yield ecs

    def test_a_list_without_changes_is_not_written(self, ecs: Any) -> None:
        provider_stacks(FakeStacks(), ecs).associate("training", (), ("gone",))

        (found,) = ecs.describe_clusters(clusters=["training"])["clusters"]
        assert found.get("capacityProviders") in ([], None)
