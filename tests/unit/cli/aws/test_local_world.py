"""The controls of the local world, against its simulator over HTTP; AWS never sees them."""

from collections.abc import Iterator

import boto3
import pytest

from fakes.simulated_region import INSTANCE_TYPES
from relaunch_cli.aws.local_world import LocalWorld
from relaunch_cli.errors import CommandError
from relaunch_local.ecs import Clock, EcsServer, EcsSimulator, Script, ScriptedProcesses, SimulatorSettings
from relaunch_local.ecs.engine.settings import Purchase
from relaunch_local.request_guard.guard import RequestGuard


@pytest.fixture
def simulator() -> EcsSimulator:
    clock = Clock()
    processes = ScriptedProcesses(clock, lambda _spec: Script(600.0))
    return EcsSimulator(clock, processes, SimulatorSettings(instance_types=INSTANCE_TYPES))


@pytest.fixture
def _endpoint(simulator, monkeypatch, _credentials) -> Iterator[None]:
    """ECS is the simulator's; root's credentials are those of the environment."""
    server = EcsServer(simulator, RequestGuard({"test": "test"}.get))
    server.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_ECS", server.url)
    yield
    server.close()


def world() -> LocalWorld:
    return LocalWorld(boto3.Session(region_name="us-east-1"))


@pytest.mark.usefixtures("_endpoint")
def test_a_signed_call_reaches_the_simulator(simulator):
    pool = {"instance_type": "g5.xlarge", "purchase": "spot"}
    key = ("g5.xlarge", Purchase.SPOT, None)

    world().control("capacity", {**pool, "instances": 0})
    assert simulator.instances.capacity == {key: 0}
    world().control("capacity", {**pool, "instances": None})
    assert simulator.instances.capacity == {}


@pytest.mark.usefixtures("_endpoint")
@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("interrupt", {"instance_id": "i-0"}, "refuses interrupt: "),
        ("capacity", {"instance_type": "g5.xlarge"}, "refuses capacity: KeyError"),
        ("nonsense", {}, "refuses nonsense: UnknownControl"),
    ],
)
def test_what_the_simulator_refuses_is_told(name, arguments, text):
    with pytest.raises(CommandError, match=text) as refused:
        world().control(name, arguments)

    assert refused.value.exit_code == 5


@pytest.mark.usefixtures("_endpoint")
def test_other_credentials_are_refused(monkeypatch, simulator):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "other")

    with pytest.raises(CommandError, match="the local world refuses throttling: "):
        world().control("throttling", {"enabled": False})

    assert simulator.limits.enabled


@pytest.mark.usefixtures("_endpoint", "_no_configuration")
def test_without_credentials_nothing_is_sent(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    with pytest.raises(CommandError, match="no AWS credentials"):
        world().control("throttling", {"enabled": False})


@pytest.mark.usefixtures("_credentials")
@pytest.mark.parametrize("url", [None, "https://ecs.example.com", "http://10.0.0.1:4566"])
def test_an_endpoint_beyond_this_machine_is_never_called(monkeypatch, url):
    if url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_ECS", url)

    with pytest.raises(CommandError, match=r"this is for the local world, and ECS is at https?://") as refused:
        world().control("terminate", {"instance_id": "i-0"})

    assert "make local" in refused.value.hint
