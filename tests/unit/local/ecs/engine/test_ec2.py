from datetime import timedelta

import pytest

from fakes.simulated_region import SimulatedRegion
from relaunch_local.ecs import EcsError, SpotPrice
from relaunch_local.ecs.clock import EPOCH
from relaunch_local.ecs.engine.ec2 import zone_id

HOUR = timedelta(hours=1)
PRICES = [
    SpotPrice("g5.xlarge", "us-east-1a", 0.3, EPOCH - 5 * HOUR),
    SpotPrice("g5.xlarge", "us-east-1a", 0.4, EPOCH - 3 * HOUR),
    SpotPrice("g5.xlarge", "us-east-1a", 0.5, EPOCH - HOUR),
    SpotPrice("g5.12xlarge", "us-east-1b", 2.0, EPOCH - 9 * HOUR),
]


@pytest.mark.parametrize(
    ("request_", "prices"),
    [
        pytest.param({}, ["0.500000", "0.400000", "0.300000", "2.000000"], id="all-newest-first"),
        pytest.param({"StartTime": EPOCH}, ["0.500000", "2.000000"], id="in-force-now"),
        pytest.param({"StartTime": EPOCH - 2 * HOUR}, ["0.500000", "0.400000", "2.000000"], id="in-force-and-changes"),
        pytest.param(
            {"StartTime": EPOCH - 4 * HOUR, "EndTime": EPOCH - 2 * HOUR}, ["0.400000", "0.300000", "2.000000"]
        ),
        pytest.param({"StartTime": EPOCH, "AvailabilityZone": "us-east-1b"}, ["2.000000"], id="zone"),
        pytest.param({"StartTime": EPOCH, "InstanceTypes": ["g5.xlarge"]}, ["0.500000"], id="type"),
        pytest.param(
            {"StartTime": EPOCH, "Filters": [{"Name": "instance-type", "Values": ["g5.12xlarge"]}]},
            ["2.000000"],
            id="filter",
        ),
        pytest.param({"ProductDescriptions": ["Windows"]}, [], id="windows"),
    ],
)
def test_spot_prices_are_those_in_force_at_the_start_and_the_changes_since(
    request_: dict[str, object], prices: list[str]
) -> None:
    region = SimulatedRegion(spot_prices=PRICES)

    history = region.simulator.call_ec2("DescribeSpotPriceHistory", request_)["SpotPriceHistory"]

    assert [each["SpotPrice"] for each in history] == prices


def test_instances_are_filtered_and_an_unknown_filter_is_refused(region: SimulatedRegion) -> None:
    first = region.instance()
    region.instance("g5.12xlarge", zone="us-east-1b")
    by_zone = {"Filters": [{"Name": "availability-zone", "Values": ["us-east-1a"]}]}

    reservations = region.simulator.call_ec2("DescribeInstances", by_zone)["Reservations"]

    assert [each["InstanceId"] for row in reservations for each in row["Instances"]] == [first]
    with pytest.raises(EcsError, match="InvalidParameterValue"):
        region.simulator.call_ec2("DescribeInstances", {"Filters": [{"Name": "colour", "Values": ["red"]}]})


def test_an_unknown_instance_type_is_refused(region: SimulatedRegion) -> None:
    with pytest.raises(EcsError, match="InvalidInstanceType"):
        region.simulator.call_ec2("DescribeInstanceTypes", {"InstanceTypes": ["g9.huge"]})


@pytest.mark.parametrize(
    ("zone", "expected"),
    [("us-east-1a", "use1-az1"), ("eu-central-1c", "euc1-az3"), ("ap-southeast-2b", "apse2-az2")],
)
def test_a_zone_has_an_id_of_the_form_that_ec2_gives_it(zone: str, expected: str) -> None:
    assert zone_id(zone) == expected


def test_a_price_without_a_time_is_the_first_one_which_later_changes_replace() -> None:
    given = SpotPrice("g5.xlarge", "us-east-1a", 0.3)
    region = SimulatedRegion(spot_prices=[given, SpotPrice("g5.xlarge", "us-east-1a", 0.5, EPOCH - 3 * HOUR)])

    history = region.simulator.call_ec2("DescribeSpotPriceHistory", {"StartTime": EPOCH})["SpotPriceHistory"]

    assert [each["SpotPrice"] for each in history] == ["0.500000"]
