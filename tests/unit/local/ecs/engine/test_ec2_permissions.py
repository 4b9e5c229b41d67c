from dataclasses import replace
from typing import Any

import pytest

from fakes.fleet_region import NEW, PROFILE, ROLE, FleetRegion, fleet_request, override
from relaunch_local.ecs import FleetFault, LaunchTemplate
from relaunch_local.iam.permission import Permission
from relaunch_local.iam.policies import PolicyAuthorizer

EC2 = "arn:aws:ec2:us-east-1:111122223333"
TEMPLATE = f"{EC2}:launch-template/lt-1"
CREATED = [f"{EC2}:{kind}/*" for kind in ("instance", "volume", "network-interface", "spot-instances-request")]
TAGS = [
    {"ResourceType": "instance", "Tags": [{"Key": "machine", "Value": "m-1"}]},
    {"ResourceType": "fleet", "Tags": [{"Key": "machine", "Value": "m-1"}]},
]


def allow(action: Any, resource: Any = "*", **condition: dict[str, Any]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, "Condition": condition}


CREATE = allow("ec2:CreateFleet", [f"{EC2}:fleet/*", f"{EC2}:instance/*", f"{EC2}:subnet/*", TEMPLATE])
RUN = allow("ec2:RunInstances", CREATED[:-1], ArnEquals={"ec2:LaunchTemplate": TEMPLATE})
RUN_FROM = allow("ec2:RunInstances", [TEMPLATE, f"{EC2}:subnet/subnet-a", f"{EC2}:subnet/subnet-b"])
RUN_GROUP = allow("ec2:RunInstances", f"{EC2}:security-group/*", Bool={"ec2:IsLaunchTemplateResource": "true"})
RUN_IMAGE = allow("ec2:RunInstances", "arn:aws:ec2:us-east-1::image/*", StringEquals={"ec2:Owner": "amazon"})
TAG = allow("ec2:CreateTags", "*", StringEquals={"ec2:CreateAction": ["CreateFleet", "RunInstances"]})
PASS = allow("iam:PassRole", ROLE, StringEquals={"iam:PassedToService": "ec2.amazonaws.com"})
RUN_SPOT = allow("ec2:RunInstances", CREATED[-1])
ALL = [CREATE, RUN, RUN_SPOT, RUN_FROM, RUN_GROUP, RUN_IMAGE, TAG, PASS]
DESCRIBE = allow("ec2:DescribeInstances")


def caller(*statements: dict[str, Any]) -> FleetRegion:
    return FleetRegion(authorize=PolicyAuthorizer({"AKIATEST": [{"Statement": list(statements)}]}))


@pytest.mark.parametrize("market", ["spot", "on-demand"])
def test_a_caller_with_just_its_permissions_may_launch(market: str) -> None:
    assert caller(*ALL).create(market=market, TagSpecifications=TAGS)["Instances"]


@pytest.mark.parametrize("missing", [RUN, RUN_FROM, RUN_GROUP, RUN_IMAGE, TAG, PASS])
def test_what_a_launch_lacks_is_among_the_errors(missing: dict[str, Any]) -> None:
    region = caller(*(each for each in ALL if each is not missing))

    assert region.refused() == ["UnauthorizedOperation"]
    assert region.simulator.instances.bill == []


def test_spot_needs_the_permission_for_spot_requests_and_on_demand_does_not() -> None:
    region = caller(*(each for each in ALL if each is not RUN_SPOT))

    assert region.refused(market="spot") == ["UnauthorizedOperation"]
    assert region.create()["Instances"]


def test_a_role_that_may_not_be_passed_is_beside_missing_capacity() -> None:
    region = caller(*(each for each in ALL if each is not PASS))
    region.simulator.fleets.faults.append(FleetFault("InsufficientInstanceCapacity", overrides=1))

    codes = region.refused(override(), override(subnet="subnet-b"))

    assert codes == ["InsufficientInstanceCapacity", "UnauthorizedOperation"]


@pytest.mark.parametrize(
    ("statements", "request_"),
    [
        pytest.param([each for each in ALL if each is not CREATE], {}, id="create-fleet"),
        pytest.param(
            [*ALL[1:], allow("ec2:CreateFleet", [f"{EC2}:fleet/*", f"{EC2}:instance/*", f"{EC2}:subnet/*"])],
            {},
            id="launch-template",
        ),
        pytest.param(
            [*ALL[1:], allow("ec2:CreateFleet", [f"{EC2}:fleet/*", f"{EC2}:subnet/*", TEMPLATE])], {}, id="instance"
        ),
        pytest.param(
            [*ALL[1:], allow("ec2:CreateFleet", [f"{EC2}:fleet/*", f"{EC2}:instance/*", TEMPLATE])], {}, id="subnet"
        ),
        pytest.param([each for each in ALL if each is not TAG], {"TagSpecifications": TAGS}, id="tags-of-the-fleet"),
    ],
)
def test_what_the_call_itself_lacks_is_raised(statements: list[dict[str, Any]], request_: dict[str, Any]) -> None:
    assert caller(*statements).raised("create_fleet", **fleet_request(**request_)) == "UnauthorizedOperation"


@pytest.mark.parametrize(
    ("parameter", "resource"),
    [
        ("/aws/service/ecs/image_id", "arn:aws:ssm:us-east-1::parameter/aws/service/ecs/image_id"),
        ("/our/image", "arn:aws:ssm:us-east-1:111122223333:parameter/our/image"),
    ],
)
def test_an_image_by_parameter_needs_the_callers_permission_to_read_it(parameter: str, resource: str) -> None:
    request = fleet_request(override(ImageId=f"resolve:ssm:{parameter}"))

    reading = [allow(action, resource) for action in ("ssm:GetParameter", "ssm:GetParameters")]

    for granted in ([], reading[:1], reading[1:]):
        assert caller(*ALL, *granted).raised("create_fleet", **request) == "SsmAccessDenied"
    assert caller(*ALL, *reading).ec2.create_fleet(**request)["Instances"]


def test_a_dry_run_passes_without_the_role() -> None:
    region = caller(*(each for each in ALL if each is not PASS))

    assert region.raised("create_fleet", **fleet_request(DryRun=True)) == "DryRunOperation"


def test_a_subnet_outside_the_policy_is_refused() -> None:
    region = caller(*ALL)

    assert region.refused(override(subnet="subnet-a2")) == ["UnauthorizedOperation"]


def test_every_permission_is_asked_for_with_what_a_policy_may_look_at() -> None:
    asked: dict[tuple[str, str], Permission] = {}

    def note(permission: Permission) -> bool:
        asked[permission.action, permission.resource] = permission
        return True

    FleetRegion(authorize=note).create(market="spot", TagSpecifications=TAGS)

    instance = asked["ec2:RunInstances", f"{EC2}:instance/*"].context
    assert instance["aws:RequestTag/machine"] == "m-1"
    assert (instance["ec2:InstanceProfile"], instance["ec2:InstanceMarketType"]) == (PROFILE, "spot")
    assert (instance["ec2:MetadataHttpTokens"], instance["ec2:LaunchTemplate"]) == ("required", TEMPLATE)
    template = asked["ec2:RunInstances", TEMPLATE].context
    assert not [key for key in template if key.startswith("aws:RequestTag/")]
    fleet = asked["ec2:CreateFleet", f"{EC2}:fleet/*"].context
    # None for every other tag: the request has no more.
    assert fleet == {"aws:RequestTag/machine": "m-1", "aws:RequestTag/": None, "aws:TagKeys": ("machine",)}
    assert asked["ec2:CreateTags", f"{EC2}:fleet/*"].context["ec2:CreateAction"] == "CreateFleet"
    assert asked["ec2:CreateTags", f"{EC2}:instance/*"].context["ec2:CreateAction"] == "RunInstances"
    assert asked["iam:PassRole", ROLE].context == {"iam:PassedToService": "ec2.amazonaws.com"}
    from_template = "ec2:IsLaunchTemplateResource"
    assert asked["ec2:RunInstances", f"{EC2}:subnet/subnet-a"].context[from_template] == "false"
    assert asked["ec2:RunInstances", f"{EC2}:security-group/*"].context[from_template] == "true"


def test_instances_are_terminated_by_their_tag_and_for_an_hour_after_their_end() -> None:
    by_tag = allow("ec2:TerminateInstances", f"{EC2}:instance/*", StringEquals={"ec2:ResourceTag/stack": "relaunch"})
    region = caller(*ALL, by_tag, DESCRIBE)
    own, living = region.ready(), region.ready()
    other = region.instance()
    assert region.raised("terminate_instances", InstanceIds=[own, other]) == "UnauthorizedOperation"
    assert region.state(own) == "running"

    region.ec2.terminate_instances(InstanceIds=[own])
    region.clock.advance(65 + 3_599)
    assert region.ec2.terminate_instances(InstanceIds=[own])["TerminatingInstances"]
    region.clock.advance(1)

    assert region.raised("terminate_instances", InstanceIds=[own, living]) == "UnauthorizedOperation"
    assert region.state(living) == "running"


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        (allow("ec2:TerminateInstances"), "InvalidInstanceID.NotFound"),
        (allow("ec2:DescribeInstances"), "UnauthorizedOperation"),
    ],
)
def test_whoever_may_terminate_anything_is_told_that_there_is_nothing(statement: dict[str, Any], code: str) -> None:
    region = caller(statement)

    assert region.raised("terminate_instances", InstanceIds=["i-0123456789abcdef0"]) == code


DISK_KEY = "arn:aws:kms:us-east-1:111122223333:key/d15c"
THROUGH_EC2 = {"kms:ViaService": "ec2.us-east-1.amazonaws.com"}
USES = ("Decrypt", "DescribeKey", "GenerateDataKeyWithoutPlaintext", "ReEncryptFrom", "ReEncryptTo")
USE_KEY = allow([f"kms:{name}" for name in USES], DISK_KEY, StringEquals=THROUGH_EC2)
GRANT = allow("kms:CreateGrant", DISK_KEY, StringEquals=THROUGH_EC2, Bool={"kms:GrantIsForAWSResource": "true"})


@pytest.mark.parametrize(
    ("statements", "state"),
    [
        pytest.param([USE_KEY, GRANT], "running", id="both"),
        pytest.param([USE_KEY], "terminated", id="no grant"),
        pytest.param([GRANT], "terminated", id="no use"),
        pytest.param([], "terminated", id="neither"),
    ],
)
def test_whoever_may_not_use_the_key_of_a_disk_gets_an_instance_that_ends_at_once(
    statements: list[dict[str, Any]], state: str
) -> None:
    encrypted = LaunchTemplate("lt-1", "hosts", (NEW, replace(NEW, disk_key_arn=DISK_KEY)))
    authorize = PolicyAuthorizer({"AKIATEST": [{"Statement": [*ALL, DESCRIBE, *statements]}]})
    region = FleetRegion(authorize=authorize, launch_templates=[encrypted])

    instance_id = region.launch()
    region.clock.advance(600.0)

    assert region.state(instance_id) == state
    if state == "terminated":
        reason = region.described(instance_id)["StateReason"]
        assert reason == {"Code": "Client.InternalError", "Message": "Client.InternalError: Client error on launch"}
