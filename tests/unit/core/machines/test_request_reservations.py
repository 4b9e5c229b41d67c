"""The request of a machine in a reservation, and the machine from it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW
from fakes.machines import claim, machine, override
from fakes.machines import fleet_request as make_request
from fakes.reservations import make_block, make_reservation, make_reserved
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.decision import MachineTotals
from relaunch.core.machines.events import FleetAnswered, FleetRefused, InstanceLaunched, Refusal, RefusalKind
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import Consequence, FleetRequest, MachineState, describe_machine
from relaunch.core.machines.refusals import find_failures, judge
from relaunch.core.machines.request import build_request
from relaunch.core.machines.requesting import fleet_answered, launched_after_all, request_machine
from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.offerings.reservations import Reservation
from relaunch.core.selection.selection import Selection
from unit.core.machines.test_request import LIMITS, SETTINGS, own

RESERVED, ON_DEMAND = PurchaseOption.RESERVED, PurchaseOption.ON_DEMAND
BLOCK = make_block()


def request_of(*kept) -> FleetRequest:
    request = build_request(Selection(kept, (), ()), "m-1", "resnet-1f2e", "resnet", SETTINGS, LIMITS)
    assert request is not None
    return request


def reserved_machine(state: MachineState = MachineState.REQUESTED):
    request = replace(make_request(override(purchase=RESERVED, usd_per_hour=0.0)), reservation=BLOCK)
    return machine(state, request=request)


def test_a_request_is_for_one_reservation_alone() -> None:
    longer = make_block(reservation_id="cr-2", zone="us-east-1b", ends_at=NOW + timedelta(days=9))
    request = request_of(make_reserved(BLOCK), make_reserved(longer), own())

    assert (request.purchase, request.reservation, request.usd_per_hour) == (RESERVED, BLOCK, 0.0)
    assert [str(each.offering) for each in request.overrides] == ["g5.xlarge reserved us-east-1a"]


def test_other_requests_have_none() -> None:
    assert request_of(own(), make_reserved(make_reservation())).reservation is None


def test_the_timeline_and_the_explanation_name_the_reservation() -> None:
    request = request_of(make_reserved(BLOCK))
    created = request_machine("m-1", request, claim(), NOW, MachineTotals(5, 0)).machine

    assert created.timeline[-1].detail == "reserved g5.xlarge in us-east-1a from Capacity Block cr-0b10c0b10c0b10c00"
    assert describe_machine(created) == (
        "EC2 is asked for g5.xlarge on reserved in us-east-1a from Capacity Block cr-0b10c0b10c0b10c00"
    )


def test_an_instance_that_was_found_by_its_tag_is_that_of_the_request_though_ec2_calls_it_on_demand() -> None:
    found = FleetAnswered(InstanceLaunched("i-0a", OfferingKey("g5.xlarge", "us-east-1a", ON_DEMAND)))

    launched = fleet_answered(reserved_machine(), found, NOW, MachineLimits()).machine
    late = launched_after_all(reserved_machine(MachineState.GONE), found, NOW, MachineLimits()).machine

    assert launched.offering == late.offering == OfferingKey("g5.xlarge", "us-east-1a", RESERVED)
    assert launched.capacity == reserved_machine().request.overrides[0].capacity
    assert launched.usd_per_hour == 0.0


@pytest.mark.parametrize(
    ("kind", "avoided"),
    [
        (RefusalKind.PRICE, ["g5.xlarge reserved us-east-1a"]),
        (RefusalKind.NO_CAPACITY, ["g5.xlarge reserved us-east-1a"]),
        (RefusalKind.QUOTA, ["family:g5 reserved"]),
        (RefusalKind.SUBNET_FULL, ["any-type spot us-east-1a", "any-type on-demand us-east-1a"]),
    ],
)
def test_a_job_that_was_refused_selects_again_at_once_without_what_was_refused(
    kind: RefusalKind, avoided: list[str]
) -> None:
    request, refusals = reserved_machine().request, (Refusal(kind, "Code"),)

    assert judge(request, refusals).consequence is Consequence.NEXT
    assert [str(each.offering) for each in find_failures(request, FleetRefused(refusals), NOW)] == avoided


def test_several_machines_are_requested_of_a_reservation_that_has_them() -> None:
    small = make_block(available=2)
    large = make_block(reservation_id="cr-2", zone="us-east-1b", available=3)
    kept = Selection((make_reserved(small), make_reserved(large)), (), ())

    def reserved_for(gang_size: int) -> Reservation | None:
        request = build_request(kept, "m-1", "resnet-1f2e", "resnet", SETTINGS, LIMITS, gang_size=gang_size)
        return request.reservation if request else None

    assert [reserved_for(size) for size in (1, 2, 3, 4)] == [small, small, large, None]
