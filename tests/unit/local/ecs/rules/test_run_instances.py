from typing import Any

import pytest

from relaunch_local.ecs import EcsError
from relaunch_local.ecs.rules.run_instances import parse_run_instances

BLOCK = "cr-0b10c0b10c0b10c00"
REQUEST: dict[str, Any] = {
    "MinCount": 2,
    "MaxCount": 2,
    "LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": "2"},
    "InstanceType": "g5.xlarge",
    "SubnetId": "subnet-a",
    "InstanceMarketOptions": {"MarketType": "capacity-block"},
    "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": BLOCK}},
}


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("MinCount", None, "MissingParameter"),
        ("MaxCount", None, "MissingParameter"),
        ("MinCount", 0, "InvalidParameterValue"),
        ("MaxCount", 1, "InvalidParameterValue"),
        ("ClientToken", "t" * 65, "InvalidClientToken"),
        ("LaunchTemplate", None, "MissingParameter"),
        ("LaunchTemplate", {"Version": "2"}, "InvalidParameterCombination"),
        ("InstanceType", None, "MissingParameter"),
        ("SubnetId", None, "UnsupportedOperation"),
        ("ImageId", "ami-1", "InvalidAMIID.Malformed"),
        ("InstanceMarketOptions", {"MarketType": "spot"}, "UnsupportedOperation"),
        ("InstanceMarketOptions", {"MarketType": "gift"}, "InvalidParameterValue"),
        ("InstanceMarketOptions", {}, "MissingParameter"),
        ("CapacityReservationSpecification", None, "MissingParameter"),
        ("CapacityReservationSpecification", {"CapacityReservationPreference": "open"}, "UnsupportedOperation"),
        ("TagSpecifications", [{"ResourceType": "fleet", "Tags": []}], "InvalidParameterValue"),
        ("UserData", "IyEvYmluL3No", "UnsupportedOperation"),
    ],
)
def test_an_invalid_request_is_refused(name: str, value: Any, code: str) -> None:
    request = {**REQUEST, name: value}
    if value is None:
        del request[name]

    with pytest.raises(EcsError) as caught:
        parse_run_instances(request)
    assert caught.value.code == code


def test_the_default_version_of_a_template_is_taken_where_none_is_named() -> None:
    request = {**REQUEST, "LaunchTemplate": {"LaunchTemplateId": "lt-1"}}

    found = parse_run_instances(request)

    assert found.place.template == {"LaunchTemplateId": "lt-1", "Version": "$Default"}
    assert (found.minimum, found.total, found.market, found.reservation_id) == (2, 2, "capacity-block", BLOCK)
