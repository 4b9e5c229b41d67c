from typing import Any

import pytest

from fakes.fleet_region import FleetRegion, fleet_request
from relaunch_local.ecs.api.controls import Controls


def control(region: FleetRegion, control_name: str, /, **arguments: Any) -> tuple[int, Any]:
    return Controls(region.simulator, lambda: None).call(control_name, arguments)


@pytest.fixture
def region() -> FleetRegion:
    return FleetRegion()


@pytest.mark.parametrize(
    ("name", "arguments", "key", "code"),
    [
        ("refuse", {"instance_type": "g5.xlarge", "purchase": "spot"}, "code", "Unsupported"),
        ("quota", {"family": "G and VT", "purchase": "spot"}, "vcpus", "MaxSpotInstanceCountExceeded"),
        ("addresses", {"subnet_id": "subnet-a"}, "instances", "InsufficientFreeAddressesInSubnet"),
        ("capacity", {"instance_type": "g5.xlarge", "purchase": "spot"}, "instances", "InsufficientInstanceCapacity"),
    ],
)
def test_what_ec2_has_is_taken_away_and_given_back(
    region: FleetRegion, name: str, arguments: dict[str, Any], key: str, code: str
) -> None:
    assert control(region, name, **arguments, **{key: code if key == "code" else 0}) == (200, {})
    assert region.refused(market="spot") == [code]

    control(region, name, **arguments, **{key: None})
    assert region.create(market="spot")["Instances"]


def test_the_next_answers_and_hosts_go_wrong(region: FleetRegion) -> None:
    control(region, "fleet", code="InternalError", times=2)
    control(region, "host", joins=False)

    assert [region.refused(), region.refused()] == [["InternalError"]] * 2
    region.launch()
    region.clock.advance(600)
    assert region.registrations() == []
    region.ready()


def test_templates_and_subnets_are_added(region: FleetRegion) -> None:
    versions = [{"cluster": "c", "tags": {"instance": {"own": "control"}}}]
    control(region, "launch-template", template_id="lt-9", name="others", versions=versions)
    control(region, "subnet", subnet_id="subnet-c", zone="us-east-1b")
    request = fleet_request({"InstanceType": "g5.xlarge", "SubnetId": "subnet-c"})
    template = {"LaunchTemplateName": "others", "Version": "1"}
    request["LaunchTemplateConfigs"][0]["LaunchTemplateSpecification"] = template

    launched = region.ec2.create_fleet(**request)["Instances"][0]

    assert launched["AvailabilityZone"] == "us-east-1b"
    assert region.simulator.instance(launched["InstanceIds"][0]).tags["own"] == "control"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("host", {"colour": "red"}), ("refuse", {"instance_type": "g5.xlarge", "purchase": "gift"}), ("quota", {})],
)
def test_wrong_arguments_are_said_to_be_wrong(region: FleetRegion, name: str, arguments: dict[str, Any]) -> None:
    status, answer = control(region, name, **arguments)

    assert (status, answer["error"]) == (400, "BadArguments")
