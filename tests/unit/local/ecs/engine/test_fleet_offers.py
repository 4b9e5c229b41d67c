from typing import Any

import pytest

from fakes.fleet_region import FleetRegion, fleet_request, override
from relaunch_local.ecs import Purchase

CHEAP, DEAR, DEAREST = override(subnet="subnet-b"), override(), override("g5.12xlarge")
UNPRICED = override("inf2.24xlarge")


def order(
    market: str, strategy: str | None, *overrides: dict[str, Any], dry: tuple[str, str] | None = None
) -> list[str]:
    """Return the types and zones in the order in which a fleet with no capacity at all tries them."""
    region = FleetRegion()
    if dry:
        region.simulator.set_capacity(dry[0], Purchase(market), 0, zone=dry[1])
    for each in ("g5.xlarge", "g5.12xlarge", "inf2.24xlarge"):
        region.simulator.fleets.pools.refusals[each, Purchase(market), None] = "UnfulfillableCapacity"
    name = "SpotOptions" if market == "spot" else "OnDemandOptions"
    options = {name: {"AllocationStrategy": strategy}} if strategy else {}
    errors = region.ec2.create_fleet(**fleet_request(*overrides, market=market, **options))["Errors"]
    tried = [each["LaunchTemplateAndOverrides"]["Overrides"] for each in errors]
    return [f"{each['InstanceType']} {each['SubnetId'][-1]}" for each in tried]


@pytest.mark.parametrize(("market", "strategy"), [("spot", None), ("on-demand", None), ("on-demand", "lowest-price")])
def test_the_cheapest_is_first_and_what_has_no_price_last(market: str, strategy: str | None) -> None:
    tried = order(market, strategy, UNPRICED, DEAREST, DEAR, CHEAP)

    assert tried == ["g5.xlarge b", "g5.xlarge a", "g5.12xlarge a", "inf2.24xlarge a"]


def test_price_and_capacity_together_first_look_for_capacity() -> None:
    tried = order("spot", "price-capacity-optimized", DEAREST, DEAR, CHEAP, dry=("g5.xlarge", "us-east-1b"))

    assert tried == ["g5.xlarge a", "g5.12xlarge a", "g5.xlarge b"]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("diversified", ["g5.xlarge b", "g5.12xlarge a", "g5.xlarge a"]),
        ("capacity-optimized", ["g5.12xlarge a", "g5.xlarge a", "g5.xlarge b"]),
        ("capacity-optimized-prioritized", ["g5.xlarge a", "g5.12xlarge a", "g5.xlarge b"]),
    ],
)
def test_the_other_spot_strategies(strategy: str, expected: list[str]) -> None:
    overrides = [{**CHEAP, "Priority": 0.0}, {**DEAREST, "Priority": 2.0}, {**DEAR, "Priority": 1.0}]

    assert order("spot", strategy, *overrides, dry=("g5.xlarge", "us-east-1b")) == expected


def test_priorities_count_and_not_the_order_of_the_list() -> None:
    tried = order("on-demand", "prioritized", UNPRICED, {**CHEAP, "Priority": 1.0}, {**DEAREST, "Priority": 0.0}, DEAR)

    assert tried == ["g5.12xlarge a", "g5.xlarge b", "inf2.24xlarge a", "g5.xlarge a"]
