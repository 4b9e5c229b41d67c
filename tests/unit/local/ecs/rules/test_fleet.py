from typing import Any

import pytest

from fakes.fleet_region import fleet_request, override
from relaunch_local.ecs import EcsError
from relaunch_local.ecs.rules.fleet import FleetTarget, parse_create_fleet


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return a valid request in which the member at this path has another value; None: it is left out."""
    request = fleet_request()
    config = request["LaunchTemplateConfigs"][0]
    holders = {
        "target": request["TargetCapacitySpecification"],
        "template": config["LaunchTemplateSpecification"],
        "override": config["Overrides"][0],
        "config": config,
    }
    where, _, name = path.rpartition(".")
    holder = holders.get(where, request)
    if value is None:
        del holder[name]
    else:
        holder[name] = value
    return request


RESERVED = {
    "ReservationTypes": ["capacity-block"],
    "CapacityReservationTarget": {"CapacityReservationIds": ["cr-0b10c0b10c0b10c00"]},
}
BOTH_TYPES = ["capacity-block", "on-demand-capacity-reservation"]
COMBINED = "InvalidParameterCombination"


def tags(kind: str, *pairs: tuple[str, str]) -> dict[str, Any]:
    return {"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in pairs]}


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("Type", "instent", "InvalidParameterValue"),
        ("Type", None, "UnsupportedOperation"),
        ("Type", "request", "UnsupportedOperation"),
        ("ClientToken", "t" * 65, "InvalidClientToken"),
        ("ClientToken", "tökén", "InvalidClientToken"),
        ("TargetCapacitySpecification", None, "MissingParameter"),
        ("target.TotalTargetCapacity", None, "MissingParameter"),
        ("target.TotalTargetCapacity", 0, "InvalidParameterValue"),
        ("target.TotalTargetCapacity", 10_001, "TargetCapacityLimitExceeded"),
        ("target.DefaultTargetCapacityType", None, "MissingParameter"),
        ("target.DefaultTargetCapacityType", "reserved", "InvalidParameterValue"),
        ("target.DefaultTargetCapacityType", "capacity-block", "UnsupportedOperation"),
        ("target.SpotTargetCapacity", 1, "UnsupportedOperation"),
        ("SpotOptions", {"AllocationStrategy": "lowest-price"}, "InvalidParameterCombination"),
        ("OnDemandOptions", {"AllocationStrategy": "capacity-optimized"}, "InvalidParameterValue"),
        ("OnDemandOptions", {"MaxTotalPrice": "1.0"}, "UnsupportedOperation"),
        ("OnDemandOptions", {"MinTargetCapacity": 0, "SingleInstanceType": True}, "InvalidParameterValue"),
        ("OnDemandOptions", {"MinTargetCapacity": 2, "SingleInstanceType": True}, "InvalidParameterValue"),
        ("OnDemandOptions", {"MinTargetCapacity": 1}, "MissingParameter"),
        ("OnDemandOptions", {"MinTargetCapacity": 1, "SingleInstanceType": False}, "MissingParameter"),
        ("SpotOptions", {"MinTargetCapacity": 1, "SingleInstanceType": True}, "InvalidParameterCombination"),
        ("OnDemandOptions", {"InstanceInterruptionBehavior": "terminate"}, "UnsupportedOperation"),
        ("ExcessCapacityTerminationPolicy", "termination", "UnsupportedOperation"),
        ("LaunchTemplateConfigs", None, "MissingParameter"),
        ("LaunchTemplateConfigs", [], "MissingParameter"),
        ("LaunchTemplateConfigs", fleet_request()["LaunchTemplateConfigs"] * 51, "InvalidParameterValue"),
        ("config.LaunchTemplateSpecification", None, "MissingParameter"),
        ("config.Overrides", [], "UnsupportedOperation"),
        ("config.Overrides", [override()] * 301, "InvalidParameterValue"),
        ("template.Version", None, "MissingParameter"),
        ("template.LaunchTemplateId", None, "InvalidParameterCombination"),
        ("template.LaunchTemplateName", "hosts", "InvalidParameterCombination"),
        ("override.InstanceType", None, "MissingParameter"),
        ("override.InstanceType", "g5", "InvalidParameterValue"),
        ("override.SubnetId", None, "UnsupportedOperation"),
        ("override.SubnetId", "subnet-a, subnet-b", "InvalidParameterValue"),
        ("override.Priority", -1.0, "InvalidParameterValue"),
        ("override.ImageId", "ami-1", "InvalidAMIID.Malformed"),
        ("override.MaxPrice", "0.5", "UnsupportedOperation"),
        ("TagSpecifications", [tags("spot-instances-request", ("a", "b"))], "InvalidParameterValue"),
        ("TagSpecifications", [tags("instance")], "InvalidParameterValue"),
        ("TagSpecifications", [tags("instance", ("a", "b"))] * 2, "InvalidParameterValue"),
        ("TagSpecifications", [tags("instance", ("aws:a", "b"))], "InvalidParameterValue"),
        ("TagSpecifications", [tags("instance", ("a", "b"), ("a", "c"))], "InvalidParameterValue"),
        ("TagSpecifications", [{"Tags": [{"Key": "a", "Value": "b"}]}], "MissingParameter"),
    ],
)
def test_an_invalid_request_is_refused(path: str, value: Any, code: str) -> None:
    with pytest.raises(EcsError) as caught:
        parse_create_fleet(changed(path, value))
    assert caught.value.code == code


def test_hibernation_is_not_simulated() -> None:
    options = {"InstanceInterruptionBehavior": "hibernate"}

    with pytest.raises(EcsError, match=r"UnsupportedOperation: The simulator does not hibernate"):
        parse_create_fleet(fleet_request(market="spot", SpotOptions=options))


@pytest.mark.parametrize(
    ("market", "options", "strategy"),
    [
        ("spot", {}, "lowest-price"),
        ("spot", {"SpotOptions": {"AllocationStrategy": "price-capacity-optimized"}}, "price-capacity-optimized"),
        ("spot", {"SpotOptions": {"InstanceInterruptionBehavior": "terminate"}}, "lowest-price"),
        ("on-demand", {}, "lowest-price"),
        ("on-demand", {"OnDemandOptions": {"AllocationStrategy": "prioritized"}}, "prioritized"),
    ],
)
def test_each_market_has_strategies_of_its_own(market: str, options: dict[str, Any], strategy: str) -> None:
    fleet = parse_create_fleet(fleet_request(market=market, **options))

    assert (fleet.market, fleet.strategy) == (market, strategy)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, "MissingParameter"),
        ({"ReservedCapacityOptions": {"ReservationTypes": ["capacity-block"]}}, "MissingParameter"),
        ({"ReservedCapacityOptions": RESERVED, "OnDemandOptions": {"AllocationStrategy": "lowest-price"}}, COMBINED),
        ({"ReservedCapacityOptions": {**RESERVED, "ReservationTypes": ["default"]}}, "InvalidParameterValue"),
        ({"ReservedCapacityOptions": {**RESERVED, "ReservationTypes": BOTH_TYPES}}, "UnsupportedOperation"),
        ({"ReservedCapacityOptions": {**RESERVED, "ReservedCapacityFallbackOptions": {}}}, "UnsupportedOperation"),
    ],
)
def test_a_request_for_reserved_capacity_names_one_reservation(options: dict[str, Any], code: str) -> None:
    fleet = parse_create_fleet(fleet_request(market="reserved-capacity", ReservedCapacityOptions=RESERVED))
    assert (fleet.reservation_id, fleet.reservation_type) == ("cr-0b10c0b10c0b10c00", "capacity-block")

    with pytest.raises(EcsError) as caught:
        parse_create_fleet(fleet_request(market="reserved-capacity", **options))
    assert caught.value.code == code


def test_tags_are_by_resource_type() -> None:
    given = [tags("instance", ("a", "1"), ("b", "2")), tags("fleet", ("a", "3"))]

    assert parse_create_fleet(fleet_request(TagSpecifications=given)).tags == {
        "instance": {"a": "1", "b": "2"},
        "fleet": {"a": "3"},
    }


def target_of(total: int, market: str = "spot", **options: Any) -> FleetTarget:
    """Return the target of a request for so many instances with these options."""
    request = fleet_request(market=market, **{"SpotOptions" if market == "spot" else "OnDemandOptions": options})
    request["TargetCapacitySpecification"]["TotalTargetCapacity"] = total
    return parse_create_fleet(request).target


@pytest.mark.parametrize("market", ["spot", "on-demand"])
def test_a_minimum_needs_one_type_or_one_zone(market: str) -> None:
    of_one_type = target_of(8, market, MinTargetCapacity=8, SingleInstanceType=True)

    assert of_one_type == FleetTarget(8, 8, is_of_one_type=True)
    assert target_of(8, market, MinTargetCapacity=4, SingleAvailabilityZone=True).is_in_one_zone
    assert target_of(8, market) == FleetTarget(8)


def test_a_minimum_is_at_most_a_thousand() -> None:
    assert target_of(1_001, MinTargetCapacity=1_000, SingleInstanceType=True).minimum == 1_000
    with pytest.raises(EcsError, match=r"InvalidParameterValue: MinTargetCapacity must be 1 to 1000"):
        target_of(1_001, MinTargetCapacity=1_001, SingleInstanceType=True)


def test_several_instances_are_not_spread_over_pools() -> None:
    assert target_of(1, AllocationStrategy="diversified").total == 1
    with pytest.raises(EcsError, match="UnsupportedOperation"):
        target_of(2, AllocationStrategy="diversified")


def test_reserved_capacity_has_no_minimum() -> None:
    options = {**RESERVED, "MinTargetCapacity": 1}

    with pytest.raises(EcsError, match="UnknownParameter"):
        parse_create_fleet(fleet_request(market="reserved-capacity", ReservedCapacityOptions=options))
