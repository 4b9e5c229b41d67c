"""Requests for several machines in one reservation: all or none, by RunInstances."""

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.stub import Stubber

from fakes.fleet import MACHINE_ID, STACK, make_fleet_request, make_override
from fakes.reservations import make_block, make_reservation
from relaunch.adapters.aws.ec2.fleet import Ec2Fleet
from relaunch.adapters.aws.ec2.run_instances import answer_of_instances, build_run_instances
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.events import (
    FleetAnswer,
    FleetDeferred,
    FleetRefused,
    FleetUncertain,
    InstanceLaunched,
    Refusal,
    RefusalKind,
)

SERVICE = "ec2"
OVERRIDE = make_override("p5.48xlarge", purchase=PurchaseOption.RESERVED)
REQUEST = make_fleet_request(OVERRIDE, reservation=make_block(), size=3)
IDS = [f"i-{number:017x}" for number in range(3)]


def expected(reservation_id: str, **more: Any) -> dict[str, Any]:
    tags = [{"Key": key, "Value": value} for key, value in sorted(REQUEST.tags.items())]
    return {
        "ClientToken": f"relaunch-{MACHINE_ID}",
        "LaunchTemplate": {"LaunchTemplateId": "lt-0123456789abcdef0", "Version": "7"},
        "InstanceType": "p5.48xlarge",
        "SubnetId": "subnet-us-east-1a",
        "MinCount": 3,
        "MaxCount": 3,
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": reservation_id}},
        "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume")],
        **more,
    }


def ask(stubber: Stubber) -> FleetAnswer:
    return Ec2Fleet(stubber.client, stubber.client, STACK).request(REQUEST)


@pytest.mark.parametrize(
    ("reservation", "market"),
    [
        (make_block(), {"InstanceMarketOptions": {"MarketType": "capacity-block"}}),
        (make_reservation(), {}),
    ],
)
def test_all_or_none_are_launched_into_the_one_reservation(stubber: Stubber, reservation: Any, market: Any) -> None:
    instances = {"Instances": [{"InstanceId": each} for each in IDS]}
    stubber.add_response("run_instances", instances, expected(reservation.reservation_id, **market))

    answer = Ec2Fleet(stubber.client, stubber.client, STACK).request(replace(REQUEST, reservation=reservation))

    first, *others = IDS
    assert answer == InstanceLaunched(first, OVERRIDE.offering, others=tuple(others))


def test_the_place_of_a_machine_in_its_group_changes_nothing() -> None:
    assert build_run_instances(replace(REQUEST, place=2), make_block()) == build_run_instances(REQUEST, make_block())


def test_one_machine_in_a_reservation_is_launched_by_a_fleet(stubber: Stubber) -> None:
    stubber.add_client_error("create_fleet", "ReservationCapacityExceeded", "full")

    assert isinstance(Ec2Fleet(stubber.client, stubber.client, STACK).request(replace(REQUEST, size=1)), FleetRefused)


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("ReservationCapacityExceeded", 400, RefusalKind.PRICE),
        ("InsufficientReservedInstanceCapacity", 500, RefusalKind.PRICE),
        ("InvalidCapacityReservationState.PendingActivation", 400, RefusalKind.PRICE),
        ("InvalidCapacityReservationId.NotFound", 400, RefusalKind.PRICE),
        ("InsufficientInstanceCapacity", 500, RefusalKind.NO_CAPACITY),
        ("InsufficientFreeAddressesInSubnet", 400, RefusalKind.SUBNET_FULL),
        ("UnauthorizedOperation", 403, RefusalKind.NOT_PERMITTED),
        ("InvalidParameterValue", 400, RefusalKind.CONFIGURATION),
    ],
)
def test_a_refusal_is_an_error_of_the_whole_call(stubber: Stubber, code: str, status: int, kind: RefusalKind) -> None:
    stubber.add_client_error("run_instances", code, "no", http_status_code=status)

    assert ask(stubber) == FleetRefused((Refusal(kind, code, "no"),), is_raised=True)


@pytest.mark.parametrize("code", ["IdempotentInstanceTerminated", "IdempotentParameterMismatch", "InternalError"])
def test_what_says_nothing_of_this_launch_is_looked_for(stubber: Stubber, code: str) -> None:
    stubber.add_client_error("run_instances", code, "no")

    assert ask(stubber) == FleetUncertain(f"{code}: no")


def test_a_throttled_request_is_sent_again(stubber: Stubber) -> None:
    stubber.add_client_error("run_instances", "RequestLimitExceeded", "slow down", http_status_code=503)

    assert ask(stubber) == FleetDeferred("RequestLimitExceeded: slow down")


def test_no_answer_names_the_action(monkeypatch: pytest.MonkeyPatch, stubber: Stubber) -> None:
    def time_out(**_parameters: Any) -> None:
        raise ReadTimeoutError(endpoint_url="https://ec2.example")

    monkeypatch.setattr(stubber.client, "run_instances", time_out)

    answer = ask(stubber)

    assert isinstance(answer, FleetUncertain)
    assert answer.reason.startswith("no answer to RunInstances: ")


@pytest.mark.parametrize("response", [{}, {"Instances": []}, {"Instances": [{}]}])
def test_an_answer_without_an_instance_is_no_answer(response: Any) -> None:
    answer = answer_of_instances(REQUEST, response)

    assert answer == FleetUncertain("RunInstances answered with no instance and no error")


def test_an_answer_with_a_part_names_the_part() -> None:
    answer = answer_of_instances(REQUEST, {"Instances": [{"InstanceId": IDS[0]}]})  # type: ignore[typeddict-item]

    assert answer == InstanceLaunched(IDS[0], OVERRIDE.offering)
