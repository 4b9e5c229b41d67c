from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.fleet_region import FleetRegion, override
from relaunch_local.ecs import FleetFault, HostPlan, Purchase
from relaunch_local.ecs.engine.reservations import CapacityReservation

A = override(AvailabilityZone="us-east-1a")
B = override(subnet="subnet-b", AvailabilityZone="us-east-1b")
DRY = "InsufficientInstanceCapacity"
BLOCK = "cr-0b10c0b10c0b10c00"
SPOT = "SpotOptions"


def several(count: int, *, minimum: int | None = None, alike: str = "Type", **members: Any) -> dict[str, Any]:
    """Return the members of a request for so many spot instances, of one type, in one `Zone`, or both."""
    names = {"Type": ["SingleInstanceType"], "Zone": ["SingleAvailabilityZone"]}.get(
        alike, ["SingleInstanceType", "SingleAvailabilityZone"]
    )
    options = {} if minimum is None else {"MinTargetCapacity": minimum, **dict.fromkeys(names, True)}
    target = {"TotalTargetCapacity": count, "DefaultTargetCapacityType": "spot"}
    return {"market": "spot", "TargetCapacitySpecification": target, SPOT: options, **members}


def all_or_nothing(count: int, **members: Any) -> dict[str, Any]:
    return several(count, minimum=count, alike="both", **members)


def stock(region: FleetRegion, instances: int, zone: str = "us-east-1a") -> None:
    region.simulator.set_capacity("g5.xlarge", Purchase.SPOT, instances, zone=zone)


def ids_of(answer: dict[str, Any]) -> list[str]:
    return [each for entry in answer["Instances"] for each in entry["InstanceIds"]]


def codes_of(answer: dict[str, Any]) -> list[str]:
    return [each["ErrorCode"] for each in answer["Errors"]]


@pytest.fixture
def region() -> FleetRegion:
    return FleetRegion()


def test_one_entry_has_the_ids_of_all_that_were_launched_in_a_pool(region: FleetRegion) -> None:
    tags = [{"Key": "relaunch:group", "Value": "g-1"}]
    answer = region.create(A, **all_or_nothing(4, TagSpecifications=[{"ResourceType": "instance", "Tags": tags}]))
    region.clock.advance(200)

    (entry,) = answer["Instances"]
    found = region.ec2.describe_instances(Filters=[{"Name": "tag:relaunch:group", "Values": ["g-1"]}])
    (launch,) = found["Reservations"]
    assert codes_of(answer) == []
    assert len(set(entry["InstanceIds"])) == 4
    assert [each["InstanceId"] for each in launch["Instances"]] == entry["InstanceIds"]
    assert {each["ClientToken"] for each in launch["Instances"]} == {f"{answer['FleetId']}-0"}
    registered = Counter(
        each["value"]
        for row in region.registrations()
        for each in row["attributes"]
        if each["name"] == "relaunch.group"
    )
    assert registered == {"g-1": 4}, "user data makes an attribute of the tag"
    assert [line.price_usd_per_hour for line in region.simulator.instances.bill] == [0.5] * 4


def test_nothing_is_launched_below_the_minimum(region: FleetRegion) -> None:
    stock(region, 3)

    answer = region.create(A, **all_or_nothing(4))

    assert (answer["Instances"], codes_of(answer)) == ([], [DRY])
    assert region.simulator.instances.bill == []
    assert len(ids_of(region.create(A, **all_or_nothing(3)))) == 3


def test_above_the_minimum_there_are_as_many_as_ec2_has(region: FleetRegion) -> None:
    stock(region, 3)

    answer = region.create(A, **several(4, minimum=2))

    assert (len(ids_of(answer)), codes_of(answer)) == (3, [DRY])


def test_without_a_minimum_pools_are_filled_one_after_the_other(region: FleetRegion) -> None:
    stock(region, 2)
    stock(region, 1, "us-east-1b")

    answer = region.create(A, B, **several(4))

    assert [(each["AvailabilityZone"], len(each["InstanceIds"])) for each in answer["Instances"]] == [
        ("us-east-1b", 1),
        ("us-east-1a", 2),
    ]
    assert codes_of(answer) == [DRY, DRY]


def test_one_type_may_be_spread_over_zones_and_one_zone_not(region: FleetRegion) -> None:
    stock(region, 2)
    stock(region, 2, "us-east-1b")

    assert region.create(A, B, **several(4, minimum=4, alike="Zone"))["Instances"] == []
    assert len(region.create(A, B, **several(4, minimum=4))["Instances"]) == 2


@pytest.mark.parametrize(("tried", "codes"), [(1, [DRY, "UnfulfillableCapacity"]), (2, [DRY, DRY])])
def test_a_missed_minimum_has_an_error_of_each_override(tried: int, codes: list[str]) -> None:
    region = FleetRegion(choices_tried=tried)
    stock(region, 2)
    stock(region, 2, "us-east-1b")

    answer = region.create(A, B, **several(4, minimum=4, alike="Zone"))

    assert (answer["Instances"], codes_of(answer)) == ([], codes)


@pytest.mark.parametrize(("tried", "launched"), [(1, 0), (2, 4)])
def test_whether_the_next_zone_is_tried_is_a_setting(tried: int, launched: int) -> None:
    region = FleetRegion(choices_tried=tried)
    stock(region, 3, "us-east-1b")

    assert len(ids_of(region.create(A, B, **several(4, minimum=4, alike="Zone")))) == launched


def test_strategies_that_know_the_stock_look_for_the_number_that_is_asked_for(region: FleetRegion) -> None:
    stock(region, 3, "us-east-1b")
    request = all_or_nothing(4)
    request[SPOT] |= {"AllocationStrategy": "price-capacity-optimized"}

    answer = region.create(A, B, **request)

    assert [each["AvailabilityZone"] for each in answer["Instances"]] == ["us-east-1a"]


def test_the_quota_counts_the_vcpus_of_all(region: FleetRegion) -> None:
    region.simulator.fleets.pools.vcpu_quotas["G and VT", Purchase.SPOT] = 15

    answer = region.create(A, **all_or_nothing(4))

    assert (answer["Instances"], codes_of(answer)) == ([], ["MaxSpotInstanceCountExceeded"])
    assert len(ids_of(region.create(A, **all_or_nothing(3)))) == 3


def test_the_subnet_has_an_address_for_each(region: FleetRegion) -> None:
    region.simulator.fleets.pools.addresses["subnet-a"] = 3

    assert codes_of(region.create(A, **all_or_nothing(4))) == ["InsufficientFreeAddressesInSubnet"]
    assert len(ids_of(region.create(A, **several(4)))) == 3


def test_the_closest_limit_is_the_one_that_is_named(region: FleetRegion) -> None:
    region.simulator.fleets.pools.addresses["subnet-a"] = 2
    stock(region, 3)

    assert codes_of(region.create(A, **several(4))) == ["InsufficientFreeAddressesInSubnet"]


def test_instances_without_tokens_of_the_rate_are_not_launched(region: FleetRegion) -> None:
    assert len(ids_of(region.create(A, **several(998)))) == 998

    answer = region.create(A, **all_or_nothing(4))

    assert (answer["Instances"], codes_of(answer)) == ([], ["RequestLimitExceeded"])
    assert len(ids_of(region.create(A, **several(4)))) == 2


def test_a_capacity_block_is_filled_as_far_as_it_goes(region: FleetRegion) -> None:
    now = region.clock.now()
    block = CapacityReservation(
        BLOCK, "g5.xlarge", "us-east-1a", 3, "capacity-block", now, ends_at=now + timedelta(days=1)
    )
    region.simulator.reservations.add(block)
    options = {
        "ReservationTypes": ["capacity-block"],
        "CapacityReservationTarget": {"CapacityReservationIds": [BLOCK]},
    }
    target = {"TotalTargetCapacity": 4, "DefaultTargetCapacityType": "reserved-capacity"}

    answer = region.create(A, ReservedCapacityOptions=options, TargetCapacitySpecification=target)

    assert (len(ids_of(answer)), codes_of(answer)) == (3, ["ReservationCapacityExceeded"])


def test_number_and_minimum_are_part_of_the_request(region: FleetRegion) -> None:
    answer = region.create(A, **all_or_nothing(4, ClientToken="t"))

    assert region.create(A, **all_or_nothing(4, ClientToken="t")) == answer
    for other in (all_or_nothing(3, ClientToken="t"), several(4, minimum=3, alike="both", ClientToken="t")):
        with pytest.raises(ClientError, match="IdempotentParameterMismatch"):
            region.create(A, **other)
    assert len(region.simulator.instances.bill) == 4


def test_types_are_those_of_botocores_model(region: FleetRegion) -> None:
    wrong = several(2)
    wrong[SPOT] = {"MinTargetCapacity": "2", "SingleInstanceType": True}

    with pytest.raises(ClientError, match="ParamValidationError"):
        region.create(A, **wrong)


def test_a_fault_launches_a_part_below_the_minimum(region: FleetRegion) -> None:
    region.simulator.fleets.faults.append(FleetFault(launched=2))

    answer = region.create(A, **all_or_nothing(4, ClientToken="t"))

    assert (len(ids_of(answer)), codes_of(answer)) == (2, [DRY])
    assert region.living() == 2
    assert region.create(A, **all_or_nothing(4, ClientToken="t")) == answer


def test_a_fault_names_an_error_beside_all_instances(region: FleetRegion) -> None:
    region.simulator.fleets.faults.append(FleetFault(beside=DRY))

    answer = region.create(A, **all_or_nothing(4))

    assert (len(ids_of(answer)), codes_of(answer)) == (4, [DRY])


def test_a_configuration_error_may_come_with_unfulfillable_capacity(region: FleetRegion) -> None:
    fault = FleetFault("InvalidParameterCombination", and_code="UnfulfillableCapacity")
    region.simulator.fleets.faults.append(fault)

    answer = region.create(A, **all_or_nothing(4))

    assert codes_of(answer) == ["InvalidParameterCombination", "UnfulfillableCapacity"]
    assert answer["Instances"] == []


def test_instances_of_one_fleet_come_to_light_one_after_the_other(region: FleetRegion) -> None:
    region.simulator.fleets.plans.extend(HostPlan(visibility=each) for each in (1.0, 60.0, 30.0))
    tags = [{"Key": "relaunch:group", "Value": "g-1"}]
    launched = ids_of(
        region.create(A, **all_or_nothing(3, TagSpecifications=[{"ResourceType": "instance", "Tags": tags}]))
    )

    def found() -> set[str]:
        rows = region.ec2.describe_instances(Filters=[{"Name": "tag:relaunch:group", "Values": ["g-1"]}])
        return {each["InstanceId"] for row in rows["Reservations"] for each in row["Instances"]}

    seen = []
    for _ in range(3):
        region.clock.advance(25)
        seen.append(found())
    assert seen == [{launched[0]}, {launched[0], launched[2]}, set(launched)]


def test_each_instance_of_a_fleet_has_a_host_plan_of_its_own(region: FleetRegion) -> None:
    region.simulator.fleets.plans.extend((HostPlan(joins=False), HostPlan(gpus=3), HostPlan()))
    big = override("g5.12xlarge", AvailabilityZone="us-east-1a")
    silent, fewer, sound = ids_of(region.create(big, **all_or_nothing(3)))
    region.clock.advance(200)

    registered = {each["ec2InstanceId"]: each for each in region.registrations()}
    gpus = {
        name: len(each["stringSetValue"])
        for name, row in registered.items()
        for each in row["registeredResources"]
        if each["name"] == "GPU"
    }
    assert silent not in registered
    assert gpus == {fewer: 3, sound: 4}
