import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.build import BuildRequest, build
from relaunch_local.stack.forwarder import DeliveryFaults
from relaunch_local.stack.local_world import LocalWorld, LocalWorldSettings, local_world
from relaunch_local.stack.training_cluster import Training

_HERE = Path(__file__).parent
LARGE_DISKS = "g6-xlarge-on-demand"
"""A capacity provider of the cluster."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == _HERE:
            item.add_marker(pytest.mark.real)


@pytest.fixture(scope="session")
def built() -> str:
    """Build the application for this interpreter; return its Runtime."""
    runtime = f"python{sys.version_info.major}.{sys.version_info.minor}"
    build(BuildRequest(REPOSITORY / ".venv-sam" / "bin" / "sam", Path(sys.executable), runtime, "x86_64"))
    return runtime


@pytest.fixture(scope="session")
def world(built: str) -> Iterator[LocalWorld]:
    """Open one local world for all tests; a third of the events is delivered twice, a third out of order.

    Jobs run on machines of our own, unless they need a larger disk than these have: then on a capacity provider.
    """
    assert built
    settings = LocalWorldSettings(
        training=Training(steps=40, step_delay_seconds=0.0, checkpoint_every=10, hold_at_step=15),
        parameters={"CapacityProviders": f"{LARGE_DISKS}=g6.xlarge/on-demand/200GiB"},
        delivery_faults=DeliveryFaults(duplicated=0.3, reordered=0.3, seed=1),
    )
    with local_world(settings) as opened:
        yield opened


@pytest.fixture(autouse=True)
def nothing_refused(request: pytest.FixtureRequest) -> Iterator[None]:
    """No story in the common world makes a call that the role of its caller does not allow, unless it is about that."""
    if "world" not in request.fixturenames or request.node.get_closest_marker("refused"):
        yield
        return
    world = request.getfixturevalue("world")
    before = Counter(world.refusals())
    yield
    refused = Counter(world.refusals()) - before
    assert not refused, "\n".join(refused)


@pytest.fixture
def held(world: LocalWorld) -> Iterator[None]:
    """Hold trainings: none ends, nor saves on SIGTERM, before the test releases them or ends itself."""
    world.hold_trainings()
    yield
    world.release_trainings()
