from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.simulated_region import SimulatedRegion


def accepted(region: SimulatedRegion, times: int, **members: Any) -> int:
    count = 0
    codes = set()
    for _ in range(times):
        try:
            region.ecs.list_tasks(cluster="c", **members)
        except ClientError as error:
            codes.add(error.response["Error"]["Code"])
        else:
            count += 1
    assert codes <= {"ThrottlingException"}
    return count


def test_reading_tasks_bursts_to_100_and_goes_on_at_20_a_second(region: SimulatedRegion) -> None:
    assert accepted(region, 150) == 100
    region.clock.advance(1)
    assert accepted(region, 30) == 20


def test_describing_and_listing_share_a_bucket(region: SimulatedRegion) -> None:
    accepted(region, 100)

    with pytest.raises(ClientError, match="ThrottlingException"):
        region.ecs.describe_tasks(cluster="c", tasks=["0" * 32])


def test_registering_bursts_to_20_and_goes_on_at_1_a_second(region: SimulatedRegion) -> None:
    for _ in range(20):
        region.register()
    with pytest.raises(ClientError, match="Rate exceeded"):
        region.register()
    region.clock.advance(1)
    region.register()


def test_throttling_can_be_switched_off() -> None:
    assert accepted(SimulatedRegion(throttling=False), 150) == 150


def test_groups_launch_1000_machines_at_once_and_2_more_each_second(region: SimulatedRegion) -> None:
    limits = region.simulator.limits

    assert sum(limits.may_launch_instance() for _ in range(1_100)) == 1_000
    region.clock.advance(3)
    assert sum(limits.may_launch_instance() for _ in range(10)) == 6
