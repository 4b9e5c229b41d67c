from typing import Any

import pytest

from fakes.fleet_region import fleet_request, override
from relaunch_local.ecs import EcsError
from relaunch_local.ecs.rules.fleet import parse_create_fleet


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
        ("target.TotalTargetCapacity", 2, "UnsupportedOperation"),
        ("target.DefaultTargetCapacityType", None, "MissingParameter"),
        ("target.DefaultTargetCapacityType", "reserved", "InvalidParameterValue"),
        ("target.DefaultTargetCapacityType", "capacity-block", "UnsupportedOperation"),
        ("target.SpotTargetCapacity", 1, "UnsupportedOperation"),
        ("SpotOptions", {"AllocationStrategy": "lowest-price"}, "InvalidParameterCombination"),
        ("OnDemandOptions", {"AllocationStrategy": "capacity-optimized"}, "InvalidParameterValue"),
        ("OnDemandOptions", {"MaxTotalPrice": "1.0"}, "UnsupportedOperation"),
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
