from datetime import timedelta
from typing import Any

import pytest

from fakes.fleet_region import FleetRegion, fleet_request, override
from relaunch_local.ecs import Purchase
from relaunch_local.ecs.engine.reservations import CapacityReservation
from relaunch_local.iam.policies import PolicyAuthorizer

BLOCK = "cr-0b10c0b10c0b10c00"
OPEN_END = "cr-0de0de0de0de0de00"
TYPES = {BLOCK: "capacity-block", OPEN_END: "on-demand-capacity-reservation"}
FULL = ["ReservationCapacityExceeded"]
WARNING = "Capacity Block Reservation Expiration Warning"


@pytest.fixture
def region() -> FleetRegion:
    return FleetRegion()


def reserve(region: FleetRegion, name: str = OPEN_END, *, ends_in: float | None = None, **members: Any) -> None:
    now = region.clock.now()
    ends_at = None if ends_in is None else now + timedelta(minutes=ends_in)
    given = {"instance_type": "g5.xlarge", "zone": "us-east-1a", "total": 1, "starts_at": now, "ends_at": ends_at}
    region.simulator.reservations.add(CapacityReservation(name, type=TYPES[name], **{**given, **members}))


def into(name: str, **members: Any) -> dict[str, Any]:
    named = {"ReservationTypes": [TYPES[name]], "CapacityReservationTarget": {"CapacityReservationIds": [name]}}
    return {"market": "reserved-capacity", "ReservedCapacityOptions": {**named, **members}}


def described(region: FleetRegion, name: str) -> dict[str, Any]:
    answer = region.ec2.describe_capacity_reservations(CapacityReservationIds=[name])
    found: dict[str, Any] = answer["CapacityReservations"][0]
    return found


def test_an_instance_takes_a_free_place_and_keeps_it_until_it_is_terminated(region: FleetRegion) -> None:
    reserve(region)
    instance_id = region.launch(**into(OPEN_END))
    region.clock.advance(10)

    assert region.described(instance_id)["CapacityReservationId"] == OPEN_END
    assert described(region, OPEN_END)["AvailableInstanceCount"] == 0
    assert region.refused(**into(OPEN_END)) == FULL
    region.ec2.terminate_instances(InstanceIds=[instance_id])
    assert region.refused(**into(OPEN_END)) == FULL
    region.clock.advance(120)
    assert described(region, OPEN_END)["AvailableInstanceCount"] == 1
    assert region.create(**into(OPEN_END))["Instances"]


def test_a_launch_into_a_reservation_needs_neither_stock_nor_quota(region: FleetRegion) -> None:
    region.simulator.set_capacity("g5.xlarge", Purchase.ON_DEMAND, 0)
    region.simulator.fleets.pools.refusals["g5.xlarge", Purchase.ON_DEMAND, None] = "InsufficientInstanceCapacity"
    region.simulator.fleets.pools.vcpu_quotas["G and VT", Purchase.ON_DEMAND] = 4
    reserve(region, total=2)

    assert region.create(**into(OPEN_END))["Instances"]
    assert region.create(**into(OPEN_END))["Instances"]
    region.simulator.fleets.pools.refusals.clear()
    region.simulator.set_capacity("g5.xlarge", Purchase.ON_DEMAND, 1)
    assert region.create()["Instances"], "what is reserved takes nothing of stock and quota"


@pytest.mark.parametrize(
    ("name", "members", "sent"),
    [
        (OPEN_END, {"taken": 1}, override()),
        (OPEN_END, {}, override("g5.12xlarge")),
        (OPEN_END, {}, override(subnet="subnet-b")),
        (BLOCK, {"ends_in": 30.0}, override()),
    ],
)
def test_a_full_other_or_ending_reservation_has_no_compatible_capacity(
    region: FleetRegion, name: str, members: dict[str, Any], sent: dict[str, Any]
) -> None:
    reserve(region, name, **members)

    assert region.refused(sent, **into(name)) == FULL


def test_the_type_must_be_that_of_the_reservation(region: FleetRegion) -> None:
    reserve(region)

    assert region.refused(**into(OPEN_END, ReservationTypes=["capacity-block"])) == FULL
    options = {**into(OPEN_END)["ReservedCapacityOptions"]}
    options["CapacityReservationTarget"] = {"CapacityReservationIds": ["cr-00000000000000000"]}
    unknown: Any = {"market": "reserved-capacity", "ReservedCapacityOptions": options}
    assert region.raised("create_fleet", **fleet_request(**unknown)) == "InvalidCapacityReservationId.NotFound"


def test_a_reservation_that_is_not_active_is_refused_in_the_answer_or_by_an_error(region: FleetRegion) -> None:
    reserve(region, starts_at=region.clock.now() + timedelta(hours=1))
    assert described(region, OPEN_END)["State"] == "scheduled"
    assert region.refused(**into(OPEN_END)) == FULL
    region.clock.advance(3_601)
    assert described(region, OPEN_END)["State"] == "active"

    assert region.simulator.reservations.find(OPEN_END).over_since is None
    region.simulator.reservations.cancel(OPEN_END)
    assert region.simulator.reservations.find(OPEN_END).over_since == region.clock.now()
    assert region.refused(**into(OPEN_END)) == ["InvalidCapacityReservationState"]
    raising = FleetRegion(raises_reservation_errors=True)
    reserve(raising, taken=1)
    assert raising.raised("create_fleet", **fleet_request(**into(OPEN_END))) == FULL[0]


def test_nothing_more_is_paid_until_the_reservation_is_over(region: FleetRegion) -> None:
    reserve(region, ends_in=60.0, expires_late=timedelta(minutes=30))
    instance_id = region.ready(**into(OPEN_END))
    (line,) = region.simulator.instances.bill
    region.clock.advance(89 * 60)

    assert line.cost_usd(region.clock.now()) == 0.0
    region.clock.advance(61 * 60)
    assert described(region, OPEN_END)["State"] == "expired"
    assert region.state(instance_id) == "running"
    assert line.cost_usd(region.clock.now()) == pytest.approx(0.5, abs=0.02)


def test_the_end_of_a_block_is_announced_and_its_instances_end_before_it(region: FleetRegion) -> None:
    reserve(region, BLOCK, ends_in=60.0, total=2)
    instance_id = region.ready(**into(BLOCK))
    ending: list[list[str]] = []
    region.simulator.reservations.on_ending.append(
        lambda _reservation, hosts: ending.append([each.instance_id for each in hosts])
    )
    region.clock.run_until(lambda: bool(region.details(WARNING)), 3_600)
    warned_at = region.clock.now()
    (warning,) = region.details(WARNING)
    assert warning["capacity-reservation-id"] == BLOCK
    assert region.state(instance_id) == "running"

    region.clock.run_until(lambda: bool(ending), 3_600)

    assert region.clock.now() - warned_at == timedelta(minutes=10)
    assert ending == [[instance_id]]
    assert region.state(instance_id) == "shutting-down"
    region.clock.advance(31 * 60)
    assert described(region, BLOCK)["State"] == "expired"
    assert sum(line.cost_usd(region.clock.now()) for line in region.simulator.instances.bill) == 0.0


def test_nobody_can_cancel_a_block(region: FleetRegion) -> None:
    reserve(region, BLOCK, ends_in=600.0)

    with pytest.raises(Exception, match="UnsupportedOperation"):
        region.simulator.reservations.cancel(BLOCK)


def test_reservations_are_described_in_pages_and_by_filters(region: FleetRegion) -> None:
    reserve(region)
    reserve(region, BLOCK, ends_in=600.0, owner="444455556666")

    first = region.ec2.describe_capacity_reservations(MaxResults=1)
    second = region.ec2.describe_capacity_reservations(MaxResults=1, NextToken=first["NextToken"])
    blocks = region.ec2.describe_capacity_reservations(Filters=[{"Name": "owner-id", "Values": ["444455556666"]}])

    both = [*first["CapacityReservations"], *second["CapacityReservations"]]
    assert [each["CapacityReservationId"] for each in both] == [OPEN_END, BLOCK]
    assert [each["ReservationType"] for each in both] == ["default", "capacity-block"]
    assert blocks["CapacityReservations"] == both[1:]
    for ids, code in ((["cr-1"], "Malformed"), (["cr-00000000000000000"], "NotFound")):
        raised = region.raised("describe_capacity_reservations", CapacityReservationIds=ids)
        assert raised == f"InvalidCapacityReservationId.{code}"
    named = [{"Name": "tenancy", "Values": ["default"]}]
    assert region.raised("describe_capacity_reservations", Filters=named) == "InvalidParameterValue"


def test_the_caller_needs_both_permissions_on_the_reservation() -> None:
    named = f"arn:aws:ec2:us-east-1:111122223333:capacity-reservation/{OPEN_END}"
    for denied in ("ec2:CreateFleet", "ec2:RunInstances"):
        allowed = {"Effect": "Allow", "Action": "*", "Resource": "*"}
        kept_off = {"Effect": "Deny", "Action": denied, "Resource": named}
        region = FleetRegion(authorize=PolicyAuthorizer({"AKIATEST": [{"Statement": [allowed, kept_off]}]}))
        reserve(region)
        if denied == "ec2:RunInstances":
            assert region.refused(**into(OPEN_END)) == ["UnauthorizedOperation"]
        else:
            assert region.raised("create_fleet", **fleet_request(**into(OPEN_END))) == "UnauthorizedOperation"
        assert region.create()["Instances"]
