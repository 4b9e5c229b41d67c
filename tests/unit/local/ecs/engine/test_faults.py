import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from fakes.simulated_region import SimulatedRegion
from relaunch_local.ecs import Fault, FaultMoment


def test_a_call_can_fail_before_it_takes_effect(offered: SimulatedRegion) -> None:
    offered.simulator.faults.fail_next("RunTask", 1, Fault(FaultMoment.BEFORE))

    with pytest.raises(ClientError, match="ServerException"):
        offered.run("g5-spot")

    assert offered.ecs.list_tasks(cluster="c")["taskArns"] == []
    assert offered.run("g5-spot")["tasks"]


def test_a_call_can_fail_after_it_took_effect_and_a_token_finds_the_task(offered: SimulatedRegion) -> None:
    offered.simulator.faults.fail_next("RunTask", 2, Fault(FaultMoment.AFTER, drop_connection=True))

    with pytest.raises(ConnectionClosedError):
        offered.run("g5-spot", clientToken="t")
    with pytest.raises(ConnectionClosedError):
        offered.run("g5-spot", clientToken="t")

    (arn,) = offered.ecs.list_tasks(cluster="c")["taskArns"]
    assert offered.run_one("g5-spot", clientToken="t") == arn


def test_a_call_can_be_throttled_on_demand(region: SimulatedRegion) -> None:
    region.simulator.faults.fail_next("ListTasks", 1, Fault(FaultMoment.THROTTLE))

    assert region.error_code("list_tasks", cluster="c") == "ThrottlingException"
    assert region.ecs.list_tasks(cluster="c")["taskArns"] == []
