"""The requests that Ec2Fleet sends for what is reserved, and EC2's answers to them."""

from dataclasses import replace
from typing import Any

import pytest
from botocore.stub import Stubber

from fakes.builders import INSTANCE_ID
from fakes.fleet import MACHINE_ID, STACK, make_fleet_request, make_override
from fakes.reservations import make_block, make_reservation
from relaunch.adapters.aws.ec2.fleet import NOT_SENT, Ec2Fleet
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.events import FleetRefused, InstanceLaunched, Refusal, RefusalKind
from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.offerings.reservations import Reservation

SERVICE = "ec2"
OVERRIDE = make_override("p5.48xlarge", purchase=PurchaseOption.RESERVED)
REQUEST = make_fleet_request(OVERRIDE, reservation=make_block())


def expected(reservation_type: str, reservation_id: str) -> dict[str, Any]:
    tags = [{"Key": key, "Value": value} for key, value in sorted(REQUEST.tags.items())]
    return {
        "Type": "instant",
        "ClientToken": f"relaunch-{MACHINE_ID}",
        "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "reserved-capacity"},
        "ReservedCapacityOptions": {
            "ReservationTypes": [reservation_type],
            "CapacityReservationTarget": {"CapacityReservationIds": [reservation_id]},
        },
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-0123456789abcdef0", "Version": "7"},
                "Overrides": [
                    {
                        "InstanceType": "p5.48xlarge",
                        "SubnetId": "subnet-us-east-1a",
                        "AvailabilityZone": "us-east-1a",
                    }
                ],
            }
        ],
        "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume", "fleet")],
    }


def launched(**fields: Any) -> dict[str, Any]:
    entry = {"InstanceIds": [INSTANCE_ID], "InstanceType": "p5.48xlarge", "AvailabilityZone": "us-east-1a", **fields}
    return {"Instances": [entry]}


@pytest.mark.parametrize(
    ("reservation", "reservation_type"),
    [(make_block(), "capacity-block"), (make_reservation(), "on-demand-capacity-reservation")],
)
def test_a_request_names_the_one_reservation_and_falls_back_to_nothing(
    stubber: Stubber, reservation: Reservation, reservation_type: str
) -> None:
    stubber.add_response("create_fleet", launched(), expected(reservation_type, reservation.reservation_id))

    answer = Ec2Fleet(stubber.client, stubber.client, STACK).request(replace(REQUEST, reservation=reservation))

    assert answer == InstanceLaunched(INSTANCE_ID, OVERRIDE.offering)


@pytest.mark.parametrize("lifecycle", ["on-demand", "capacity-block", "reserved-capacity"])
def test_whatever_ec2_calls_the_instance_it_is_reserved(stubber: Stubber, lifecycle: str) -> None:
    stubber.add_response("create_fleet", launched(Lifecycle=lifecycle))

    answer = Ec2Fleet(stubber.client, stubber.client, STACK).request(REQUEST)

    reserved = OfferingKey("p5.48xlarge", "us-east-1a", PurchaseOption.RESERVED)
    assert answer == InstanceLaunched(INSTANCE_ID, reserved)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("ReservationCapacityExceeded", RefusalKind.PRICE),
        ("InsufficientInstanceCapacity", RefusalKind.NO_CAPACITY),  # full, or not started yet
        ("InvalidCapacityReservationId.NotFound", RefusalKind.PRICE),
        ("InvalidCapacityReservationState", RefusalKind.PRICE),
    ],
)
def test_a_reservation_that_was_taken_or_ended_since_selection_is_avoided_for_a_while(
    stubber: Stubber, code: str, kind: RefusalKind
) -> None:
    entry = {
        "ErrorCode": code,
        "ErrorMessage": "no",
        "LaunchTemplateAndOverrides": {"Overrides": {"InstanceType": "p5.48xlarge", "AvailabilityZone": "us-east-1a"}},
    }
    stubber.add_response("create_fleet", {"Errors": [entry]})
    stubber.add_client_error("create_fleet", code, "no")
    fleet = Ec2Fleet(stubber.client, stubber.client, STACK)

    assert fleet.request(REQUEST) == FleetRefused((Refusal(kind, code, "no", OVERRIDE.offering),))
    assert fleet.request(REQUEST) == FleetRefused((Refusal(kind, code, "no"),), is_raised=True)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (replace(REQUEST, reservation=None), "a reserved request must name a reservation"),
        (make_fleet_request(reservation=make_block()), "a spot request must not name a reservation"),
    ],
)
def test_a_request_that_is_reserved_without_a_reservation_is_not_sent(
    stubber: Stubber, request_: Any, reason: str
) -> None:
    answer = Ec2Fleet(stubber.client, stubber.client, STACK).request(request_)

    assert answer == FleetRefused((Refusal(RefusalKind.CONFIGURATION, NOT_SENT, reason),))
