from datetime import datetime, timedelta
from typing import Any

import pytest

from fakes.fleet_region import FleetRegion
from relaunch_local.ecs import FleetFault, HostPlan, Purchase
from relaunch_local.ecs.engine.reservations import CapacityReservation
from relaunch_local.iam.permission import Permission

BLOCK = "cr-0b10c0b10c0b10c00"
FULL = "ReservationCapacityExceeded"


def reserve(region: FleetRegion, total: int, kind: str = "capacity-block", starts_at: datetime | None = None) -> None:
    now = region.clock.now()
    ends_at = now + timedelta(days=1)
    region.simulator.reservations.add(
        CapacityReservation(BLOCK, "g5.xlarge", "us-east-1a", total, kind, starts_at or now, ends_at=ends_at)
    )


def wanted(count: int, *, at_most: int | None = None, market: str = "capacity-block", **members: Any) -> dict[str, Any]:
    """Return the parameters of RunInstances for so many instances in the block; without a market, on-demand."""
    inside = {
        "InstanceMarketOptions": {"MarketType": "capacity-block"},
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": BLOCK}},
    }
    return {
        "MinCount": count,
        "MaxCount": at_most or count,
        "LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": "2"},
        "InstanceType": "g5.xlarge",
        "SubnetId": "subnet-a",
        **(inside if market else {}),
        **members,
    }


@pytest.fixture
def region() -> FleetRegion:
    return FleetRegion()


def run(region: FleetRegion, *arguments: Any, **members: Any) -> list[str]:
    """Call RunInstances; return the IDs of what it launched."""
    answer = region.ec2.run_instances(**wanted(*arguments, **members))
    return [each["InstanceId"] for each in answer["Instances"]]


def test_all_instances_are_launched_into_the_block_by_one_launch(region: FleetRegion) -> None:
    reserve(region, 3)
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "relaunch:group", "Value": "g-1"}]}]

    answer = region.ec2.run_instances(**wanted(3, ClientToken="t", TagSpecifications=tags))
    region.clock.advance(200)

    (launch,) = region.ec2.describe_instances(Filters=[{"Name": "client-token", "Values": ["t"]}])["Reservations"]
    assert launch["ReservationId"] == answer["ReservationId"]
    assert {each["CapacityReservationId"] for each in launch["Instances"]} == {BLOCK}
    assert len({each["PrivateIpAddress"] for each in answer["Instances"]}) == 3
    described = {each["Key"]: each["Value"] for each in launch["Instances"][0]["Tags"]}
    assert described["relaunch:group"] == "g-1"
    assert "aws:ec2:fleet-id" not in described
    assert len(region.registrations()) == 3


@pytest.mark.parametrize(("minimum", "launched"), [(4, 0), (3, 3), (1, 3)])
def test_none_is_launched_if_the_minimum_is_not_met(region: FleetRegion, minimum: int, launched: int) -> None:
    reserve(region, 3)
    request = wanted(minimum, at_most=4)

    if launched:
        assert len(region.ec2.run_instances(**request)["Instances"]) == launched
    else:
        assert region.raised("run_instances", **request) == FULL
    assert region.living() == launched


def test_on_demand_is_limited_by_stock_and_quota(region: FleetRegion) -> None:
    region.simulator.set_capacity("g5.xlarge", Purchase.ON_DEMAND, 2)
    assert region.raised("run_instances", **wanted(3, market="")) == "InsufficientInstanceCapacity"
    region.simulator.fleets.pools.vcpu_quotas["G and VT", Purchase.ON_DEMAND] = 4

    assert region.raised("run_instances", **wanted(2, market="")) == "VcpuLimitExceeded"
    assert len(run(region, 1, market="")) == 1


def test_the_same_token_gives_the_same_instances_and_another_request_none(region: FleetRegion) -> None:
    reserve(region, 4)
    first = run(region, 2, ClientToken="t")

    assert run(region, 2, ClientToken="t") == first
    assert region.raised("run_instances", **wanted(1, ClientToken="t")) == "IdempotentParameterMismatch"
    assert region.create(ClientToken="t")["Instances"], "the tokens of CreateFleet are others"
    assert region.living() == 3


def test_a_token_whose_instances_have_ended_launches_nothing(region: FleetRegion) -> None:
    reserve(region, 4)
    first = run(region, 2, ClientToken="t")
    region.clock.advance(60)
    region.ec2.terminate_instances(InstanceIds=first[:1])
    assert run(region, 2, ClientToken="t") == first
    region.ec2.terminate_instances(InstanceIds=first)

    assert region.raised("run_instances", **wanted(2, ClientToken="t")) == "IdempotentInstanceTerminated"
    assert region.living() == 0


def test_a_refused_launch_leaves_its_token_free(region: FleetRegion) -> None:
    reserve(region, 1)
    assert region.raised("run_instances", **wanted(2, ClientToken="t")) == FULL
    region.simulator.reservations.by_id[BLOCK].total = 2

    assert len(run(region, 2, ClientToken="t")) == 2


@pytest.mark.parametrize(
    ("kind", "market"), [("on-demand-capacity-reservation", "capacity-block"), ("capacity-block", "")]
)
def test_the_market_is_that_of_the_reservation(region: FleetRegion, kind: str, market: str) -> None:
    reserve(region, 1, kind)
    target = {"CapacityReservationTarget": {"CapacityReservationId": BLOCK}}

    request = wanted(1, market=market, CapacityReservationSpecification=target)

    assert region.raised("run_instances", **request) == "InvalidParameterValue"


def test_the_rate_of_launches_is_limited(region: FleetRegion) -> None:
    for _ in range(5):
        run(region, 1, market="")

    assert region.raised("run_instances", **wanted(1, market="")) == "RequestLimitExceeded"


def test_a_dry_run_launches_nothing(region: FleetRegion) -> None:
    assert region.raised("run_instances", **wanted(1, market="", DryRun=True)) == "DryRunOperation"
    assert region.living() == 0


def test_the_role_must_allow_the_launch() -> None:
    asked: list[Permission] = []

    def authorize(permission: Permission) -> bool:
        asked.append(permission)
        return not permission.resource.endswith(BLOCK)

    region = FleetRegion(authorize=authorize)
    reserve(region, 1)

    assert region.raised("run_instances", **wanted(1)) == "UnauthorizedOperation"
    markets = {each.context["ec2:InstanceMarketType"] for each in asked if "ec2:InstanceMarketType" in each.context}
    assert markets == {"capacity-block"}
    assert len(run(region, 1, market="")) == 1


def test_each_instance_has_a_host_plan_of_its_own(region: FleetRegion) -> None:
    reserve(region, 2)
    region.simulator.fleets.plans.extend((HostPlan(joins=False), HostPlan()))

    run(region, 2)
    region.clock.advance(200)

    assert len(region.registrations()) == 1


def test_a_block_that_has_not_started_is_not_active_yet(region: FleetRegion) -> None:
    reserve(region, 2, starts_at=region.clock.now() + timedelta(hours=1))

    assert region.raised("run_instances", **wanted(2)) == "InvalidCapacityReservationState.PendingActivation"
    region.clock.advance(3_601)
    assert len(run(region, 2)) == 2


def test_a_fault_refuses_a_launch_or_launches_a_part(region: FleetRegion) -> None:
    reserve(region, 3)
    region.simulator.fleets.faults.append(FleetFault("InsufficientInstanceCapacity"))

    assert region.raised("run_instances", **wanted(3)) == "InsufficientInstanceCapacity"
    region.simulator.fleets.faults.append(FleetFault(launched=2))
    assert len(run(region, 3)) == 2
