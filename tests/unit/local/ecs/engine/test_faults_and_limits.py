from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from fakes.simulated_region import SimulatedRegion
from relaunch_local.ecs import EcsError, Fault, FaultMoment


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


def test_a_call_can_fail_before_it_takes_effect(region: SimulatedRegion) -> None:
    region.provider()
    region.register()
    region.simulator.faults.fail_next("RunTask", 1, Fault(FaultMoment.BEFORE))

    with pytest.raises(ClientError, match="ServerException"):
        region.run("g5-spot")

    assert region.ecs.list_tasks(cluster="c")["taskArns"] == []
    assert region.run("g5-spot")["tasks"]


def test_a_call_can_fail_after_it_took_effect_and_a_token_finds_the_task(region: SimulatedRegion) -> None:
    region.provider()
    region.register()
    region.simulator.faults.fail_next("RunTask", 2, Fault(FaultMoment.AFTER, drop_connection=True))

    with pytest.raises(ConnectionClosedError):
        region.run("g5-spot", clientToken="t")
    with pytest.raises(ConnectionClosedError):
        region.run("g5-spot", clientToken="t")

    (arn,) = region.ecs.list_tasks(cluster="c")["taskArns"]
    assert region.run_one("g5-spot", clientToken="t") == arn


def test_a_call_can_be_throttled_on_demand(region: SimulatedRegion) -> None:
    region.simulator.faults.fail_next("ListTasks", 1, Fault(FaultMoment.THROTTLE))

    assert accepted(region, 2) == 1


def test_every_request_is_recorded_with_its_caller_and_outcome(region: SimulatedRegion) -> None:
    region.ecs.list_tasks(cluster="c")
    with pytest.raises(ClientError):
        region.ecs.list_tasks(cluster="nope")
    with pytest.raises(EcsError):
        region.simulator.call_ec2("Nonsense", {})

    records = [
        (each.service, each.action, each.parameters, each.access_key, each.outcome[0])
        for each in region.simulator.requests
    ]
    assert records == [
        ("ecs", "ListTasks", {"cluster": "c"}, "AKIATEST", "ok"),
        ("ecs", "ListTasks", {"cluster": "nope"}, "AKIATEST", "ClusterNotFoundException"),
        ("ec2", "Nonsense", {}, "", "InvalidAction"),
    ]
    assert region.simulator.requests[0].at == region.clock.now()


def test_groups_launch_1000_machines_at_once_and_2_more_each_second(region: SimulatedRegion) -> None:
    limits = region.simulator.limits

    assert sum(limits.may_launch_instance() for _ in range(1_100)) == 1_000
    region.clock.advance(3)
    assert sum(limits.may_launch_instance() for _ in range(10)) == 6
