"""What Ec2Fleet makes of the responses of CreateFleet."""

from typing import Any

import pytest
from botocore.stub import Stubber

from fakes.builders import INSTANCE_ID
from fakes.fleet import STACK, make_fleet_request, make_override
from relaunch.adapters.aws.ec2.fleet import Ec2Fleet
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.events import (
    FleetAnswer,
    FleetRefused,
    FleetUncertain,
    InstanceLaunched,
    Refusal,
    RefusalKind,
)
from relaunch.core.machines.machine import FleetRequest
from relaunch.core.offerings.offering import OfferingKey

SERVICE = "ec2"
SPOT, ON_DEMAND = PurchaseOption.SPOT, PurchaseOption.ON_DEMAND
FIRST, SECOND = make_override(), make_override("g5.xlarge", "us-east-1b")
REQUEST = make_fleet_request(FIRST, SECOND)
NOT_IN_ZONE = "InvalidFleetConfiguration"
# EC2's own text for a type that it does not know, and for one that a zone does not have.
TEXT = "Your requested instance type (g6.xlarge) is not supported in your requested Availability Zone (us-east-1a)."


def echo(offering: OfferingKey) -> dict[str, Any]:
    return {"Overrides": {"InstanceType": offering.instance_type, "AvailabilityZone": offering.zone}}


def error(code: str, offering: OfferingKey | None = None, message: str = "so it is") -> dict[str, Any]:
    said = {"Lifecycle": str(offering.purchase), "LaunchTemplateAndOverrides": echo(offering)} if offering else {}
    return {"ErrorCode": code, "ErrorMessage": message, **said}


def instance(offering: OfferingKey = FIRST.offering, *ids: str) -> dict[str, Any]:
    return {
        "InstanceIds": list(ids or (INSTANCE_ID,)),
        "InstanceType": offering.instance_type,
        "AvailabilityZone": offering.zone,
        "Lifecycle": str(offering.purchase),
        "LaunchTemplateAndOverrides": echo(offering),
    }


def answer(stubber: Stubber, request: FleetRequest = REQUEST, **response: list[dict[str, Any]]) -> FleetAnswer:
    stubber.add_response("create_fleet", {"FleetId": "fleet-1", **response})
    return Ec2Fleet(stubber.client, stubber.client, STACK).request(request)


def no_stock(offering: OfferingKey) -> Refusal:
    return Refusal(RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity", "so it is", offering)


def test_an_instance_is_launched_with_what_ec2_chose(stubber: Stubber) -> None:
    launched = answer(stubber, Instances=[instance(SECOND.offering)], Errors=[])

    assert launched == InstanceLaunched(INSTANCE_ID, SECOND.offering)


def test_an_instance_wins_over_the_errors_beside_it(stubber: Stubber) -> None:
    errors = [error("InsufficientInstanceCapacity", FIRST.offering)]

    launched = answer(stubber, Errors=errors, Instances=[instance(SECOND.offering)])

    assert launched == InstanceLaunched(INSTANCE_ID, SECOND.offering, (no_stock(FIRST.offering),))


@pytest.mark.parametrize("code", ["InternalError", "UnauthorizedOperation", "RequestLimitExceeded"])
def test_an_instance_wins_over_every_kind_of_error(stubber: Stubber, code: str) -> None:
    launched = answer(stubber, Errors=[error(code, FIRST.offering)], Instances=[instance()])

    assert isinstance(launched, InstanceLaunched)
    assert [refusal.code for refusal in launched.refusals] == [code]


@pytest.mark.parametrize("response", [{}, {"Instances": [], "Errors": []}, {"Instances": [{"InstanceIds": []}]}])
def test_neither_an_instance_nor_an_error_is_uncertain(stubber: Stubber, response: dict[str, Any]) -> None:
    assert answer(stubber, **response) == FleetUncertain("CreateFleet answered with no instance and no error")


def test_of_more_instances_than_one_the_first_is_the_machine(stubber: Stubber) -> None:
    instances = [instance(FIRST.offering, "i-1", "i-2"), instance(SECOND.offering, "i-3")]

    assert answer(stubber, Instances=instances) == InstanceLaunched("i-1", FIRST.offering)


def test_the_echo_of_the_override_says_what_an_instance_is_where_nothing_else_does(stubber: Stubber) -> None:
    bare = {"InstanceIds": [INSTANCE_ID], "LaunchTemplateAndOverrides": echo(SECOND.offering)}

    assert answer(stubber, Instances=[bare]) == InstanceLaunched(INSTANCE_ID, SECOND.offering)


@pytest.mark.parametrize("missing", ["InstanceType", "AvailabilityZone"])
def test_an_instance_of_unknown_type_or_zone_has_to_be_looked_for(stubber: Stubber, missing: str) -> None:
    said = {name: value for name, value in instance().items() if name not in (missing, "LaunchTemplateAndOverrides")}

    uncertain = answer(stubber, Instances=[said])

    assert uncertain == FleetUncertain(f"CreateFleet launched {INSTANCE_ID} and did not say its type and zone")


def test_refusals_name_what_ec2_echoed(stubber: Stubber) -> None:
    on_demand = OfferingKey("g6.xlarge", "us-east-1a", ON_DEMAND)
    errors = [error("InsufficientInstanceCapacity", each) for each in (FIRST.offering, SECOND.offering, on_demand)]

    refused = answer(stubber, Errors=errors)

    assert refused == FleetRefused((no_stock(FIRST.offering), no_stock(SECOND.offering), no_stock(on_demand)))


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"LaunchTemplateAndOverrides": {}},
        {"LaunchTemplateAndOverrides": {"Overrides": {"InstanceType": "g6.xlarge"}}},
        {"LaunchTemplateAndOverrides": {"Overrides": {"AvailabilityZone": "us-east-1a"}}},
        {"LaunchTemplateAndOverrides": echo(FIRST.offering), "Lifecycle": "capacity-block"},
    ],
)
def test_a_refusal_without_a_full_echo_is_about_no_offering(stubber: Stubber, said: dict[str, Any]) -> None:
    errors = [{"ErrorCode": "UnfulfillableCapacity", "ErrorMessage": "so it is", **said}]

    assert answer(stubber, Errors=errors) == FleetRefused(
        (Refusal(RefusalKind.NO_CAPACITY, "UnfulfillableCapacity", "so it is"),)
    )


def test_a_refusal_without_a_purchase_option_is_about_that_of_the_request(stubber: Stubber) -> None:
    errors = [{"ErrorCode": "UnfulfillableCapacity", "LaunchTemplateAndOverrides": echo(FIRST.offering)}]

    assert answer(stubber, Errors=errors) == FleetRefused(
        (Refusal(RefusalKind.NO_CAPACITY, "UnfulfillableCapacity", "", FIRST.offering),)
    )


def test_the_same_refusal_is_said_once(stubber: Stubber) -> None:
    errors = [error("InsufficientInstanceCapacity", FIRST.offering)] * 3

    assert answer(stubber, Errors=errors) == FleetRefused((no_stock(FIRST.offering),))


def test_a_missing_permission_beside_missing_capacity_stays_one(stubber: Stubber) -> None:
    errors = [error("InsufficientInstanceCapacity", FIRST.offering), error("UnauthorizedOperation", SECOND.offering)]

    refused = answer(stubber, Errors=errors)

    assert isinstance(refused, FleetRefused)
    assert [each.kind for each in refused.refusals] == [RefusalKind.NO_CAPACITY, RefusalKind.NOT_PERMITTED]


def test_one_server_error_leaves_open_what_became_of_the_request(stubber: Stubber) -> None:
    errors = [error("InsufficientInstanceCapacity", FIRST.offering), error("InternalError", SECOND.offering)]

    assert answer(stubber, Errors=errors) == FleetUncertain("InternalError: so it is")


def kinds(refused: FleetAnswer) -> list[RefusalKind]:
    assert isinstance(refused, FleetRefused)
    return [each.kind for each in refused.refusals]


@pytest.mark.parametrize("other", ["InsufficientInstanceCapacity", "UnfulfillableCapacity"])
def test_a_type_that_one_zone_lacks_is_unsupported_there(stubber: Stubber, other: str) -> None:
    errors = [error(NOT_IN_ZONE, FIRST.offering, TEXT), error(other, SECOND.offering)]

    assert kinds(answer(stubber, Errors=errors)) == [RefusalKind.UNSUPPORTED, RefusalKind.NO_CAPACITY]


def test_a_type_that_one_zone_lacks_is_unsupported_though_ec2_says_nothing_of_the_other(stubber: Stubber) -> None:
    assert kinds(answer(stubber, Errors=[error(NOT_IN_ZONE, FIRST.offering, TEXT)])) == [RefusalKind.UNSUPPORTED]


def test_a_type_that_one_zone_lacks_is_unsupported_beside_an_instance(stubber: Stubber) -> None:
    launched = answer(stubber, Errors=[error(NOT_IN_ZONE, FIRST.offering, TEXT)], Instances=[instance(SECOND.offering)])

    assert isinstance(launched, InstanceLaunched)
    assert [each.kind for each in launched.refusals] == [RefusalKind.UNSUPPORTED]


@pytest.mark.parametrize(
    ("request_", "kind"),
    [(REQUEST, RefusalKind.CONFIGURATION), (make_fleet_request(FIRST), RefusalKind.UNSUPPORTED)],
    ids=["two overrides", "one override"],
)
def test_what_several_zones_of_the_request_lack_is_a_fault_of_the_request(
    stubber: Stubber, request_: FleetRequest, kind: RefusalKind
) -> None:
    errors = [error(NOT_IN_ZONE, each.offering, TEXT) for each in request_.overrides]

    refused = answer(stubber, request_, Errors=errors)

    assert refused == FleetRefused(
        tuple(Refusal(kind, NOT_IN_ZONE, TEXT, each.offering) for each in request_.overrides)
    )


def test_an_invalid_configuration_without_an_echo_is_a_fault_of_the_request_if_nothing_else_is_said(
    stubber: Stubber,
) -> None:
    assert kinds(answer(stubber, Errors=[error(NOT_IN_ZONE)])) == [RefusalKind.CONFIGURATION]


def test_an_invalid_configuration_without_an_echo_is_not_one_of_all_overrides_beside_another_error(
    stubber: Stubber,
) -> None:
    errors = [error(NOT_IN_ZONE), error("InsufficientInstanceCapacity", SECOND.offering)]

    assert kinds(answer(stubber, Errors=errors)) == [RefusalKind.UNSUPPORTED, RefusalKind.NO_CAPACITY]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("InvalidSubnetID.NotFound", RefusalKind.CONFIGURATION),
        ("UnauthorizedOperation", RefusalKind.NOT_PERMITTED),
        ("MaxFleetCountExceeded", RefusalKind.ACCOUNT_LIMIT),
    ],
)
def test_a_fleet_is_not_fulfilled_because_of_what_is_wrong_with_the_request(
    stubber: Stubber, code: str, kind: RefusalKind
) -> None:
    errors = [error("UnfulfillableCapacity", FIRST.offering), error(code), no_capacity(SECOND.offering)]

    refused = answer(stubber, Errors=errors, Instances=[])

    # What EC2 says of its capacity itself still holds.
    assert refused == FleetRefused((Refusal(kind, code, "so it is", None), no_stock(SECOND.offering)))


def test_a_fleet_that_is_not_fulfilled_without_a_cause_has_no_capacity(stubber: Stubber) -> None:
    errors = [error("UnfulfillableCapacity", FIRST.offering), no_capacity(SECOND.offering)]

    refused = answer(stubber, Errors=errors, Instances=[])

    unfulfilled = Refusal(RefusalKind.NO_CAPACITY, "UnfulfillableCapacity", "so it is", FIRST.offering)
    assert refused == FleetRefused((unfulfilled, no_stock(SECOND.offering)))


def no_capacity(offering: OfferingKey) -> dict[str, Any]:
    return error("InsufficientInstanceCapacity", offering)
