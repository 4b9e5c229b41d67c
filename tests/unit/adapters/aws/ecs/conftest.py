import pytest

from fakes.scripted_aws import ScriptedAws
from fakes.simulated_region import SimulatedRegion
from relaunch.adapters.aws.ecs.target import EcsTarget


@pytest.fixture
def ecs() -> ScriptedAws:
    return ScriptedAws("ecs")


@pytest.fixture
def target(ecs: ScriptedAws) -> EcsTarget:
    return EcsTarget(ecs.client, "relaunch", subnets=["subnet-1", "subnet-2"], security_groups=["sg-1"])


@pytest.fixture
def region() -> SimulatedRegion:
    return SimulatedRegion()
