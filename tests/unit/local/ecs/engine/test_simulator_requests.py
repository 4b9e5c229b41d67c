import pytest
from botocore.exceptions import ClientError

from fakes.simulated_region import SimulatedRegion
from relaunch_local.ecs import EcsError


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
