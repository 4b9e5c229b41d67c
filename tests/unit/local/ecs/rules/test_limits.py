from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.simulated_region import SimulatedRegion
from relaunch_local.ecs import EcsError


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


def test_fleets_launch_5_times_at_once_and_2_more_each_second(region: SimulatedRegion) -> None:
    limits = region.simulator.limits

    assert sum(limits.may_run_instances() for _ in range(10)) == 5
    region.clock.advance(2)
    assert sum(limits.may_run_instances() for _ in range(10)) == 4
    region.clock.advance(3_600)
    assert sum(limits.may_run_instances() for _ in range(10)) == 5


def test_ec2_throttles_in_its_own_words(region: SimulatedRegion) -> None:
    for _ in range(100):
        region.simulator.limits.take_ec2("TerminateInstances")

    with pytest.raises(EcsError, match=r"RequestLimitExceeded") as caught:
        region.simulator.limits.take_ec2("TerminateInstances")
    assert caught.value.http_status == 503


def test_actions_whose_rate_is_not_simulated_are_not_throttled(region: SimulatedRegion) -> None:
    for _ in range(1_000):
        region.simulator.limits.take_ec2("DescribeInstances")
