"""The requests that Ec2Fleet sends, and those that it does not."""

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.stub import Stubber

from fakes.builders import INSTANCE_ID
from fakes.fleet import MACHINE_ID, STACK, make_fleet_request, make_override
from fakes.unreachable_aws import UnreachableAws
from relaunch.adapters.aws.ec2.fleet import NOT_SENT, Ec2Fleet
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.events import FleetRefused, InstanceLaunched, RefusalKind
from relaunch.core.machines.machine import FleetRequest
from relaunch.core.machines.settings import IMAGE_TAG, JOB_TAG, MACHINE_TAG, STACK_TAG
from relaunch.core.offerings.offering import OfferingKey

SERVICE = "ec2"
ON_DEMAND = PurchaseOption.ON_DEMAND
TAGS = [
    {"Key": "relaunch:job", "Value": "resnet-1f2e3d4c"},
    {"Key": "relaunch:machine", "Value": MACHINE_ID},
    {"Key": "relaunch:stack", "Value": "relaunch-prod"},
]
SPOT_REQUEST: dict[str, Any] = {
    "Type": "instant",
    "ClientToken": f"relaunch-{MACHINE_ID}",
    "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "spot"},
    "SpotOptions": {"AllocationStrategy": "price-capacity-optimized"},
    "LaunchTemplateConfigs": [
        {
            "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-0123456789abcdef0", "Version": "7"},
            "Overrides": [
                {"InstanceType": "g6.xlarge", "SubnetId": "subnet-us-east-1a", "AvailabilityZone": "us-east-1a"},
                {"InstanceType": "g5.xlarge", "SubnetId": "subnet-us-east-1b", "AvailabilityZone": "us-east-1b"},
            ],
        }
    ],
    "TagSpecifications": [
        {"ResourceType": "instance", "Tags": TAGS},
        {"ResourceType": "volume", "Tags": TAGS},
        {"ResourceType": "fleet", "Tags": TAGS},
    ],
}
TIME_OUT = ReadTimeoutError(endpoint_url="http://127.0.0.1:9")
LAUNCHED: dict[str, Any] = {
    "Instances": [{"InstanceIds": [INSTANCE_ID], "InstanceType": "g6.xlarge", "AvailabilityZone": "us-east-1a"}]
}


def on_demand_request(*overrides: dict[str, Any], strategy: str) -> dict[str, Any]:
    """Return the expected parameters for on-demand."""
    spot = {name: value for name, value in SPOT_REQUEST.items() if name != "SpotOptions"}
    template = SPOT_REQUEST["LaunchTemplateConfigs"][0]["LaunchTemplateSpecification"]
    return {
        **spot,
        "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
        "OnDemandOptions": {"AllocationStrategy": strategy},
        "LaunchTemplateConfigs": [{"LaunchTemplateSpecification": template, "Overrides": list(overrides)}],
    }


def test_a_spot_request_lets_ec2_choose_by_price_and_capacity(stubber: Stubber) -> None:
    stubber.add_response("create_fleet", LAUNCHED, SPOT_REQUEST)

    # The order is EC2's for spot, whatever the priorities are.
    overrides = (make_override(), make_override("g5.xlarge", "us-east-1b", priority=1))
    answer = Ec2Fleet(stubber.client, stubber.client, STACK).request(make_fleet_request(*overrides))

    assert isinstance(answer, InstanceLaunched)


def test_an_on_demand_request_takes_the_cheapest_if_no_override_comes_first(stubber: Stubber) -> None:
    overrides = [
        {"InstanceType": "g6.xlarge", "SubnetId": "subnet-us-east-1a", "AvailabilityZone": "us-east-1a"},
        {"InstanceType": "g6.xlarge", "SubnetId": "subnet-us-east-1b", "AvailabilityZone": "us-east-1b"},
    ]
    stubber.add_response("create_fleet", LAUNCHED, on_demand_request(*overrides, strategy="lowest-price"))

    first, second = make_override(purchase=ON_DEMAND), make_override(purchase=ON_DEMAND, zone="us-east-1b")
    request = make_fleet_request(replace(first, priority=3), replace(second, priority=3))

    assert isinstance(Ec2Fleet(stubber.client, stubber.client, STACK).request(request), InstanceLaunched)


def test_an_on_demand_request_with_different_priorities_says_all_of_them(stubber: Stubber) -> None:
    overrides = [
        {
            "InstanceType": "g6.xlarge",
            "SubnetId": "subnet-us-east-1a",
            "AvailabilityZone": "us-east-1a",
            "Priority": 0,
        },
        {
            "InstanceType": "g5.xlarge",
            "SubnetId": "subnet-us-east-1a",
            "AvailabilityZone": "us-east-1a",
            "Priority": 1,
        },
    ]
    stubber.add_response("create_fleet", LAUNCHED, on_demand_request(*overrides, strategy="prioritized"))

    first, second = make_override(purchase=ON_DEMAND), make_override("g5.xlarge", purchase=ON_DEMAND, priority=1)
    answer = Ec2Fleet(stubber.client, stubber.client, STACK).request(make_fleet_request(first, second))

    assert isinstance(answer, InstanceLaunched)


def bodies_of(*requests: FleetRequest) -> list[bytes]:
    unreachable = UnreachableAws("ec2", TIME_OUT)
    for request in requests:
        Ec2Fleet(unreachable.client, unreachable.client, STACK).request(request)
    return unreachable.bodies


def test_the_same_request_is_the_same_bytes_in_whatever_order_its_tags_were_loaded() -> None:
    request = make_fleet_request(make_override(), make_override(zone="us-east-1b"))
    loaded = replace(request, tags=dict(sorted(request.tags.items())))

    first, second = bodies_of(request, loaded)

    assert first == second
    assert b"Action=CreateFleet" in first


def test_another_machine_is_another_token() -> None:
    first, second = bodies_of(make_fleet_request(), make_fleet_request(machine_id="m-2"))

    assert first != second


def test_a_retry_of_the_sdk_sends_the_same_bytes_with_the_same_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda seconds: None)
    unreachable = UnreachableAws("ec2", TIME_OUT, attempts=3)

    Ec2Fleet(unreachable.client, unreachable.client, STACK).request(make_fleet_request())

    assert len(unreachable.bodies) == 3
    assert len(set(unreachable.bodies)) == 1


def tagged(**tags: str) -> FleetRequest:
    request = make_fleet_request()
    return replace(request, tags={**request.tags, **tags})


def without(tag: str) -> FleetRequest:
    request = make_fleet_request()
    return replace(request, tags={key: value for key, value in request.tags.items() if key != tag})


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        pytest.param(
            make_fleet_request(make_override(), make_override(subnet_id="subnet-2")),
            "EC2 takes one override of g6.xlarge in us-east-1a, not 2: keep one subnet per zone",
            id="two subnets of one zone",
        ),
        pytest.param(
            make_fleet_request(*(make_override(zone=f"us-east-1{number}") for number in range(61))),
            "a request has 1 to 60 overrides, not 61",
            id="too many overrides",
        ),
        pytest.param(
            replace(make_fleet_request(), overrides=()), "a request has 1 to 60 overrides, not 0", id="no override"
        ),
        pytest.param(
            make_fleet_request(make_override(offering=OfferingKey("g6.xlarge", None, PurchaseOption.SPOT))),
            "the override of g6.xlarge spot must have a zone and a subnet",
            id="no zone",
        ),
        pytest.param(
            make_fleet_request(make_override(subnet_id="")),
            "the override of g6.xlarge spot us-east-1a must have a zone and a subnet",
            id="no subnet",
        ),
        pytest.param(
            make_fleet_request(make_override(), make_override("g5.xlarge", purchase=ON_DEMAND)),
            "the override of g5.xlarge on-demand us-east-1a is not spot",
            id="both purchase options",
        ),
        pytest.param(
            make_fleet_request(make_override(priority=-1)),
            "the priority of g6.xlarge spot us-east-1a must be 0 or more: -1",
            id="negative priority",
        ),
        *(
            pytest.param(
                make_fleet_request(client_token=token),
                f"the client token must be 1 to 64 of ASCII 33 to 126: {token!r}",
                id=f"client token {token[:8]!r}",
            )
            for token in ("t" * 65, "", "t ken", "tökén", "token\n")
        ),
        *(
            pytest.param(
                make_fleet_request(launch_template_version=version),
                f"the launch template version must be a number: {version!r}",
                id=f"version {version!r}",
            )
            for version in ("$Default", "$Latest", "", "0", "1.5", "٣", "7\n")
        ),
        *(
            pytest.param(
                tagged(**{key: ""}),
                f"the tag key {key!r} must be 1 to 127 of letters, digits and + - = . , _ : @, and not begin with aws:",
                id=f"tag key {key[:8]!r}",
            )
            for key in ("k" * 128, "", "aws:team", "cost center", "a/b", "größe", ".", "..", "_index", "team\n")
        ),
        pytest.param(
            tagged(**{IMAGE_TAG: "v" * 257}),
            "the value of the tag relaunch:image has 257 characters, EC2 takes 256",
            id="long tag value",
        ),
        pytest.param(
            tagged(**{f"k{number}": "" for number in range(48)}), "EC2 takes 50 tags, not 51", id="too many tags"
        ),
        pytest.param(
            without(MACHINE_TAG),
            "without the tag relaunch:machine the instance could not be found again",
            id="no machine tag",
        ),
        pytest.param(
            tagged(**{STACK_TAG: "other"}), "the tag relaunch:stack must be 'relaunch-prod', not 'other'", id="stack"
        ),
    ],
)
def test_a_request_that_breaks_a_limit_is_refused_and_not_sent(
    stubber: Stubber, request_: FleetRequest, message: str
) -> None:
    # The stubber has no answer: a request that was sent would be uncertain.
    answer = Ec2Fleet(stubber.client, stubber.client, STACK).request(request_)

    assert isinstance(answer, FleetRefused)
    ((kind, code, said),) = [(each.kind, each.code, each.message) for each in answer.refusals]
    assert (kind, code, said) == (RefusalKind.CONFIGURATION, NOT_SENT, message)


def test_all_that_is_wrong_is_said_at_once(stubber: Stubber) -> None:
    request = make_fleet_request(client_token="", launch_template_version="$Latest")

    answer = Ec2Fleet(stubber.client, stubber.client, STACK).request(request)

    assert isinstance(answer, FleetRefused)
    assert "client token" in answer.refusals[0].message
    assert "template version" in answer.refusals[0].message


def test_what_is_just_within_the_limits_is_sent(stubber: Stubber) -> None:
    stubber.add_response("create_fleet", LAUNCHED)
    overrides = (make_override(zone=f"us-east-1{number}") for number in range(60))
    tags = {f"k{number}": "v" * 256 for number in range(46)} | {"k" * 127: ""}
    request = tagged(**tags)

    answer = Ec2Fleet(stubber.client, stubber.client, STACK).request(
        replace(make_fleet_request(*overrides), client_token="t" * 64, tags=request.tags)
    )

    assert len(request.tags) == 50
    assert isinstance(answer, InstanceLaunched)


def test_the_tags_of_a_machine_can_be_read_from_instance_metadata(stubber: Stubber) -> None:
    stubber.add_response("create_fleet", LAUNCHED)
    keys = (STACK_TAG, MACHINE_TAG, JOB_TAG, IMAGE_TAG)

    answer = Ec2Fleet(stubber.client, stubber.client, STACK).request(tagged(**{IMAGE_TAG: "trainer@sha256:5e07"}))

    assert keys == ("relaunch:stack", "relaunch:machine", "relaunch:job", "relaunch:image")
    assert isinstance(answer, InstanceLaunched)
