"""Requests for several instances: all or none, of one type in one zone."""

from dataclasses import replace

import pytest
from botocore.stub import Stubber

from fakes.fleet import STACK, make_fleet_request, make_override
from relaunch.adapters.aws.ec2.create_fleet import build_create_fleet, check_limits
from relaunch.adapters.aws.ec2.fleet import Ec2Fleet
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.events import InstanceLaunched

SERVICE = "ec2"
ONE = make_override()


@pytest.mark.parametrize(
    ("purchase", "options"), [(PurchaseOption.SPOT, "SpotOptions"), (PurchaseOption.ON_DEMAND, "OnDemandOptions")]
)
def test_ec2_launches_as_many_or_none(purchase: PurchaseOption, options: str) -> None:
    several = make_fleet_request(make_override(purchase=purchase), size=4)
    parameters = build_create_fleet(several)

    assert parameters["TargetCapacitySpecification"]["TotalTargetCapacity"] == 4
    said = parameters[options]  # type: ignore[literal-required]
    assert said["MinTargetCapacity"] == 4
    assert said["SingleInstanceType"]
    assert said["SingleAvailabilityZone"]
    assert "MinTargetCapacity" not in build_create_fleet(replace(several, size=1))[options]  # type: ignore[literal-required]


def test_a_request_for_several_is_the_same_for_each_of_them() -> None:
    several = make_fleet_request(ONE, size=4)

    assert build_create_fleet(several) == build_create_fleet(replace(several, place=3))


def test_a_request_for_several_has_one_pool() -> None:
    two = make_fleet_request(ONE, make_override("g5.xlarge", "us-east-1b"), size=4)

    assert check_limits(make_fleet_request(ONE, size=4), STACK) == ()
    assert check_limits(two, STACK) == ("a request for 4 instances has one type in one zone, not 2",)


def test_all_instances_of_the_answer_are_known(stubber: Stubber) -> None:
    zone = {"InstanceType": "g6.xlarge", "AvailabilityZone": "us-east-1a", "Lifecycle": "spot"}
    launched = [{"InstanceIds": ["i-1", "i-2", "i-3"], **zone}]
    stubber.add_response("create_fleet", {"FleetId": "fleet-1", "Instances": launched})

    answer = Ec2Fleet(stubber.client, stubber.client, STACK).request(make_fleet_request(ONE, size=3))

    assert answer == InstanceLaunched("i-1", ONE.offering, others=("i-2", "i-3"))
